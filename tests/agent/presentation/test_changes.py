"""T4: what is said about what was changed follows from effects and remedies, in every phase and on every surface."""

import re

import pytest

from agent.core.change.execution import EffectKind, EffectState
from agent.core.change.verification import Verdict
from agent.core.decision.decision import Choice
from agent.core.incident.incident import Incident
from agent.core.incident.phase import BEFORE_DECISION, Phase
from agent.entrypoints.console.app import make_app
from agent.presentation.changes import changed_so_far
from agent.presentation.slack_card import card
from agent.presentation.standing import next_step, standing
from agent.presentation.terminal_text import lines
from agent.settings import Settings

NOTHING = re.compile(r"[Nn]othing (?:has been|was|is) changed|changed nothing")
OURS = ("Nothing has been changed", "Nothing was changed")


def life(stage, scenes):
    """One incident per phase, and those that live on after a roll-back: each as its stages leave it."""
    asked = {
        "open": stage.open("s-open"),
        "diagnosed": stage.diagnosed(stage.open("s-diagnosed")),
        "planned": stage.planned(stage.diagnosed(stage.open("s-planned"))),
        "asked": stage.waiting("s-asked"),
        "task asked": stage.waiting("s-task", make=scenes.person_plan),
        "approved": stage.said(stage.waiting("s-approved"), Choice.APPROVE),
        "rejected": stage.said(stage.waiting("s-rejected"), Choice.REJECT, why="no"),
        "refused": stage.move(stage.said(stage.waiting("s-refused"), Choice.APPROVE), Phase.REFUSED, "differs"),
        "expired": stage.move(stage.waiting("s-expired"), Phase.EXPIRED, "unanswered"),
        "superseded": stage.move(stage.waiting("s-superseded"), Phase.SUPERSEDED, "more"),
        "recovered": stage.move(stage.waiting("s-rec"), Phase.SELF_RECOVERED, "healthy"),
        "requested": stage.requested("s-req"),
        "withdrawn": stage.move(stage.requested("s-req-back"), Phase.WITHDRAWN, "taken back"),
        "closed": stage.move(stage.move(stage.requested("s-req-no"), Phase.REFUSED, "no"), Phase.CLOSED, "closed"),
        "escalated untouched": stage.escalated(stage.move(stage.waiting("s-esc"), Phase.EXPIRED, "unanswered")),
    }
    applying = lambda name: stage.applying(stage.said(stage.waiting(name), Choice.APPROVE))  # noqa: E731
    verifying = lambda name: stage.verifying(applying(name), good=False)  # noqa: E731
    back = stage.rolled_back(verifying("s-back"))
    again = lambda name: stage.asked(stage.rolled_back(verifying(name)), scenes.memory_plan)  # noqa: E731
    return asked | {
        "applying": applying("s-applying"),
        "verifying": stage.verifying(applying("s-verifying")),
        "resolved": stage.resolved(stage.verifying(applying("s-resolved"))),
        "rolled back": back,
        "asked after a roll-back": again("s-again"),
        "rejected after a roll-back": stage.said(again("s-no"), Choice.REJECT, why="no"),
        "escalated after a roll-back": stage.escalated(stage.rolled_back(verifying("s-last"))),
    }


def surfaces(stage, incident: Incident):
    """What page, card, command line and the answer to a decision say."""
    now = max(stage.clock.now(), incident.phase_at)
    timeline = stage.world.store.timeline(incident.id)
    app = make_app(stage.world, settings=Settings(platform="cloud_run:example"), operator="ada").test_client()
    page = app.get(f"/incidents/{incident.id}", base_url="http://127.0.0.1:8080").get_data(as_text=True)
    page = re.sub(r"<section aria-labelledby=\"timeline\">.*?</section>", "", page, flags=re.DOTALL)
    shown = card(incident, (), redact=str, console_url="")
    plan = incident.plan.id if incident.plan else "p-none"
    assert timeline
    return {
        "page": page,
        "card": str([b.get("text", b.get("elements")) for b in shown.blocks]) + shown.text,
        "command line": "\n".join(lines(incident, now=now)),
        "answer": next_step(incident, plan, now),
    }


UNTOUCHED = {
    "open", "diagnosed", "planned", "asked", "approved", "rejected", "refused", "expired", "superseded", "recovered",
    "requested", "withdrawn", "closed", "escalated untouched",
}  # fmt: skip
TOUCHED = {
    "applying": "The change was made",
    "verifying": "The change is applied",
    "resolved": "The change stays in place",
    "rolled back": "The state before the change is back",
    "asked after a roll-back": "An earlier change was made and put back.",
    "rejected after a roll-back": "An earlier change was made and put back.",
    "escalated after a roll-back": "The change was made and put back.",
}


def test_the_lives_below_cover_every_phase(stage, scenes):
    reached = {incident.phase for incident in life(stage, scenes).values()}
    assert reached >= set(Phase) - {Phase.ROLLING_BACK}  # stands in test_a_roll_back_under_way


