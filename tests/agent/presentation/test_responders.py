"""Who takes care of an incident is said in one line, and nothing where nobody does."""

from agent.core.decision.decision import Channel
from agent.core.decision.person_act import PersonAct
from agent.presentation.responders import responders_text


def test_who_acknowledged_and_who_has_it(stage):
    incident = stage.open()
    assert responders_text(incident) == ""
    act = PersonAct(who="ana", verified=False, channel=Channel.CONSOLE, at=incident.opened_at)
    said = responders_text(incident.with_(acknowledged=act, assignee="Ben"))
    assert said == "acknowledged by ana (not verified) at 2026-06-08 14:31 UTC; assigned to Ben"
    assert responders_text(incident.with_(assignee="Ben")) == "assigned to Ben"
