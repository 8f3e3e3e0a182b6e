"""Every command has an answer in every phase: it goes, or it is said why not and what to do instead."""

import pytest

from agent.core.decision.decision import Channel, PersonAct
from agent.core.incident.command import Command, impossible, possible
from agent.core.incident.phase import ENDS, Phase
from agent.core.plan.action import ForPerson
from tests.agent.stages.conftest import Bench

TASK = (ForPerson(action="fix_mount_permissions", instruction="Give it access."),)
GOES_ON = set(Phase) - ENDS | {Phase.ESCALATED}
GOES = {
    Command.ACKNOWLEDGE: GOES_ON,
    Command.ASSIGN: GOES_ON,
    Command.COMMENT: set(Phase),
    Command.CLOSE: {Phase.ESCALATED},
    Command.REPLAN: {Phase.ESCALATED},
    Command.DONE: set(),
    Command.ROLL_BACK: set(),  # nothing was applied
}
OF_A_TASK = {
    **GOES,
    Command.DONE: {Phase.ASKED, Phase.APPROVED, Phase.VERIFYING, Phase.ESCALATED},
}


@pytest.fixture
def asked():
    return Bench().asked()


@pytest.mark.parametrize("phase", Phase)
def test_a_command_goes_or_says_what_does(asked, phase):
    incident = asked.with_(phase=phase)
    by_person = incident.with_(plan=incident.plan.with_(actions=TASK))
    for life, table in ((incident, GOES), (by_person, OF_A_TASK)):
        assert set(possible(life)) == {c for c, goes in table.items() if phase in goes}
        for command in set(Command) - set(possible(life)):
            said = impossible(life, command)
            assert said.why, command
            assert said.hint, command


def test_who_asked_for_another_plan_is_waited_for(asked):
    act = PersonAct(who="ana", verified=False, channel=Channel.CONSOLE, at=asked.opened_at)
    said = impossible(asked.with_(phase=Phase.ESCALATED, replan=act), Command.REPLAN)
    assert said is not None
    assert "ana (not verified) asked for another plan" in said.why
