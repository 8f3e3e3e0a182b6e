"""A verification is a set of measurements and a verdict of three values; no measurement is never success."""

from enum import StrEnum

from pydantic import AwareDatetime

from agent.core.change.startup_figures import Observed
from agent.core.value import Excerpt, Value


class Verdict(StrEnum):
    """Did it help?"""

    RECOVERED = "RECOVERED"
    NOT_RECOVERED = "NOT_RECOVERED"
    INCONCLUSIVE = "INCONCLUSIVE"


class Check(StrEnum):
    """What is measured."""

    READY = "ready"  # the platform's Ready condition of the new revision
    COMPLETION = "completion"  # a real completion: not empty, finished
    TOKENS = "tokens"  # the token counter includes ours
    SILENCE = "silence"  # no failure of the new revision that it did not get over
    SPEED = "speed"  # tokens/s of one request, against what the owner needs
    PREDICTION = "prediction"  # first token and tokens/s, against what the approved plan computed
    HEALTHY_SIGNAL = "healthy_signal"  # for what a person does: a later sign of health
    ENDED = "ended"  # of a stop: nothing serves; of a deletion: the platform does not have it


class Measurement(Value):
    """One answer; ``good`` None means that it could not be measured, or that nothing is there to judge it by.

    Attributes:
        value: Of the token counter in tokens, of the speed in tokens per second.
        first_token_s: With the speed: seconds until the first text of the answer.
    """

    check: Check
    good: bool | None
    says: Excerpt
    real: bool = True  # False: a rehearsal's record or arithmetic says so, nothing was asked
    value: float | None = None
    first_token_s: float | None = None
    at: AwareDatetime


NEEDED_TO_END = frozenset({Check.ENDED})
NEEDED = frozenset({Check.READY, Check.COMPLETION, Check.SILENCE})
TWICE = frozenset({Check.SPEED})  # bad only when it is bad again, or still is at the end of the window
INFORMATIVE = frozenset({Check.PREDICTION})  # a deviation is said beside the verdict and never makes one


class Verification(Value):
    """What was measured since the change, and what it means.

    Attributes:
        observed: What the start-up log printed, beside the plan's prediction; None where it was not read.
        log_asked: Whether somebody was sent to read that log.
    """

    since: AwareDatetime
    ready_at: AwareDatetime | None = None
    until: AwareDatetime
    measurements: tuple[Measurement, ...] = ()
    verdict: Verdict | None = None
    why: str = ""
    observed: Observed | None = None
    log_asked: bool = False

    def latest(self, check: Check) -> Measurement | None:
        """Return the newest measurement of one kind."""
        return next((m for m in reversed(self.measurements) if m.check is check), None)

    def news(self, fresh: tuple[Measurement, ...]) -> tuple[Measurement, ...]:
        """Return what a poll need store: what stays good, or stays unmeasured for the same reason, is none.

        Each bad measurement is news: how often it came decides the verdict.
        """
        return tuple(m for m in fresh if (newest := self.latest(m.check)) is None or not _as_before(newest, m))


def _as_before(newest: Measurement, fresh: Measurement) -> bool:
    if newest.good is not fresh.good or fresh.good is False:
        return False
    return fresh.good is True or newest.says == fresh.says


def judge(verification: Verification, *, over: bool, needed: frozenset[Check] = NEEDED) -> tuple[Verdict | None, str]:
    """Return a verdict and its reason, or None while it is too early.

    Args:
        verification: What was measured so far.
        over: Whether the verification window has ended.
        needed: What must have been measured for a success; with the speed in it where the owner needs one.
    """
    for check in Check:
        newest = verification.latest(check)
        if newest is not None and newest.good is False and _counts(verification, check, over=over):
            return Verdict.NOT_RECOVERED, newest.says
    if not over:
        return None, "the window is not over"
    missing = sorted(c for c in needed if (m := verification.latest(c)) is None or m.good is None)
    if missing:
        return Verdict.INCONCLUSIVE, f"not measured: {_missing(verification, missing)}"
    ended = verification.latest(Check.ENDED)
    if ended is not None and needed == NEEDED_TO_END:
        return Verdict.RECOVERED, ended.says
    answer = verification.latest(Check.COMPLETION)
    real = answer is None or answer.real
    said = "answers a real completion" if real else f"passed a simulated check ({answer.says if answer else ''})"
    why = f"ready, {said}, and the failure did not come back"
    deviations = [m.says for c in sorted(INFORMATIVE) if (m := verification.latest(c)) is not None and m.good is False]
    return Verdict.RECOVERED, "; ".join((why, *deviations))


def _counts(verification: Verification, check: Check, *, over: bool) -> bool:
    """Whether a bad measurement is enough; of the speed only the second in a row is: one answer may have neighbours."""
    if check in INFORMATIVE:
        return False
    before = [m for m in verification.measurements if m.check is check][-2:]
    return check not in TWICE or over or (len(before) == 2 and before[0].good is False)


def _missing(verification: Verification, missing: list[Check]) -> str:
    """The checks without a measurement, grouped by reason."""
    by_reason: dict[str, list[str]] = {}
    for check in missing:
        newest = verification.latest(check)
        by_reason.setdefault(newest.says if newest is not None else "", []).append(check.value)
    said = ((" and ".join(checks), reason) for reason, checks in by_reason.items())
    return ", ".join(f"{checks} ({reason})" if reason else checks for checks, reason in said)
