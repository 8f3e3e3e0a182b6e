"""How far a change has come: which step, for how long, and how long it may take, from effects and verification."""

import pytest

from agent.core.change.execution import EffectKind, EffectState
from agent.core.change.verification import Verdict
from agent.core.decision.decision import Choice
from agent.core.incident.phase import UNDER_WAY, Phase
from agent.core.plan.plan import Rollout
from agent.core.service.serving import Probe
from agent.presentation.rollout_progress import probe_text, progress_of


def approved(stage, **plan):
    return stage.said(stage.waiting(plan=plan), Choice.APPROVE)


def states(progress):
    return [step.state.value for step in progress.steps]


@pytest.mark.parametrize("phase", [p for p in Phase if p not in UNDER_WAY])
def test_nothing_is_under_way_outside_a_change(stage, phase):
    assert progress_of(stage.applying(approved(stage)).with_(phase=phase), stage.clock.now()) is None


def test_a_task_of_a_person_is_no_change_of_ours(stage, scenes):
    taken = stage.said(stage.waiting(make=scenes.person_plan), Choice.APPROVE)
    assert progress_of(taken, stage.clock.now()) is None


def test_the_steps_of_a_change_in_place(stage):
    """Approved, then ordered 4 s later, then 100 s of rollout of at most 965, then verified for 10 min at most."""
    waits = approved(stage)
    assert states(progress_of(waits, stage.clock.now())) == ["now", "todo", "todo"]
    applying = stage.applying(waits)
    progress = progress_of(applying, stage.clock.step(100), start_s=965)
    assert (states(progress), progress.at) == (["done", "now", "todo"], 2)
    assert progress.steps[1].says == "1 min 44 s so far, expected within 16 min"
    verifying = stage.verifying(applying)
    progress = progress_of(verifying, stage.clock.now())
    assert (states(progress), progress.at) == (["done", "done", "now"], 3)
    assert progress.steps[2].says.endswith("expected within 10 min")
    judged = verifying.with_(verification=verifying.verification.with_(verdict=Verdict.RECOVERED))
    assert states(progress_of(judged, stage.clock.now())) == ["done", "done", "done"]


def test_a_staged_change_moves_its_traffic_last(stage):
    verifying = stage.verifying(stage.applying(approved(stage, rollout=Rollout.STAGED)))
    assert states(progress_of(verifying, stage.clock.now())) == ["done", "done", "now", "todo"]
    judged = verifying.with_(verification=verifying.verification.with_(verdict=Verdict.RECOVERED))
    assert states(progress_of(judged, stage.clock.now())) == ["done", "done", "done", "now"]


@pytest.mark.parametrize(("state", "said"), [("intended", ["now", "todo"]), ("started", ["done", "now"])])
def test_the_steps_of_a_roll_back(stage, state, said):
    bad = stage.verifying(stage.applying(approved(stage)), good=False)
    rolling = stage.move(bad, Phase.ROLLING_BACK, "rolling back")
    undo = rolling.execution.effects[0].with_(
        key="99", kind=EffectKind.ROLL_BACK, state=EffectState(state), finished_at=None
    )
    rolling = rolling.with_(execution=rolling.execution.with_effect(undo))
    assert states(progress_of(rolling, stage.clock.now())) == said


PROBE = Probe(initial_delay_s=240, period_s=15, timeout_s=10, failure_threshold=81)


@pytest.mark.parametrize(
    ("started_s", "faster", "made"), [(0, 1, 0), (239, 1, 0), (240, 1, 1), (255, 1, 2), (9999, 1, 81), (5, 60, 5)]
)
def test_attempts_of_the_probe_are_counted_by_the_clock(started_s, faster, made):
    assert f"{made} of 81 attempts" in probe_text(PROBE, started_s, faster=faster)
    assert probe_text(None, started_s) == ""
