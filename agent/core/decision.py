"""A decision is who said yes or no to exactly which plan; its receipt is signed by the function that heard it."""

import hashlib
import hmac
from enum import StrEnum

from pydantic import AwareDatetime

from agent.core.plan import Plan
from agent.core.serving import Target
from agent.core.value import Value, canonical, digest
from agent.errors import PolicyRefused


class Answer(StrEnum):
    """What was said."""

    APPROVE = "approve"
    REJECT = "reject"


class Channel(StrEnum):
    """Through what it was said."""

    COMMAND_LINE = "command_line"
    CONSOLE = "console"
    SLACK = "slack"
    WEBHOOK = "webhook"
    POLICY = "policy"


class Decision(Value):
    """One answer to one plan.

    Attributes:
        who: The person as the channel names them; ``verified`` says whether the channel proved it.
        prior_template: Digest of the template that an undo puts back.
        receipt: Hex HMAC-SHA256 over everything else, made with a key that only `decide` and the executor hold.
    """

    plan: str
    plan_digest: str
    incident: str
    answer: Answer
    who: str
    verified: bool
    channel: Channel
    why: str = ""
    at: AwareDatetime
    expires_at: AwareDatetime
    target: Target
    policy: str
    prior_template: str
    receipt: str = ""

    @property
    def id(self) -> str:
        """The receipt's own name; used once."""
        return digest(self.with_(receipt=""))


def sign(decision: Decision, key: bytes) -> Decision:
    """Return the decision with its receipt."""
    return decision.with_(receipt=_mac(decision, key))


def check_receipt(decision: Decision, plan: Plan, key: bytes) -> None:
    """Refuse a decision that was not signed with ``key``, or that covers another plan.

    Raises:
        PolicyRefused: The receipt is forged, or the plan is not the one that was approved.
    """
    if not hmac.compare_digest(decision.receipt, _mac(decision, key)):
        raise PolicyRefused(
            f"plan {plan.id!r} was not applied",
            why="the approval's receipt is not signed by the deciding function",
            mend="approve it again through Slack, the console or the command line; look at who writes to the store",
        )
    if decision.plan_digest != plan.digest or decision.plan != plan.id or decision.target != plan.target:
        raise PolicyRefused(
            f"plan {plan.id!r} was not applied",
            why=f"the approval covers digest {decision.plan_digest[:8]!r}, the plan is now {plan.digest[:8]!r}",
            mend=f"look at the new plan and approve it: sre-agent approve {plan.id}",
        )


def _mac(decision: Decision, key: bytes) -> str:
    body = canonical(decision.with_(receipt="").model_dump(mode="json"))
    return hmac.new(key, body, hashlib.sha256).hexdigest()
