"""Start-up as a list of steps that each need memory: which one fails first, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.fit.bounds import NOTHING, Bounds
from agent.fit.memory.support import Verdict
from agent.fit.report import FitReason


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step of start-up, bytes per device.

    Attributes:
        reason: What its failure is called.
        need: What it takes, from the optimistic to the pessimistic end.
        margin: What is left then: ``high`` at the optimistic end, ``low`` at the pessimistic one; negative is missing.
        told: What a reader should know when it fails, where its reason does not say it.
    """

    reason: FitReason
    need: Bounds
    margin: Bounds
    told: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The verdict over all steps; ``shortfall`` is what the first failing (else the first doubtful) step misses."""

    fits: bool | None
    reason: FitReason
    required: Bounds
    shortfall: Bounds
    notes: tuple[str, ...]


def decide(steps: Sequence[Step], verdict: Verdict) -> Outcome:
    """Compare every step at both ends.

    Returns:
        False with the first step that even the optimistic end fails; None where only the pessimistic end fails or
        something is not modelled; True where every step passes at the pessimistic end.
    """
    needs = [step.need for step in steps]
    required = Bounds(
        low=max([need.low for need in needs]),
        best=max([need.best for need in needs]),
        high=max([need.high for need in needs]),
    )
    failed = next((step for step in steps if step.margin.high < 0), None)
    doubtful = next((step for step in steps if step.margin.low < 0), None)
    fits: bool | None = True
    reason = FitReason.FITS
    notes: tuple[str, ...] = ()
    if verdict.refusals:
        fits, reason, notes = False, FitReason.UNSUPPORTED, verdict.refusals
    elif failed is not None and not verdict.doubts:
        # what is merely left out would need more still
        fits, reason, notes = False, failed.reason, (failed.told,) if failed.told else ()
    elif verdict.flag_refusals:
        fits, reason, notes = False, FitReason.UNSUPPORTED, verdict.flag_refusals
    elif doubtful is not None or verdict.doubts or verdict.left_out:
        fits, reason = None, FitReason.UNKNOWN
        at: list[str] = []
        if doubtful is not None:
            at = [f"the step {doubtful.reason.value} passes at one end of the ranges only", doubtful.told]
        notes = (*filter(None, at), *verdict.doubts, *verdict.left_out)
    return Outcome(fits=fits, reason=reason, required=required, shortfall=_missing(failed or doubtful), notes=notes)


def _missing(worst: Step | None) -> Bounds:
    if worst is None:
        return NOTHING
    return (NOTHING - worst.margin).at_least(0)
