"""Azure's alerts and the rows of Container Apps, in their spellings."""

import pytest

from agent.core.intake.azure import read_azure_alert, read_container_apps_row
from agent.core.intake.origin import Reading
from agent.core.intake.signal import AlertState, Source
from agent.errors import InputRejected


def test_resolved_closes_what_fired(sample):
    """Alert id and firing time are the same in both."""
    body, done = (sample("azure_monitor_log_alert_common_schema") for _ in range(2))
    done["data"]["essentials"] |= {"monitorCondition": "Resolved", "resolvedDateTime": "2026-11-20T10:30:00Z"}
    (fired,), (resolved,) = read_azure_alert(body, Reading()), read_azure_alert(done, Reading())
    assert fired.alert_id == resolved.alert_id
    assert fired.fields["started_at"] == resolved.fields["started_at"]
    assert resolved.alert_state is AlertState.CLOSED
    assert resolved.at.isoformat() == "2026-11-20T10:30:00+00:00"


def test_a_metric_alert_is_about_the_container_app_it_targets(sample):
    """Without dimensions the target's resource id names the app."""
    body = sample("azure_monitor_log_alert_common_schema")
    body["data"]["alertContext"] = {}
    body["data"]["essentials"]["alertTargetIDs"] = [
        "/subscriptions/s/resourcegroups/r/providers/microsoft.app/containerapps/gemma"
    ]
    (found,) = read_azure_alert(body, Reading())
    assert (found.service, found.platform) == ("gemma", "container_apps")


def test_a_console_row_is_the_servers_own_word():
    """No reason: the server said it; with and without column suffixes."""
    row = {"TimeGenerated": "2026-11-20T10:15:43Z", "Log_s": "torch.OutOfMemoryError", "ContainerAppName_s": "gemma"}
    plain = {key.removesuffix("_s"): value for key, value in row.items()}
    for spelled in (row, plain):
        (found,) = read_container_apps_row(spelled, Reading())
        assert (found.source, found.service, found.text) == (Source.APP_LOG, "gemma", "torch.OutOfMemoryError")


@pytest.mark.parametrize(
    ("field", "value", "why"), [("alertId", None, "alertId is missing"), ("monitorCondition", "Odd", "'Odd'")]
)
def test_an_alert_without_id_or_state_is_refused(sample, field, value, why):
    """The refusal names the field."""
    body = sample("azure_monitor_log_alert_common_schema")
    body["data"]["essentials"] |= {field: value, "originAlertId": ""}
    with pytest.raises(InputRejected) as refused:
        read_azure_alert(body, Reading())
    assert why in refused.value.why