@pytest.mark.slow
def test_every_surface_says_of_every_phase_what_was_changed(stage, scenes):
    """Nothing was changed exactly where nothing was; else what was made, and whether it stands."""
    for name, incident in life(stage, scenes).items():
        stage.clock.at = incident.phase_at
        for surface, said in surfaces(stage, incident).items():
            told = f"{name}, {surface}: {said}"
            if name in UNTOUCHED:
                assert OURS[0] in said, told
            if name in TOUCHED:
                assert TOUCHED[name] in said, told
                assert not any(words in said for words in OURS), told


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (Verdict.NOT_RECOVERED, "The change did not help; the state before it is being put back."),
        (Verdict.INCONCLUSIVE, "could not be measured, which does not count as success; the state before it is being"),
    ],
)
def test_a_roll_back_under_way_says_why(stage, verdict, said):
    verifying = stage.verifying(stage.applying(stage.said(stage.waiting(), Choice.APPROVE)))
    judged = verifying.with_(verification=verifying.verification.with_(verdict=verdict))
    rolling = stage.move(judged, Phase.ROLLING_BACK, "rolling back")
    for surface, text in surfaces(stage, rolling).items():
        assert said in text, surface


def test_a_roll_back_that_failed_is_not_called_done(stage):
    """Escalated with the change perhaps still in place: no surface says that nothing was changed, or that it is back."""
    verifying = stage.verifying(stage.applying(stage.said(stage.waiting(), Choice.APPROVE)), good=False)
    rolling = stage.move(verifying, Phase.ROLLING_BACK, "rolling back")
    undo = rolling.execution.effects[0].with_(key="99", kind=EffectKind.ROLL_BACK, state=EffectState.STARTED)
    lost = rolling.with_(execution=rolling.execution.with_effect(undo))
    escalated = stage.move(lost, Phase.ESCALATED, "escalated", ended_why="the roll-back was refused")
    for surface, text in surfaces(stage, escalated).items():
        assert "it is not confirmed that it was put back" in text, surface
        assert not any(words in text for words in OURS), surface


def test_a_change_that_the_platform_never_took_is_not_called_made(stage):
    applying = stage.applying(stage.said(stage.waiting(), Choice.APPROVE))
    never = applying.execution.effects[0].with_(state=EffectState.FAILED, operation=None)
    incident = applying.with_(execution=applying.execution.with_effect(never))
    assert changed_so_far(incident) == "Nothing has been changed."


@pytest.mark.parametrize("phase", [Phase.APPROVED, Phase.VERIFYING, Phase.ROLLING_BACK, Phase.ROLLED_BACK])
def test_a_persons_task_is_never_called_an_applied_change(stage, scenes, phase):
    """What a person does is nobody's change of ours, whatever the phase."""
    waiting = stage.waiting(make=scenes.person_plan)
    taken = stage.said(waiting, Choice.APPROVE)
    execution = stage.applying(stage.said(stage.waiting("s-other"), Choice.APPROVE)).execution
    incident = taken.with_(phase=phase, execution=execution.with_(plan=taken.plan.id, effects=()))
    says = standing(incident, stage.clock.now()).says
    assert "applied" not in says
    assert "put back" not in says.replace("nothing to put back", "")
    assert "being measured" not in "\n".join(lines(incident, now=stage.clock.now()))
    if phase is not Phase.APPROVED:
        assert "The agent change" in says


def test_a_remedy_from_before_effects_were_kept_is_only_called_tried(stage, scenes):
    again = stage.asked(
        stage.rolled_back(stage.verifying(stage.applying(stage.said(stage.waiting(), Choice.APPROVE)), good=False)),
        scenes.memory_plan,
    )
    old = again.with_(remedies=tuple(r.with_(applied=None, restored=None) for r in again.remedies))
    assert changed_so_far(old) == "An earlier remedy was tried. Nothing else has been changed."


def test_an_answer_long_ago_is_told_by_what_came_of_it(stage, scenes):
    """`approve` of a resolved incident does not go on, and `reject` of an escalated one brings no further plan."""
    resolved = stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting(), Choice.APPROVE))))
    said = next_step(resolved, resolved.plan.id, stage.clock.now())
    assert said.startswith("The change helped: a real completion was answered.")
    assert said.endswith("No further plan comes.")
    rejected = stage.said(stage.waiting("s-2"), Choice.REJECT, why="no")
    assert next_step(rejected, rejected.plan.id, stage.clock.now()).startswith("The plan was rejected. Whether")
    again = stage.asked(rejected, scenes.memory_plan)
    assert next_step(again, rejected.plan.id, stage.clock.now()) == (
        f"Plan {again.plan.id} has taken its place and needs an answer."
    )
    escalated = stage.escalated(stage.said(stage.waiting("s-3"), Choice.REJECT, why="no"))
    said = next_step(escalated, escalated.plan.id, stage.clock.now())
    assert said.startswith("A person must take over: the agent does nothing more here. Nothing has been changed.")
    assert said.endswith("No further plan comes unless somebody asks for one.")


@pytest.mark.slow
def test_the_deadline_is_told_only_while_the_plan_can_be_answered(stage, scenes):
    """No surface says what happens if nobody answers once somebody did, or the time is over."""
    for name, incident in life(stage, scenes).items():
        if incident.plan is None:
            continue
        open_ = incident.phase is Phase.ASKED
        stage.clock.at = incident.phase_at
        for surface, said in surfaces(stage, incident).items():
            told = "If nobody answers" in said or "expires " in said
            assert told == (open_ and surface != "answer"), (name, surface)
    asked = stage.waiting("s-late")
    stage.clock.at = asked.plan.expires_at
    for surface, said in surfaces(stage, asked).items():
        if surface != "card":  # a message is what it was when it was sent; it is replaced when the plan expires
            assert "If nobody answers" not in said, surface


@pytest.mark.parametrize("phase", sorted(BEFORE_DECISION))
def test_what_nobody_decided_is_never_called_done(stage, phase):
    incident = stage.waiting().with_(phase=phase)
    says = standing(incident, stage.clock.now()).says
    assert not re.search(r"applied|made and|put back|helped", says)
