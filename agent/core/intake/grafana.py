"""Grafana's alerting webhook: alerts as Alertmanager's, with links to a dashboard, and states that say nothing."""

from collections.abc import Mapping
from typing import Any, Final

from agent.core.intake.alertmanager import read_alerts
from agent.core.intake.json_fields import missing, part, rows, text
from agent.core.intake.origin import Ignored, IgnoredBecause, Reading
from agent.core.intake.signal import Signal

SHAPE: Final = "Grafana notification"
_SAYS_NOTHING: Final = frozenset({"DatasourceNoData", "DatasourceError"})
"""Alerts about the query itself: https://grafana.com/docs/grafana/latest/alerting/fundamentals/alert-rule-evaluation
(2026-11-22)."""


def is_grafana(body: Mapping[str, Any]) -> bool:
    """Whether a body is Grafana's; Alertmanager knows no organisation."""
    return "alerts" in body and "orgId" in body


def read_grafana(body: Mapping[str, Any], reading: Reading) -> list[Signal | Ignored]:
    """Return a signal per alert, as :func:`agent.core.intake.alertmanager.read_alertmanager` does.

    What says that Grafana could not look is no word about a service, and Grafana's own test is none either.

    Raises:
        InputRejected: Another version, no alerts, too many, or none that is usable.
    """
    if text(body, "version") not in {"", "1"}:
        raise missing(SHAPE, "version '1'", body.get("version"))
    alerts = rows(body, "alerts")
    kept = [alert for alert in alerts if _reason(alert) is None]
    left = [Ignored(because=why, what=_alertname(alert)) for alert in alerts if (why := _reason(alert))]
    return [*(read_alerts(SHAPE, kept, body, reading) if kept or not left else ()), *left]


def _reason(alert: object) -> IgnoredBecause | None:
    if _alertname(alert) in _SAYS_NOTHING:
        return IgnoredBecause.NO_VERDICT
    labels = part(alert, "labels") if isinstance(alert, Mapping) else {}
    return IgnoredBecause.TEST if labels.get("instance") == "Grafana" else None


def _alertname(alert: object) -> str:
    return text(part(alert, "labels"), "alertname")[:200] if isinstance(alert, Mapping) else ""
