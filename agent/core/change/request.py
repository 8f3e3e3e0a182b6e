"""A change request: who asks for which typed actions on which service, and why; signed by `decide`."""

from typing import Any, Final, Self

from pydantic import AwareDatetime, Field, model_validator

from agent.core.decision.decision import Channel, ReceiptSigner
from agent.core.plan.action import Action, ForPerson
from agent.core.service.serving import Target
from agent.core.value import Value, canonical, digest, short_id
from agent.errors import PolicyRefused

CHANGE_REQUESTED: Final = "change_requested"
"""What a requested change is about, where an incident names a failure class; it is none of them."""

REQUEST_PREFIX: Final = "rq-"
MOST_ACTIONS: Final = 16
WHY_CHARS: Final = 1000
ASKER_CHARS: Final = 320


class DesiredChange(Value):
    """A change that somebody wants; nothing says yet who, and nothing of it was checked.

    Attributes:
        why: Their reason, untrusted; secrets are taken out of it before it is kept.
        target: The state of the service that they saw; None where nobody could look.
        supersede: Whether it may take the place of a plan that nobody approved yet.
    """

    service: str
    actions: tuple[Action, ...]
    why: str
    target: Target | None = None
    supersede: bool = False

    @property
    def body(self) -> dict[str, Any]:
        """What is sent to `decide` to ask for it."""
        return self.model_dump(mode="json", include=set(DesiredChange.model_fields))


class ChangeRequest(Value):
    """A change that a person asks for; never changed after it was recorded.

    Attributes:
        asker: The person as the channel names them; ``verified`` says whether the channel proved it. May not approve.
        why: The reason that was given, without secrets; untrusted text.
        target: The state of the service that the asker saw; None where nobody could look.
        superseded: The incidents and requests whose plans it takes the place of, before anybody approved them.
        waits_for: The incident or request whose change was under way when this was asked for; it is planned after it.
        receipt: Hex HMAC-SHA256 over everything else, made with the key that receipts of decisions are made with.
    """

    id: str = Field(pattern=r"^rq-[0-9a-f]{12}$")
    service: str = Field(min_length=1, max_length=63)
    actions: tuple[Action, ...] = Field(min_length=1, max_length=MOST_ACTIONS)
    why: str = Field(min_length=1, max_length=WHY_CHARS)
    asker: str = Field(min_length=1, max_length=ASKER_CHARS)
    channel: Channel
    verified: bool
    made_at: AwareDatetime
    target: Target | None = None
    superseded: tuple[str, ...] = ()
    waits_for: str | None = None
    receipt: str = ""

    @model_validator(mode="after")
    def _is_a_change(self) -> Self:
        if any(isinstance(action, ForPerson) for action in self.actions):
            raise ValueError("a task for a person is no change that can be asked for")
        return self

    @property
    def key(self) -> str:
        """What makes two requests the same while one of them is open."""
        return request_key(self.asker, self.service, self.actions, self.target)


def request_key(asker: str, service: str, actions: tuple[Action, ...], target: Target | None) -> str:
    """Return the key by which a repeated request is found: asker, service, actions and target."""
    what = [action.model_dump(mode="json") for action in actions]
    return digest([asker.casefold(), service, what, target.model_dump(mode="json") if target is not None else None])


def request_id(key: str, ordinal: int) -> str:
    """Return the id: derived, so that two workers who record one request record the same.

    Args:
        key: What was asked for; see :func:`request_key`.
        ordinal: The first request of that key is 1; the next, after that one has ended, 2.
    """
    return short_id(REQUEST_PREFIX.rstrip("-"), {"key": key, "ordinal": ordinal})


def sign_request(request: ChangeRequest, signer: ReceiptSigner) -> ChangeRequest:
    """Return the request with its receipt.

    Raises:
        DependencyFailed: The holder of the key did not answer.
    """
    return request.with_(receipt=signer.sign(_body(request)))


def check_request(request: ChangeRequest, signer: ReceiptSigner) -> None:
    """Refuse a request that the deciding function did not sign.

    Raises:
        PolicyRefused: It was not, or it says something else now.
        DependencyFailed: The holder of the key did not answer; nothing may follow.
    """
    if not request.receipt or not signer.verify(_body(request), request.receipt):
        raise PolicyRefused(
            f"request {request.id!r} was not carried out",
            why="its receipt is not signed by the deciding function",
            hint="ask for the change again: sre-agent change; check who writes to the store",
        )


def _body(request: ChangeRequest) -> bytes:
    return canonical(request.with_(receipt="").model_dump(mode="json"))
