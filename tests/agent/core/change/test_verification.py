"""What makes a verdict, what is only said beside one, and what is missing by name."""

from datetime import UTC, datetime

import pytest

from agent.core.change.verification import INFORMATIVE, NEEDED, TWICE, Check, Measurement, Verdict, Verification, judge

AT = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
WELL = {Check.READY: True, Check.COMPLETION: True, Check.SILENCE: True}


def measured(values: dict[Check, bool | None], **says: str) -> Verification:
    found = tuple(Measurement(check=c, good=g, says=says.get(c.value, f"{c} says"), at=AT) for c, g in values.items())
    return Verification(since=AT, until=AT, measurements=found)


def test_every_needed_measurement_makes_a_success_and_only_after_the_window() -> None:
    """Good so far is not good."""
    assert judge(measured(WELL), over=True)[0] is Verdict.RECOVERED
    assert judge(measured(WELL), over=False)[0] is None


@pytest.mark.parametrize("check", sorted(set(Check) - INFORMATIVE - TWICE))
def test_one_bad_measurement_is_enough_at_any_time(check: Check) -> None:
    """With its own words."""
    assert judge(measured(WELL | {check: False}), over=False) == (Verdict.NOT_RECOVERED, f"{check} says")


def speeds(*good: bool | None) -> Verification:
    found = measured(WELL).measurements
    for one in good:
        found += (Measurement(check=Check.SPEED, good=one, says="2 tokens/s, 20 are needed", at=AT),)
    return Verification(since=AT, until=AT, measurements=found)


@pytest.mark.parametrize(
    ("good", "over", "verdict"),
    [
        ((False,), False, None),
        ((True, False), False, None),
        ((False, True), True, Verdict.RECOVERED),
        ((False, None, False), False, None),
        ((True, False, False), False, Verdict.NOT_RECOVERED),
        ((True, True, False), True, Verdict.NOT_RECOVERED),
    ],
    ids=["one", "one after a good one", "slow once", "not in a row", "twice in a row", "slow at the end"],
)
def test_one_slow_answer_is_no_verdict_and_two_are(good, over: bool, verdict) -> None:
    """A neighbour's long prompt holds up one answer, a server that is too slow holds up all."""
    assert judge(speeds(*good), over=over)[0] is verdict


def test_a_deviation_from_the_prediction_is_said_and_makes_no_verdict() -> None:
    """It is no silent pass either."""
    verification = measured(WELL | {Check.SPEED: True, Check.PREDICTION: False}, prediction="slower than predicted")
    assert judge(verification, over=False)[0] is None
    verdict, why = judge(verification, over=True)
    assert (verdict, "slower than predicted" in why) == (Verdict.RECOVERED, True)


@pytest.mark.parametrize("state", [None, "absent"])
def test_a_speed_that_the_owner_needs_and_nobody_measured_is_no_success(state) -> None:
    """Without a need it is not missed."""
    values = WELL if state == "absent" else WELL | {Check.SPEED: None}
    verdict, why = judge(measured(values), over=True, needed=NEEDED | {Check.SPEED})
    assert (verdict, why.startswith("not measured: speed")) == (Verdict.INCONCLUSIVE, True)
    assert judge(measured(values), over=True)[0] is Verdict.RECOVERED


def test_a_verification_of_the_first_version_is_still_one() -> None:
    """It was stored before anybody read a start-up log back."""
    stored = {"since": AT, "until": AT, "measurements": [{"check": "ready", "good": True, "says": "up", "at": AT}]}
    old = Verification.model_validate(stored)
    assert (old.observed, old.log_asked, old.measurements[0].first_token_s) == (None, False, None)


def test_what_could_not_be_measured_says_why() -> None:
    """So that a person knows what to set."""
    _, why = judge(measured(WELL | {Check.COMPLETION: None}, completion="the server wants an API key"), over=True)
    assert why == "not measured: completion (the server wants an API key)"


@pytest.mark.parametrize(
    ("before", "now", "is_news"),
    [
        ((True, "61 tokens/s"), (True, "59 tokens/s"), False),
        ((None, "no answer"), (None, "no answer"), False),
        ((None, "no answer"), (None, "401"), True),
        ((True, "ready"), (None, "no answer"), True),
        ((True, "ready"), (False, "not ready"), True),
        ((False, "2 tokens/s"), (False, "2 tokens/s"), True),
        ((False, "2 tokens/s"), (True, "61 tokens/s"), True),
    ],
    ids=["still good", "still unmeasured", "another reason", "lost", "bad", "bad again", "good again"],
)
def test_what_stays_good_or_unmeasured_is_no_news(before, now, is_news: bool) -> None:
    """A poll that finds nothing new writes nothing; a bad one counts each time."""
    kept, fresh = (Measurement(check=Check.SPEED, good=good, says=says, at=AT) for good, says in (before, now))
    assert Verification(since=AT, until=AT, measurements=(kept,)).news((fresh,)) == ((fresh,) if is_news else ())
    assert Verification(since=AT, until=AT).news((fresh,)) == (fresh,)
