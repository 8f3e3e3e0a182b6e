"""A verification is a set of measurements and a verdict of three values; no measurement is never success."""

from enum import StrEnum

from pydantic import AwareDatetime

from agent.core.value import Value


class Verdict(StrEnum):
    """Did it help?"""

    RECOVERED = "RECOVERED"
    NOT_RECOVERED = "NOT_RECOVERED"
    INCONCLUSIVE = "INCONCLUSIVE"


class Check(StrEnum):
    """What is measured."""

    READY = "ready"  # the platform's Ready condition of the new revision
    COMPLETION = "completion"  # a real completion: not empty, finished
    TOKENS = "tokens"  # the token counter advanced
    SILENCE = "silence"  # no new line of the incident's class from the new revision
    SPEED = "speed"  # first token and tokens/s within what the fit predicted
    HEALTHY_SIGNAL = "healthy_signal"  # for what a person does: a later sign of health


class Measurement(Value):
    """One answer; ``good`` None means that it could not be measured."""

    check: Check
    good: bool | None
    says: str
    real: bool = True  # False: a rehearsal's record or arithmetic says so, nothing was asked
    value: float | None = None
    at: AwareDatetime


NEEDED = frozenset({Check.READY, Check.COMPLETION, Check.SILENCE})


class Verification(Value):
    """What was measured since the change, and what it means."""

    since: AwareDatetime
    ready_at: AwareDatetime | None = None
    until: AwareDatetime
    measurements: tuple[Measurement, ...] = ()
    verdict: Verdict | None = None
    why: str = ""

    def latest(self, check: Check) -> Measurement | None:
        """Return the newest measurement of one kind."""
        return next((m for m in reversed(self.measurements) if m.check is check), None)


def judge(verification: Verification, *, over: bool) -> tuple[Verdict | None, str]:
    """Return a verdict and its reason, or None while it is too early.

    Args:
        verification: What was measured so far.
        over: Whether the verification window has ended.
    """
    for check in Check:
        newest = verification.latest(check)
        if newest is not None and newest.good is False:
            return Verdict.NOT_RECOVERED, newest.says
    if not over:
        return None, "the window is not over"
    missing = sorted(c for c in NEEDED if (m := verification.latest(c)) is None or m.good is None)
    if missing:
        return Verdict.INCONCLUSIVE, f"not measured: {', '.join(missing)}"
    answer = verification.latest(Check.COMPLETION)
    said = "answers a real completion" if answer is None or answer.real else f"nothing real was asked ({answer.says})"
    return Verdict.RECOVERED, f"ready, {said}, and the failure did not come back"
