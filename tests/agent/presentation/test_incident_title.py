"""The headline: one sentence for every class and every phase, true of the state that it is made from."""

import pytest

from agent.core.change.execution import EffectKind
from agent.core.decision.decision import Choice
from agent.core.incident.phase import Phase
from agent.core.plan.proof import Proof
from agent.failures.signature import FailureClass
from agent.presentation.incident_title import TROUBLES, incident_title, trouble_of


def test_every_failure_class_has_words_of_its_own():
    """Only ``unknown`` has none: what is said then depends on what is known."""
    assert set(TROUBLES) == {str(c) for c in FailureClass} - {"unknown"}
    assert len(set(TROUBLES.values())) == len(TROUBLES)
    assert max(map(len, TROUBLES.values())) <= 60


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        (Phase.OPEN, "something is wrong, cause not known yet; being diagnosed"),
        (Phase.DIAGNOSED, "out of GPU memory while loading; a plan is being made"),
        (Phase.PLANNED, "out of GPU memory while loading; one fix fits"),
        (Phase.ASKED, "out of GPU memory while loading; one fix fits"),
        (Phase.APPROVED, "out of GPU memory while loading; fix approved"),
        (Phase.APPLYING, "out of GPU memory while loading; fix is being applied"),
        (Phase.VERIFYING, "out of GPU memory while loading; fix applied, being verified"),
        (Phase.RESOLVED, "out of GPU memory while loading; fixed"),
        (Phase.ROLLING_BACK, "out of GPU memory while loading; fix is being rolled back"),
        (Phase.ROLLED_BACK, "out of GPU memory while loading; fix rolled back"),
        (Phase.REFUSED, "out of GPU memory while loading; fix refused at the final check"),
        (Phase.REJECTED, "out of GPU memory while loading; fix rejected"),
        (Phase.EXPIRED, "out of GPU memory while loading; nobody answered in time"),
        (Phase.SUPERSEDED, "out of GPU memory while loading; plan withdrawn, more became known"),
        (Phase.ESCALATED, "out of GPU memory while loading; a person must take over"),
        (Phase.SELF_RECOVERED, "out of GPU memory while loading; healthy again"),
        (Phase.WITHDRAWN, "out of GPU memory while loading; taken back"),
        (Phase.CLOSED, "out of GPU memory while loading; closed"),
    ],
    ids=lambda value: value.value if isinstance(value, Phase) else "",
)
def test_every_phase_has_a_headline(stage, scenes, phase, said):
    if phase is Phase.OPEN:
        incident = stage.open("gemma4-31b")
    else:
        diagnosis = scenes.memory_diagnosis(stage.clock.now())
        waiting = stage.waiting("gemma4-31b", make=scenes.memory_plan, diagnosis=diagnosis)
        incident = stage.applying(stage.said(waiting, Choice.APPROVE)).with_(phase=phase)
    assert incident_title(incident, stage.clock.now()) == f"gemma4-31b: {said}"


@pytest.mark.parametrize("phase", Phase)
def test_a_request_names_who_asks_in_every_phase(stage, phase):
    title = incident_title(stage.requested().with_(phase=phase), stage.clock.now())
    assert title.startswith("gemma4-26b-qat-l4: change requested by ada (not verified); ")
    assert "fix" not in title


@pytest.mark.parametrize("phase", Phase)
def test_a_task_for_a_person_is_never_called_a_fix_of_ours(stage, scenes, phase):
    title = incident_title(stage.waiting(make=scenes.person_plan).with_(phase=phase), stage.clock.now())
    assert "fix" not in title


def test_what_is_offered_is_said_as_far_as_it_is_proved(stage):
    waiting = stage.waiting()
    now = stage.clock.now()
    assert incident_title(waiting, now).endswith("; one fix is ready")
    unproved = waiting.with_(plan=waiting.plan.with_(proof=Proof.NONE))
    assert incident_title(unproved, now).endswith("; one fix, not proved")
    assert incident_title(waiting.with_(run="r1"), now).endswith("; one fix is ready (replay for analysis)")
    assert incident_title(waiting, waiting.plan.expires_at).endswith("; nobody answered in time")


def test_a_change_that_was_never_made_was_not_rolled_back(stage):
    applied = stage.applying(stage.said(stage.waiting(), Choice.APPROVE))
    effect = applied.effect(EffectKind.APPLY).with_(state="failed", operation=None)
    never = applied.with_(phase=Phase.ROLLED_BACK, execution=applied.execution.with_effect(effect))
    assert incident_title(never, stage.clock.now()).endswith("; the fix was never made")


def test_an_unknown_cause_says_what_is_known(stage, scenes):
    diagnosis = scenes.probe_diagnosis(stage.clock.now(), class_="unknown", signature=None)
    incident = stage.diagnosed(stage.open(), diagnosis)
    assert trouble_of(incident) == "failure of unknown cause"
    ended = incident.with_(diagnosis=diagnosis.with_(unasked_end=True))
    assert trouble_of(ended) == "the server ended, cause unknown"
