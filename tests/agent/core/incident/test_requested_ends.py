"""Who asked for an end: the newest stop of its instance before it, or a change of ours."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.core.change.execution import Effect, EffectKind, EffectState, Execution
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.incident.requested_ends import STOP_VALID, asked_by_stop, asked_by_us
from agent.core.intake.signal import AskedBy, End, Signal, Source, Stop

T0 = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)


def at(seconds, *, revision="r0", instance="i1", **more):
    return Signal(
        key=f"{seconds}{more}", source=Source.PLATFORM_LOG, service="v", platform="host", revision=revision,
        instance=instance, at=T0 + timedelta(seconds=seconds), text="", **more,
    )  # fmt: skip


ENDED = at(10, end=End(exit_code=1))
ASKED = Stop(by=AskedBy.OPERATOR)
OVER = Stop(by=AskedBy.OPERATOR, over=True)


@pytest.mark.parametrize(
    ("told", "asked_by"),
    [
        ([], None),
        ([at(5, stop=ASKED)], AskedBy.OPERATOR),
        ([at(11, stop=ASKED)], AskedBy.OPERATOR),
        ([at(20, stop=ASKED)], None),
        ([at(5, stop=ASKED, instance="i2")], None),
        ([at(5, stop=ASKED, instance=None)], AskedBy.OPERATOR),
        ([at(5, stop=ASKED, instance=None, revision="r9")], None),
        ([at(5, stop=ASKED), at(6, stop=OVER)], None),
        ([at(6, stop=OVER), at(5, stop=ASKED)], None),
        ([at(5, stop=ASKED), at(10, stop=OVER)], AskedBy.OPERATOR),
        ([at(10 - STOP_VALID.total_seconds() - 1, stop=ASKED)], None),
    ],
    ids=["nobody", "before", "within the skew", "too late", "another instance", "its revision", "another revision",
         "started again", "in any order", "over with the end itself", "long ago"],
)  # fmt: skip
def test_the_newest_stop_of_the_instance_before_the_end_decides(told, asked_by):
    assert asked_by_stop(ENDED, told) is asked_by


def test_what_was_killed_for_memory_was_never_asked_to_end():
    """A stop beside it does not explain it."""
    assert asked_by_stop(at(10, end=End(oom=True)), [at(5, stop=ASKED)]) is None


def changed(phase, *kinds, done_s=None):
    """An incident whose change was intended at 5 s, for each kind."""
    finished = T0 + timedelta(seconds=done_s) if done_s is not None else None
    effects = tuple(
        Effect(key=k, kind=k, state=EffectState.STARTED, etag="e", revision="r1", intended_at=T0 + timedelta(seconds=5), finished_at=finished)
        for k in kinds
    )  # fmt: skip
    execution = Execution(
        plan="p", effects=effects, revision_before="r0", revision_after="r1", prior_template="{}", prior_traffic="[]",
        prior_ready=True,
    )  # fmt: skip
    return Incident(
        id="inc-1", service="v", platform="host", phase=phase, opened_at=T0, phase_at=T0, quiet_since=T0, execution=execution
    )  # fmt: skip


APPLY, UNDO = EffectKind.APPLY, EffectKind.ROLL_BACK
OURS = AskedBy.OUR_EFFECT


@pytest.mark.parametrize(
    ("incident", "end", "asked_by"),
    [
        (None, ENDED, None),
        (changed(Phase.APPLYING, APPLY), ENDED, OURS),
        (changed(Phase.APPLYING, APPLY), at(1, end=End()), None),
        (changed(Phase.APPLYING, APPLY), at(10, end=End(), revision="r1"), None),
        (changed(Phase.ROLLING_BACK, APPLY, UNDO), at(10, end=End(), revision="r1"), OURS),
        (changed(Phase.RESOLVED, APPLY, done_s=9), ENDED, OURS),
        (changed(Phase.RESOLVED, APPLY, done_s=9), at(9 + STOP_VALID.total_seconds() + 1, end=End()), None),
        (changed(Phase.RESOLVED, APPLY), ENDED, None),
        (changed(Phase.APPLYING, APPLY), at(10, end=End(), revision=None), OURS),
        (changed(Phase.VERIFYING, APPLY, done_s=9), at(10, end=End(), revision=None), None),
        (changed(Phase.APPLYING, APPLY), at(10, end=End(oom=True)), None),
    ],
    ids=["no incident", "the one before", "before the change", "the new one dies", "undone", "just after it", "long after it",
         "never finished", "a unit while we change it", "a unit afterwards", "killed for memory"],
)  # fmt: skip
def test_a_change_of_ours_asks_for_the_end_of_what_it_replaces_and_for_no_other(incident, end, asked_by):
    assert asked_by_us(end, incident) is asked_by
