"""How far a change has come: its steps, how long each has taken, and how long it may take."""

from collections.abc import Iterator
from datetime import datetime

from agent.core.change.execution import Effect, EffectKind, EffectState
from agent.core.incident.incident import Incident
from agent.core.incident.phase import UNDER_WAY, Phase
from agent.core.service.serving import Probe
from agent.core.value import Value
from agent.presentation.impact_text import span
from agent.presentation.standing import StepState


class ProgressStep(Value):
    """One step of a change under way.

    Attributes:
        took_s: How long it took, or has taken so far; None before it begins and where nobody knows.
        expected_s: How long it may take; None where nobody knows.
    """

    label: str
    state: StepState
    took_s: float | None = None
    expected_s: float | None = None

    @property
    def says(self) -> str:
        """The times in words."""
        so_far = " so far" if self.state is StepState.NOW else ""
        took = f"{span(self.took_s)}{so_far}" if self.took_s is not None and self.state is not StepState.TODO else ""
        expected = f"expected within {span(self.expected_s)}" if self.expected_s else ""
        return ", ".join(part for part in (took, expected if self.state is not StepState.DONE else "") if part)


class Progress(Value):
    """The steps of a change, and at which of them it is."""

    steps: tuple[ProgressStep, ...]

    @property
    def at(self) -> int:
        """The number of the present step, from 1."""
        return next((n for n, s in enumerate(self.steps, start=1) if s.state is StepState.NOW), len(self.steps))


def progress_of(incident: Incident, now: datetime, *, start_s: float | None = None) -> Progress | None:
    """Return how far the change of an incident has come; None where none of ours is under way.

    Args:
        incident: Its present state.
        now: The time, UTC.
        start_s: How long the start of the new revision may take, seconds; None where nobody knows.
    """
    plan = incident.plan
    if incident.phase not in UNDER_WAY or plan is None or plan.by_person:
        return None
    if incident.phase is Phase.ROLLING_BACK:
        return Progress(steps=tuple(_rolling_back(incident, now)))
    return Progress(steps=tuple(_changing(incident, now, start_s)))


def _changing(incident: Incident, now: datetime, start_s: float | None) -> Iterator[ProgressStep]:
    applied, verification = incident.effect(EffectKind.APPLY), incident.verification
    shift = incident.effect(EffectKind.SHIFT)
    staged = incident.plan is not None and incident.plan.staged
    started = applied is not None and applied.state is not EffectState.INTENDED
    waits = incident.decision.at if incident.decision is not None else incident.phase_at
    yield _step("Check once more and order the change", waits, applied.began_at if applied else None, now)
    yield _step(
        "Roll out: the new revision starts",
        applied.began_at if applied is not None else None,
        applied.finished_at if applied is not None and started else None,
        now,
        expected_s=start_s,
    )
    window = (verification.until - verification.since).total_seconds() if verification is not None else None
    judged = verification is not None and verification.verdict is not None
    yield _step(
        "Verify: measure whether it works",
        verification.since if verification is not None else None,
        (shift.intended_at if shift is not None else now) if judged else None,
        now,
        expected_s=window,
    )
    if staged:
        yield _step(
            "Move the traffic",
            shift.intended_at if shift is not None else now if judged else None,
            shift.finished_at if shift is not None else None,
            now,
        )


def _rolling_back(incident: Incident, now: datetime) -> Iterator[ProgressStep]:
    undo: Effect | None = incident.effect(EffectKind.ROLL_BACK)
    ordered = undo.intended_at if undo is not None and undo.state is not EffectState.INTENDED else None
    yield _step("Order the roll-back", incident.phase_at, ordered, now)
    yield _step("Roll back: the prior configuration starts", ordered, undo.finished_at if undo else None, now)


def _step(
    label: str, began: datetime | None, ended: datetime | None, now: datetime, *, expected_s: float | None = None
) -> ProgressStep:
    if began is None:
        return ProgressStep(label=label, state=StepState.TODO, expected_s=expected_s)
    state = StepState.NOW if ended is None else StepState.DONE
    took = max(0.0, ((ended or now) - began).total_seconds())
    return ProgressStep(label=label, state=state, took_s=took, expected_s=expected_s)


def probe_text(probe: Probe | None, started_s: float, *, faster: float = 1.0) -> str:
    """Return how many attempts a startup probe has made by the clock, in a sentence; nothing where there is no probe.

    Args:
        probe: The startup probe of the new revision.
        started_s: For how long it has been starting, seconds.
        faster: How many times faster than life a rehearsal runs.
    """
    if probe is None:
        return ""
    made = max(0, int((started_s * faster - probe.initial_delay_s) // probe.period_s) + 1)
    made = 0 if started_s * faster < probe.initial_delay_s else min(made, probe.failure_threshold)
    every = f"one every {probe.period_s} s after {probe.initial_delay_s} s, at most {probe.failure_threshold}"
    return f"Startup probe: by the clock {made} of {probe.failure_threshold} attempts ({every}: {probe.budget_s:,} s)."
