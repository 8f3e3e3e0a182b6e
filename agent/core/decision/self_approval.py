"""Whether somebody may approve what they asked for themselves."""

from typing import Final

from agent.core.decision.decision import Channel

_OWN_MACHINE: Final = frozenset({Channel.COMMAND_LINE, Channel.CONSOLE})


def may_approve_own(*, local: bool, verified: bool, asked_through: Channel | None, rule: bool | None = None) -> bool:
    """Whether the asker of a change may approve its plan.

    Who asks does not approve. On one machine whose identities nobody proves there is only one person to ask: a change
    that came from its console or command line may be approved there by the same name. One that an AI client asked for
    through MCP never may. A rule of the policy may say otherwise, but for MCP.

    Args:
        local: Whether this is one machine's own installation.
        verified: Whether the channel of the approval proved who approves.
        asked_through: The channel of the request; None for what was not asked for in a request, such as a replay.
        rule: What the policy's rules say (``self_approve``); None where they say nothing.
    """
    if rule is not None:
        return rule and asked_through is not Channel.MCP
    return local and not verified and asked_through in _OWN_MACHINE
