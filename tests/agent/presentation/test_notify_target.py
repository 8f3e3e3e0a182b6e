"""The setting of targets: only hosts that a provider fixes, only parameters that change nothing of safety."""

import re
from pathlib import Path

import pytest

from agent.errors import SettingsRejected
from agent.presentation.notify_target import DEFAULT_EVENTS, HOSTS, read_targets
from agent.settings import read_settings

GCHAT = "gchat://workspace/key/s3cret-token"


def test_targets_are_read_with_their_names_and_events():
    one, two = read_targets(f"team={GCHAT}\n  night[incident.escalated,plan.proposed]=opsgenie://key?region=eu ")
    assert (one.name, one.service, one.events) == ("team", "gchat", DEFAULT_EVENTS)
    assert (two.hosts[0], two.events) == ("api.opsgenie.com", {"incident.escalated", "plan.proposed"})
    assert "s3cret" not in repr(one)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *[(f"a={scheme}://host/x", "WEBHOOK_URLS") for scheme in
          ("json", "jsons", "xml", "form", "forms", "mmost", "mmosts", "mailto", "mailtos", "syslog", "file", "ntfy", "http")],
        ("a=workflows://evil.example/w/s", "not below"),
        ("a=workflows://evil.example.logic.azure.com.evil.example/w/s", "not below"),
        ("a=workflows://prod.logic.azure.com:8443/w/s", "not below"),
        (f"a={GCHAT}?verify=no", "'verify' is not taken"),
        (f"a={GCHAT}?template=/etc/passwd", "'template' is not taken"),
        (f"a={GCHAT}?+X-Header=1", "not taken"),
        (f"a={GCHAT}#x", "holds a #"),
        ("a=workflows://prod.logic.azure.com/w/s?ver=2;template=/x.json", "hold a ;"),
        (f"a[incident.opend]={GCHAT}", "'incident.opend' is no event"),
        (f"a={GCHAT} a={GCHAT}", "stands twice"),
        (f"A={GCHAT}", "target 1 is not NAME=URL"),
        (GCHAT, "target 1 is not NAME=URL"),
        ("a=gchat:x", "is not one of"),
    ],
)  # fmt: skip
def test_what_is_not_taken_is_refused_with_the_reason_and_without_its_secret(text, why):
    with pytest.raises(SettingsRejected) as refused:
        read_settings({"NOTIFY_TARGETS": text})
    assert why in refused.value.why
    assert "s3cret" not in str(refused.value)


def test_the_guide_lists_every_service_and_the_default_events():
    page = (Path(__file__).resolve().parents[3] / "docs" / "notifications.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| `(\w+)://` \| (.+) \|$", page, re.MULTILINE)
    assert {name: tuple(re.findall(r"`([^`]+)`", hosts)) for name, hosts in rows} == HOSTS
    told = page.partition("told of `incident.opened`")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z]+\.[a-z]+)`", told)) | {"incident.opened"} == DEFAULT_EVENTS
