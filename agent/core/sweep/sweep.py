"""One sweep as it is kept in its folder: what was asked, the plan, and what it measures."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, TypeVar

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from agent.core.decision.decision import Channel
from agent.core.sweep.grant import MOST_CELLS, SweepGrant, SweepRequest
from agent.core.sweep.planning import SweepPlan
from agent.core.sweep.provenance import Limits, Provenance
from agent.core.value import Value
from agent.errors import InputRejected
from agent.strict_json import read_object

SWEEP_FILE: Final = "sweep.json"
GRANT_FILE: Final = "grant.json"
RESERVED_FILE: Final = "reserved.json"
FILE_BYTES: Final = 10_000_000

# Seconds charged in advance to the cell that is being measured, by its id.
Reserved = dict[str, Annotated[float, Field(ge=0)]]
_RESERVED: Final = TypeAdapter(Reserved)

_SERVER: Final = ("service", "endpoint", "model", "served_model")
_Kept = TypeVar("_Kept", bound=Value)
_Read = TypeVar("_Read")


class Subject(Value):
    """The server that is measured, as far as it is known; empty or None means that nobody said.

    Attributes:
        endpoint: Scheme, host and port, without a path.
        tokenizer: A folder or a Hugging Face id.
        flags: The server's flags, shell-quoted, without secrets.
        key_name: The name of its key in SERVICE_API_KEYS; of a service its own.
        notes: What the prediction took for granted, or could not know.
    """

    service: str = ""
    endpoint: str
    model: str
    served_model: str
    tokenizer: str
    flags: str | None = None
    vllm: str = ""
    platform: str = ""
    region: str = ""
    accelerator: str = ""
    accelerator_count: int = 1
    instances: int | None = None
    image: str = ""
    revision: str = ""
    limits: Limits = Limits()
    key_name: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SweepAsker:
    """Who asks for a sweep, and what it may take.

    Attributes:
        who: As the channel names them.
        verified: Whether the channel proved it.
        max_minutes: Of load.
        max_usd: What the server may cost meanwhile; None sets no limit.
        at: When they ask.
    """

    who: str
    channel: Channel
    verified: bool = False
    max_minutes: float
    max_usd: float | None
    at: datetime


def sweep_request(asker: SweepAsker, subject: Subject, plan: SweepPlan, *, usd_per_h: float | None) -> SweepRequest:
    """Return what is to be allowed: the cells of the plan that can run; all of them where none can, to be shown.

    Args:
        asker: Who asks.
        subject: The server that is measured.
        plan: The cells.
        usd_per_h: What the server costs; None where its price is unknown.

    Raises:
        InputRejected: There are too many cells, or USD are limited and the price is unknown.
    """
    cells = tuple(cell.planned for cell in plan.runnable or plan.cells)
    if len(cells) > MOST_CELLS:
        raise InputRejected("no sweep was planned", why=f"{len(cells)} cells", hint=f"ask for {MOST_CELLS} at most")
    if asker.max_usd is not None and usd_per_h is None:
        why = "the price of the server is unknown, so a limit in USD limits nothing"
        hint = "limit the minutes alone, or say what it costs: usd_per_h in services.toml, or --accelerator"
        raise InputRejected("no sweep was planned", why=why, hint=hint)
    return SweepRequest(
        service=subject.service,
        endpoint=subject.endpoint,
        model=subject.model,
        served_model=subject.served_model,
        cells=cells,
        max_minutes=asker.max_minutes,
        max_usd=asker.max_usd,
        usd_per_h=usd_per_h,
        asker=asker.who,
        channel=asker.channel,
        verified=asker.verified,
        made_at=asker.at,
    )


class Sweep(Value):
    """A sweep from the moment it was asked for.

    Attributes:
        stop_over_saturated: Whether the load generator ends a cell whose queue keeps growing.
        provenance: Of every cell; None until the first request is sent.
    """

    request: SweepRequest
    subject: Subject
    plan: SweepPlan
    seed: int = 0
    ignore_eos: bool = True
    stop_over_saturated: bool = False
    provenance: Provenance | None = None

    @model_validator(mode="after")
    def _of_one_server(self) -> "Sweep":
        """The approval signs the request, and the load goes to the subject."""
        if any(getattr(self.subject, name) != getattr(self.request, name) for name in _SERVER):
            raise ValueError("what was asked for and what would be measured are different servers")
        return self

    @property
    def shows_what_it_asks(self) -> bool:
        """Whether the plan that people see has exactly the cells that an approval would cover."""
        return {cell.planned for cell in self.plan.runnable} == set(self.request.cells)


def sweep_from(raw: bytes) -> Sweep:
    """Return a stored sweep.

    Raises:
        InputRejected: It is none.
    """
    return _read(raw, Sweep, SWEEP_FILE)


def grant_from(raw: bytes) -> SweepGrant:
    """Return a stored grant; whether it holds is asked elsewhere.

    Raises:
        InputRejected: It is none.
    """
    return _read(raw, SweepGrant, GRANT_FILE)


def reserved_from(raw: bytes) -> Reserved:
    """Return stored seconds that are charged in advance.

    Raises:
        InputRejected: They are none.
    """
    return _checked(raw, _RESERVED.validate_python, RESERVED_FILE)


def _read(raw: bytes, kind: type[_Kept], name: str) -> _Kept:
    return _checked(raw, kind.model_validate, name)


def _checked(raw: bytes, read: Callable[[object], _Read], name: str) -> _Read:
    hint = "take another --out"
    found = read_object(raw, what=name, limit=FILE_BYTES, hint=hint)
    try:
        return read(found)
    except ValidationError as error:
        raise InputRejected(f"{name} was not read", why=str(error.errors()[0]["msg"]), hint=hint) from error
