"""A run with --once ends with its server, and not while a change of ours is made or needs nobody."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from agent.core.incident.phase import Phase
from agent.entrypoints.cli.watch_end import DIAGNOSIS_WAIT_S, is_over, shell_code
from agent.ports.host import Stage, Start

AT = datetime(2026, 11, 22, 3, tzinfo=UTC)
ENDED = Start(revision="r1", mark="m", template="{}", began_at=AT, stage=Stage.ENDED, ended_at=AT)


def incident(phase: Phase, *, provisional: bool = False):
    return SimpleNamespace(phase=phase, diagnosis=SimpleNamespace(provisional=provisional))


def over(start, *incidents, after_s: float = 1.0, automatic: bool = False) -> bool:
    return is_over(start, incidents, now=AT + timedelta(seconds=after_s), automatic=lambda _incident: automatic)


def test_a_server_that_runs_goes_on_being_watched():
    assert not over(ENDED.with_(stage=Stage.READY, ended_at=None), after_s=1000)


@pytest.mark.parametrize("phase", [Phase.APPROVED, Phase.APPLYING, Phase.VERIFYING, Phase.ROLLING_BACK])
def test_a_change_that_is_under_way_is_waited_for(phase):
    assert not over(ENDED, incident(phase), after_s=1000)


def test_an_approved_stop_ends_the_run_once_it_is_verified():
    """The change that ended the server is the last one: nothing is started after it."""
    stopped = ENDED.with_(ended_by="effect", asked_at=AT)
    assert not over(stopped, incident(Phase.VERIFYING))
    assert over(stopped, incident(Phase.RESOLVED))


@pytest.mark.parametrize("phase", [Phase.OPEN, Phase.DIAGNOSED, Phase.PLANNED])
def test_a_plan_that_is_being_made_is_waited_for_within_the_limit(phase):
    """With --auto it may be carried out without anybody."""
    assert not over(ENDED, incident(phase))
    assert over(ENDED, incident(phase), after_s=DIAGNOSIS_WAIT_S)


def test_a_question_ends_the_run_unless_policy_answers_it():
    assert over(ENDED, incident(Phase.ASKED))
    assert not over(ENDED, incident(Phase.ASKED), automatic=True)
    assert over(ENDED, incident(Phase.ASKED), automatic=True, after_s=DIAGNOSIS_WAIT_S)


def test_the_cause_is_worth_a_moment():
    assert not over(ENDED)
    assert not over(ENDED, incident(Phase.ESCALATED, provisional=True))
    assert over(ENDED, incident(Phase.ESCALATED))
    assert over(ENDED, after_s=DIAGNOSIS_WAIT_S)


@pytest.mark.parametrize(("code", "told"), [(None, 1), (0, 0), (7, 7), (-9, 137)])
def test_an_exit_code_is_told_as_a_shell_does(code, told):
    assert shell_code(code) == told
