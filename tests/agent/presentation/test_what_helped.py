"""What an earlier incident of the same cause tells, said from its state."""

from agent.core.decision.decision import Choice
from agent.core.incident.phase import Phase
from agent.presentation.what_helped import what_helped
from tests.agent.entrypoints.console import scenes


def test_each_end_says_what_came_of_it():
    stage = scenes.a_stage()
    resolved = stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting("a"), Choice.APPROVE))))
    quiet = stage.move(stage.waiting("b"), Phase.SELF_RECOVERED, "closed", ended_why="the alert closed")
    escalated = stage.escalated(stage.diagnosed(stage.open("c")))
    told = what_helped(resolved)
    assert (told.helped, told.says.startswith("This helped: ")) == (True, True)
    assert "probe" in told.says
    assert (what_helped(quiet).helped, what_helped(quiet).says) == (True, "It recovered by itself. The alert closed.")
    assert what_helped(stage.waiting("d")).says.startswith("It is still open. Proposed: ")
    assert what_helped(stage.open("e")).says == "It is still open."
    assert what_helped(escalated).helped is None
