"""What is kept of something that a person did about an incident: who, when, through which channel, and why."""

from pydantic import AwareDatetime

from agent.core.decision.decision import Channel
from agent.core.value import Value


class PersonAct(Value):
    """One thing that a person did.

    Attributes:
        who: The person as the channel names them; ``verified`` says whether the channel proved it.
        name: What people call them, where the policy says so.
        why: What they said, without secrets; untrusted text, perhaps none.
    """

    who: str
    name: str = ""
    verified: bool
    channel: Channel
    at: AwareDatetime
    why: str = ""

    @property
    def shown(self) -> str:
        """The person as people know them, with a word where nothing proves it."""
        return (self.name or self.who) + ("" if self.verified else " (not verified)")
