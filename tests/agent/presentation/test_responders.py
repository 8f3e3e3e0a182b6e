"""Who takes care of an incident is said in one line, and nothing where nobody does."""

from agent.core.decision.decision import Channel, Choice
from agent.core.decision.person_act import PersonAct
from agent.presentation.responders import owner_text, responders_text


def test_who_acknowledged_and_who_has_it(stage):
    incident = stage.open()
    assert responders_text(incident) == ""
    act = PersonAct(who="ana", verified=False, channel=Channel.CONSOLE, at=incident.opened_at)
    said = responders_text(incident.with_(acknowledged=act, assignee="Ben"))
    assert said == "acknowledged by ana (not verified) at 2026-06-08 14:31 UTC; assigned to Ben"
    assert responders_text(incident.with_(assignee="Ben")) == "assigned to Ben"


def test_where_nobody_has_reacted_it_says_when_people_are_reminded(stage):
    incident = stage.open()
    said = responders_text(incident.with_(renotify_at=incident.opened_at))
    assert said == "not acknowledged; reminder at 14:31 UTC"


def test_an_owner_is_named_before_the_channel_through_which_they_are_reached():
    assert [owner_text(owner) for owner in ("slack:#llm", "console")] == ["#llm (slack)", "console"]


def test_who_took_a_task_on_has_it_until_it_is_over(stage, scenes):
    incident = stage.waiting(make=scenes.person_plan)
    assert responders_text(incident) == "not acknowledged; reminder at 14:46 UTC"
    taken = stage.said(incident, Choice.APPROVE, who="ada")
    assert responders_text(taken) == "task taken on by ada (not verified)"
    plain = stage.said(stage.waiting("other"), Choice.APPROVE, who="ada")
    assert responders_text(plain) == ""
