"""What all alerts share: an id that opening and closing have in common, a state, a moment."""

from datetime import datetime

from agent.core.intake.json_fields import facts
from agent.core.intake.origin import Ignored, Origin, Reading, signal
from agent.core.intake.signal import AlertState, Signal, Source, alert_key


def alert(
    origin: Origin,
    reading: Reading,
    *,
    alert_id: str,
    state: AlertState,
    started_at: str,
    at: datetime | None,
    said: str,
    severity: str = "",
    revision: str | None = None,
    instance: str | None = None,
    fields: dict[str, str] | None = None,
) -> Signal | Ignored:
    """Return the signal of one state of one alert.

    ``started_at`` tells two firings of one alert apart and is the same at its opening and its closing; it is empty
    where ``alert_id`` does that. It stands in the fields too, so that a closing can be found before its opening.

    Raises:
        InputRejected: No service is named, or no time is known.
    """
    return signal(
        origin,
        reading,
        key=alert_key(reading.run, alert_id=alert_id, state=state.value, started_at=started_at),
        source=Source.ALERT,
        at=at,
        said=said,
        severity="" if severity.lower() == "no severity" else severity,
        revision=revision,
        instance=instance,
        alert_id=alert_id[:512],
        alert_state=state,
        fields=(fields or {}) | facts(started_at=started_at),
    )
