"""A decision: who approved or rejected exactly which plan; its receipt is signed by the function that received it."""

import hashlib
import hmac
from enum import StrEnum
from typing import Any, Final, Protocol

from pydantic import AwareDatetime

from agent.core.plan.plan import Plan
from agent.core.service.serving import Target
from agent.core.value import Value, canonical, digest
from agent.errors import PolicyRefused

NO_REASON = "no reason given"
"""What people read where somebody rejected and said no more; only Slack allows that."""

UNVERIFIED: Final = "(not verified)"
"""Everybody whom no channel proves: one person, whatever names they give. No approver can be called so."""


def shown_name(name: str, *, verified: bool) -> str:
    """Return somebody's name as people see it, with ``UNVERIFIED`` where no channel proves it."""
    return name if verified else f"{name} {UNVERIFIED}"


class Choice(StrEnum):
    """What was said."""

    APPROVE = "approve"
    REJECT = "reject"


class Channel(StrEnum):
    """Through what it was said; through MCP changes are asked for, and nothing is decided."""

    COMMAND_LINE = "command_line"
    CONSOLE = "console"
    SLACK = "slack"
    WEBHOOK = "webhook"
    KUBERNETES = "kubernetes"
    MCP = "mcp"
    POLICY = "policy"


class Person(Value):
    """Somebody who says something, as the channel names them.

    Attributes:
        who: Empty where nothing says who it is: such a person may read.
        channel: Through what they say it.
        verified: Whether the channel proved who they are.
    """

    who: str
    channel: Channel
    verified: bool


class ReceiptSigner(Protocol):
    """Signs what only the deciding and the executing function may say."""

    def sign(self, body: bytes) -> str:
        """Return the code over a body, hex.

        Raises:
            DependencyFailed: The holder of the key did not answer; nothing is signed.
        """
        ...

    def verify(self, body: bytes, mac: str) -> bool:
        """Whether ``mac`` was made over ``body`` with this key; anything else than a clear yes is no.

        Raises:
            DependencyFailed: The holder of the key did not answer; nothing may follow.
        """
        ...


