"""What allows a sweep: so many cells, minutes and dollars on one server, approved by a person and signed."""

from datetime import datetime, timedelta
from typing import Final

from pydantic import AwareDatetime, Field

from agent.core.decision.decision import Channel, Person, ReceiptSigner
from agent.core.sweep.cell import PlannedCell
from agent.core.value import Value, canonical, short_id
from agent.errors import PolicyRefused

VALID: Final = timedelta(hours=24)
MOST_CELLS: Final = 200


class SweepRequest(Value):
    """What is to be allowed.

    Attributes:
        service: Name in services.toml; empty for a bare URL.
        endpoint: Scheme, host and port of the server.
        cells: The cells that may be sent.
        max_minutes: Of load, all runs of the sweep together.
        max_usd: What the server may cost meanwhile; None sets no limit.
        usd_per_h: What it costs; None where its price is unknown.
        asker: Who asks, as the channel names them.
        verified: Whether the channel proved it.
    """

    service: str = ""
    endpoint: str
    model: str
    served_model: str
    cells: tuple[PlannedCell, ...] = Field(min_length=1, max_length=MOST_CELLS)
    max_minutes: float = Field(gt=0, le=24 * 60)
    max_usd: float | None = Field(default=None, gt=0)
    usd_per_h: float | None = Field(default=None, ge=0)
    asker: str = Field(min_length=1, max_length=320)
    channel: Channel
    verified: bool = False
    made_at: AwareDatetime

    @property
    def id(self) -> str:
        """The id of the sweep: derived from all of it."""
        return short_id("sweep", self.model_dump(mode="json"))


class SweepGrant(Value):
    """The signed approval of one request.

    Attributes:
        approver: As the channel names them; the last one, where several people had to approve.
        others: Those who approved before.
        receipt: Hex HMAC-SHA256 over everything else.
    """

    request: SweepRequest
    approver: str
    channel: Channel
    verified: bool
    approved_at: AwareDatetime
    expires_at: AwareDatetime
    others: tuple[Person, ...] = ()
    receipt: str = ""

    @property
    def people(self) -> tuple[Person, ...]:
        """Everybody who approved, the last one last."""
        return (*self.others, Person(who=self.approver, channel=self.channel, verified=self.verified))


def sign_grant(grant: SweepGrant, signer: ReceiptSigner) -> SweepGrant:
    """Return the grant with its receipt.

    Raises:
        DependencyFailed: The holder of the key did not answer.
    """
    return grant.with_(receipt=signer.sign(_body(grant)))


def check_signed(grant: SweepGrant, request: SweepRequest, signer: ReceiptSigner, *, now: datetime) -> None:
    """Refuse unless the grant is signed, covers exactly this request, and has not expired.

    Raises:
        PolicyRefused: Any doubt.
        DependencyFailed: The holder of the key did not answer; nothing may follow.
    """
    why = ""
    if not grant.receipt or not signer.verify(_body(grant), grant.receipt):
        why = "its approval is not signed by this installation"
    elif grant.request != request:
        why = "the approval covers another sweep"
    elif now >= grant.expires_at:
        why = f"the approval expired at {grant.expires_at:%Y-%m-%d %H:%M} UTC"
    if why:
        raise PolicyRefused(
            f"sweep {request.id!r} was not run", why=why, hint="ask for it again with another --out, and approve that"
        )


def _body(grant: SweepGrant) -> bytes:
    said = grant.with_(receipt="").model_dump(mode="json")
    if not grant.others:
        del said["others"]  # as it was signed before several people could be asked for
    return b"sweep-grant:" + canonical(said)
