"""Whether an end was requested: by a stop that a signal reports, or by a change of ours."""

from collections.abc import Iterable
from datetime import timedelta

from agent.core.change.execution import EffectKind
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import AskedBy, Signal
from agent.core.value import digest

SKEW = timedelta(seconds=2)  # between two clocks that stamp lines of one machine
STOP_VALID = timedelta(minutes=15)
"""How long a stop covers ends; Container Apps grants up to 600 s from SIGTERM to the kill, Cloud Run 10 s."""


def stop_scopes(signal: Signal) -> tuple[str, ...]:
    """Return the ids under which stops of a signal's instance, and of its revision, are kept; the narrower first."""
    named = (("instance", signal.instance), ("revision", signal.revision))
    kept = tuple((kind, name) for kind, name in named if name) or (("service", None),)
    return tuple(f"stops-{digest([signal.run, signal.service, kind, name])[:16]}" for kind, name in kept)


def asked_by_stop(end: Signal, signals: Iterable[Signal]) -> AskedBy | None:
    """Return who asked for an end, by the newest stop of its instance or revision before it; None where nobody did.

    Args:
        end: The end; what was killed for memory was never asked to end.
        signals: Stops, and signals that are none; of any instance, in any order.
    """
    if end.end is None or end.end.oom:
        return None
    mine = set(stop_scopes(end))
    before = [
        (signal.at, signal.stop)
        for signal in signals
        if signal.stop is not None
        and stop_scopes(signal)[0] in mine
        and (signal.at < end.at if signal.stop.over else signal.at <= end.at + SKEW)
    ]
    at, newest = max(before, key=lambda pair: (pair[0], pair[1].over), default=(end.at, None))
    return newest.by if newest is not None and not newest.over and end.at - at <= STOP_VALID else None


def asked_by_us(end: Signal, incident: Incident | None) -> AskedBy | None:
    """Return that a change of ours ended it: what ran before the change, or what a roll-back takes away.

    It covers ends until ``STOP_VALID`` after the change, for an instance of before may still answer its last requests.

    Args:
        end: The end.
        incident: The newest incident of the service.
    """
    execution = incident.execution if incident is not None else None
    if incident is None or execution is None or end.end is None or end.end.oom:
        return None
    undo = execution.effect(EffectKind.ROLL_BACK)
    effect = undo or execution.effect(EffectKind.APPLY)
    if effect is None or end.at < effect.intended_at:
        return None
    done = max((e.finished_at for e in execution.effects if e.finished_at is not None), default=None)
    if incident.ended and (done is None or end.at > done + STOP_VALID):
        return None  # somebody may have brought it back since
    if end.revision is None:  # such as a unit: it ends while we change it, and nobody says which of its runs that was
        changing = incident.phase in {Phase.APPLYING, Phase.ROLLING_BACK}
        return AskedBy.OUR_EFFECT if changing else None
    theirs = execution.revision_after if undo is not None else execution.revision_before
    return AskedBy.OUR_EFFECT if end.revision == theirs else None