class HmacReceiptSigner:
    """HMAC-SHA256 with a key in this process."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, body: bytes) -> str:
        """Return the code, 64 hex digits."""
        return hmac.new(self._key, body, hashlib.sha256).hexdigest()

    def verify(self, body: bytes, mac: str) -> bool:
        """Compare in constant time; see the protocol."""
        return hmac.compare_digest(mac.encode("utf-8", "replace"), self.sign(body).encode())


class Vote(Value):
    """One person's approval of a plan that needs several; see :class:`Ballot`.

    Attributes:
        person: Whose it is, whatever the channel: the approver's name in the policy, or ``UNVERIFIED``.
        who: The person as the channel names them; ``verified`` says whether the channel proved it.
        name: What people call them, where the policy says so.
        breaks: Names of the freeze windows in spite of which it was given.
        why: The reason that was given, without secrets; untrusted text, perhaps none.
        withdrawn_at: When the person took it back; None while it stands.
        receipt: Hex HMAC-SHA256 over everything else, made with the key of the decision's receipt.
    """

    plan: str
    plan_digest: str
    incident: str
    person: str
    who: str
    name: str = ""
    verified: bool
    channel: Channel
    breaks: tuple[str, ...] = ()
    why: str = ""
    at: AwareDatetime
    withdrawn_at: AwareDatetime | None = None
    receipt: str = ""

    @property
    def by(self) -> Person:
        """Who gave it."""
        return Person(who=self.who, channel=self.channel, verified=self.verified)

    @property
    def answer(self) -> Choice:
        """What it says."""
        return Choice.APPROVE

    @property
    def shown(self) -> str:
        """The person as people know them."""
        return self.name or self.who

    def signed(self, signer: ReceiptSigner) -> "Vote":
        """Return it with its receipt.

        Raises:
            DependencyFailed: The holder of the key did not answer.
        """
        return self.with_(receipt=signer.sign(self._body))

    def is_signed(self, signer: ReceiptSigner) -> bool:
        """Whether it bears the receipt of the deciding function.

        Raises:
            DependencyFailed: The holder of the key did not answer; nothing may follow.
        """
        return bool(self.receipt) and signer.verify(self._body, self.receipt)

    @property
    def _body(self) -> bytes:
        return canonical({"vote": self.with_(receipt="").model_dump(mode="json")})


class Ballot(Value):
    """The votes about one plan, one for each person; another digest is another ballot."""

    plan: str
    plan_digest: str
    incident: str
    votes: tuple[Vote, ...] = ()

    @property
    def standing(self) -> tuple[Vote, ...]:
        """The votes that nobody took back, in the order in which they were given."""
        return tuple(vote for vote in self.votes if vote.withdrawn_at is None)

    def of(self, person: str) -> Vote | None:
        """Return the vote of a person that stands, or None."""
        return next((vote for vote in self.standing if vote.person == person), None)

    def with_vote(self, vote: Vote) -> "Ballot":
        """Return it with a vote in the place of an earlier one of that person."""
        return self.with_(votes=(*(v for v in self.votes if v.person != vote.person), vote))


class Decision(Value):
    """One answer to one plan.

    Attributes:
        who: The person as the channel names them; ``verified`` says whether the channel proved it. Of several who
            approved, the last.
        name: What people call them, where the policy says so.
        why: The reason that was given, without secrets; untrusted text, perhaps none.
        prior_template: Digest of the template that an undo puts back.
        votes: Of those who approved together; empty where one person is enough.
        breaks: Names of the freeze windows in spite of which it was approved.
        receipt: Hex HMAC-SHA256 over everything else, made with a key that only `decide` and the executor hold.
    """

    plan: str
    plan_digest: str
    incident: str
    answer: Choice
    who: str
    name: str = ""
    verified: bool
    channel: Channel
    why: str = ""
    at: AwareDatetime
    expires_at: AwareDatetime
    target: Target
    policy: str
    prior_template: str
    votes: tuple[Vote, ...] = ()
    breaks: tuple[str, ...] = ()
    receipt: str = ""

    @property
    def by(self) -> Person:
        """Who gave it; of several, the last."""
        return Person(who=self.who, channel=self.channel, verified=self.verified)

    @property
    def id(self) -> str:
        """The receipt's own name; used once."""
        return digest(_content(self))

    @property
    def shown(self) -> str:
        """The person as people know them; of several who approved, all of them."""
        return " and ".join(dict.fromkeys(vote.shown for vote in self.votes)) or self.name or self.who


def sign(decision: Decision, key: bytes | ReceiptSigner) -> Decision:
    """Return the decision with its receipt.

    Raises:
        DependencyFailed: The holder of the key did not answer.
    """
    return decision.with_(receipt=_signer(key).sign(_body(decision)))


def check_receipt(decision: Decision, plan: Plan, key: bytes | ReceiptSigner) -> None:
    """Refuse a decision that was not signed with ``key``, or that covers another plan.

    Raises:
        PolicyRefused: The receipt is forged, or the plan is not the one that was approved.
        DependencyFailed: The holder of the key did not answer; nothing may follow.
    """
    if not decision.receipt or not _signer(key).verify(_body(decision), decision.receipt):
        raise PolicyRefused(
            f"plan {plan.id!r} was not applied",
            why="the approval's receipt is not signed by the deciding function",
            hint="approve it again through Slack, the console or the command line; check who writes to the store",
        )
    covered = (decision.plan, decision.incident, decision.target, decision.policy, decision.prior_template)
    asked = (plan.id, plan.incident, plan.target, plan.policy, plan.prior_template)
    if decision.plan_digest != plan.digest or covered != asked or decision.expires_at > plan.expires_at:
        raise PolicyRefused(
            f"plan {plan.id!r} was not applied",
            why=f"the approval covers digest {decision.plan_digest[:8]!r}, the plan is now {plan.digest[:8]!r}",
            hint=f"look at the new plan and approve it: sre-agent approve {plan.id}",
        )


def _body(decision: Decision) -> bytes:
    return canonical(_content(decision))


def _content(decision: Decision) -> dict[str, Any]:
    """Everything but the receipt; fields of a later version only where they say something, so that receipts stay."""
    data = decision.with_(receipt="").model_dump(mode="json")
    return {name: value for name, value in data.items() if value or name not in {"votes", "breaks"}}


def _signer(key: bytes | ReceiptSigner) -> ReceiptSigner:
    return HmacReceiptSigner(key) if isinstance(key, bytes) else key


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
        return shown_name(self.name or self.who, verified=self.verified)
