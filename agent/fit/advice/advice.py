"""The words of an advice: a change, what it costs the user, an option with its proof, and the answer as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from agent.fit.advice.tradeoff import Tradeoff
from agent.fit.flags.flag_text import flag_line
from agent.fit.flags.flags import Flags
from agent.fit.needs import Needs
from agent.fit.report import FitReport
from agent.fit.speed.platform_start import StartThere
from agent.fit.speed.price import Shape

Setting = str | int | float | bool | tuple[tuple[str, int], ...] | None
"""A flag's value before or after; None means "not given"."""


class Reach(StrEnum):
    """How far an option goes."""

    FLAGS = "flags"
    CHECKPOINT = "checkpoint"
    HARDWARE = "hardware"


class Obstacle(StrEnum):
    """The constraint that leaves no option."""

    DEVICE_MEMORY = "device_memory"
    CONTEXT = "context"
    USERS = "users"
    SPEED = "speed"
    BUDGET = "budget"
    IMAGES = "images"
    SPARE = "spare"
    UNSUPPORTED = "unsupported"
    NOT_MODELLED = "not_modelled"


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """What an option must keep.

    Attributes:
        needs: Context and users.
        tokens_per_s: Slowest decode rate of one request that serves; compared with the low end of the prediction.
        usd_per_h: Most that a running hour may cost; an unknown price does not pass.
        images: True keeps image and sound input; False says nobody uses it; None: not stated.
        spare_bytes: Memory that must stay free at the pessimistic end, for a start that failed although it should fit.
        host_bytes: Memory of the host, for offload; None: the shape's, or unknown.
        platform: Where it runs ("cloud_run"), for prices; None: the usual shape of the accelerator.
    """

    needs: Needs = field(default_factory=Needs)
    tokens_per_s: float | None = None
    usd_per_h: float | None = None
    images: bool | None = None
    spare_bytes: int = 0
    host_bytes: int | None = None
    platform: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One typed difference: a vLLM flag by its field name, or ``model``, ``accelerator``, ``count``, ``platform``."""

    flag: str
    before: Setting
    after: Setting

    def to_json(self) -> dict[str, Setting]:
        """As the command line prints it."""
        return {"flag": self.flag, "before": self.before, "after": self.after}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What an option costs the user.

    Attributes:
        context_tokens: Longest request it serves.
        users: Requests of that length that are served at once without queueing, at the pessimistic end.
        quality: Losses in words, worst first; () if none.
        quality_rank: 0 none, rising with the loss; orders options only.
        decode_tokens_per_s: Bounds for one request; None if unknown.
        usd_per_h: None if unknown.
        usd_per_million_tokens: At ``users`` requests at once, from the middle of the bounds; None if unknown.
        platform: Where the price holds; "" if unknown.
        price_source: Shape and date of the price; "" if unknown.
        host_bytes: Pinned host memory that offload takes.
    """

    context_tokens: int
    users: int
    quality: tuple[str, ...]
    quality_rank: int
    decode_tokens_per_s: tuple[float, float] | None
    usd_per_h: float | None
    usd_per_million_tokens: float | None
    platform: str
    price_source: str
    host_bytes: int

    def to_json(self) -> dict[str, Any]:
        """As the command line prints it."""
        speed = self.decode_tokens_per_s
        return {
            "context_tokens": self.context_tokens,
            "users": self.users,
            "quality": list(self.quality),
            "decode_tokens_per_s": None if speed is None else [round(speed[0], 2), round(speed[1], 2)],
            "usd_per_h": self.usd_per_h,
            "usd_per_million_tokens": self.usd_per_million_tokens,
            "platform": self.platform,
            "price_source": self.price_source,
            "host_bytes": self.host_bytes,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Concurrency:
    """How many requests the platform may hand to one instance.

    Attributes:
        container: Setting of the platform (Cloud Run's concurrency): never over ``max_num_seqs``.
        queues_from: Requests of full length from which on vLLM queues.
    """

    container: int
    queues_from: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """One way to serve, with its proof.

    Attributes:
        reach: Flags alone, another checkpoint, or other hardware.
        changes: Every difference to what runs now, in a fixed order.
        model, accelerator, count, flags: What would run.
        fit: Its fit report; ``fits`` is True for a proposal, None for a marginal one.
        cost: What it costs.
        concurrency: What the platform should be told.
        note: How sure it is, in one or two sentences.
        tradeoff: What it takes away from what runs now.
        misses_needs: Whether it is slower than anybody wants to wait for; such options come last.
        start: What its start meets on the platform of other hardware; None elsewhere, or where nothing is known.
    """

    reach: Reach
    changes: tuple[Change, ...]
    model: str
    accelerator: str
    count: int
    flags: Flags
    fit: FitReport
    cost: Cost
    concurrency: Concurrency
    note: str
    tradeoff: Tradeoff = field(default_factory=Tradeoff)
    misses_needs: bool = False
    start: StartThere | None = None

    @property
    def proof(self) -> str:
        """How it is known that it fits: ``computed`` at the pessimistic end of every term, or ``none``."""
        return "computed" if self.fit.fits is True else "none"

    def to_json(self) -> dict[str, Any]:
        """As the command line prints it; ``flags`` is one shell-quoted line."""
        return {
            "reach": self.reach.value,
            "changes": [change.to_json() for change in self.changes],
            "model": self.model,
            "accelerator": self.accelerator,
            "count": self.count,
            "flags": flag_line(self.flags),
            "fit": self.fit.to_contract(),
            "cost": self.cost.to_json(),
            "concurrency": {"container": self.concurrency.container, "queues_from": self.concurrency.queues_from},
            "note": self.note,
            "loses": self.tradeoff.line,
            "largest_loss": self.tradeoff.losses[0],
            "misses_needs": self.misses_needs,
            "proof": self.proof,
            "start": None if self.start is None else self.start.to_json(),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """The same server on the same devices of another platform.

    Attributes:
        before: Where it runs now; None where that was not said.
        shape: What would be rented.
        usd_per_h_before: What the same devices cost where it runs; None if unknown.
        misses: Why it would not do there; () where nothing speaks against it.
        start: What its start meets there; None where nothing is known of the platform.
    """

    before: str | None
    shape: Shape
    usd_per_h_before: float | None
    misses: tuple[str, ...]
    start: StartThere | None

    def to_json(self) -> dict[str, Any]:
        """As the command line prints it."""
        return {
            "from": self.before,
            "platform": self.shape.platform,
            "shape": self.shape.name,
            "region": self.shape.region,
            "usd_per_h_before": self.usd_per_h_before,
            "usd_per_h": self.shape.usd_per_h,
            "scales_to_zero": self.shape.sleeps,
            "misses": list(self.misses),
            "start": None if self.start is None else self.start.to_json(),
            "price_as_of": self.shape.as_of,
            "price_source": self.shape.source,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class RuledOut:
    """Why there is no proposal: the constraint, and what it would have to be."""

    obstacle: Obstacle
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Advice:
    """The answer.

    Attributes:
        current: Fit report of what runs now.
        options: Proposals, best first; every one fits at the pessimistic end and keeps the demand.
        marginal: What may work and may not; never a fix.
        ruled_out: Why flags alone do not do; None where they do, or where nothing has to change.
        searched: Predictions made.
        demand: What was kept.
        moves: Where else what runs, or the best proposal on the same devices, can be rented.
    """

    current: FitReport
    options: tuple[Option, ...]
    marginal: tuple[Option, ...]
    ruled_out: RuledOut | None
    searched: int
    demand: Demand
    moves: tuple[Move, ...] = ()

    def top(self, most: int | None) -> Advice:
        """The same answer with the best ``most`` proposals alone; None leaves all."""
        return self if most is None else replace(self, options=self.options[:most])

    def to_json(self) -> dict[str, Any]:
        """As the command line prints it: proposals under ``options``, best first."""
        ruled_out = self.ruled_out
        return {
            "current": self.current.to_contract(),
            "options": [{"rank": rank, **option.to_json()} for rank, option in enumerate(self.options, start=1)],
            "marginal": [option.to_json() for option in self.marginal],
            "ruled_out": None if ruled_out is None else {"constraint": ruled_out.obstacle.value, "why": ruled_out.why},
            "searched": self.searched,
            "moves": [move.to_json() for move in self.moves],
        }
