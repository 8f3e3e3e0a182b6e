"""Who asks does not approve, except the one person of a machine whose names nobody proves."""

import pytest

from agent.core.decision.decision import Channel
from agent.core.decision.self_approval import may_approve_own


@pytest.mark.parametrize("channel", [None, *Channel])
@pytest.mark.parametrize("local", [True, False])
@pytest.mark.parametrize("verified", [True, False])
def test_only_console_and_command_line_of_an_own_machine(channel, local, verified):
    may = may_approve_own(local=local, verified=verified, asked_through=channel)
    assert may_approve_own(local=local, verified=verified, asked_through=channel, rule=False) is False
    by_rule = may_approve_own(local=local, verified=verified, asked_through=channel, rule=True)
    assert by_rule is (channel is not Channel.MCP)
    assert may is (local and not verified and channel in {Channel.CONSOLE, Channel.COMMAND_LINE})
