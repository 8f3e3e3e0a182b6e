"""What planning asks of the arithmetic, as a protocol: planning stays free of catalogues and files."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from agent.core.plan.plan import FitSummary
from agent.core.plan.proof import ProofFigure
from agent.core.service.serving import ServingConfig
from agent.core.value import Value


@dataclass(frozen=True, kw_only=True)
class Move:
    """Where an option would run instead, as far as it differs from what runs now.

    Attributes:
        model: Another checkpoint's Hugging Face id; None for the one that is served.
        accelerator: Another accelerator; None for the present one. With it come ``cpu`` and ``memory_mib``, the shape
            that is usual for it on this platform.
        instance_type: The type of machine of that shape, where the platform has types by name.
    """

    model: str | None = None
    accelerator: str | None = None
    cpu: float | None = None
    memory_mib: int | None = None
    instance_type: str | None = None


class ContainerFit(Value):
    """Whether the memory of the container, or of the host, suffices for loading and serving.

    Attributes:
        fits: None where it was not computed, or may go either way.
        sentence: The same for a person; where it is not computed, what would have to be known.
        figures: What it rests on.
    """

    fits: bool | None = None
    sentence: str = "container memory: not computed"
    figures: tuple[ProofFigure, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FitOption:
    """One change that fits.

    Attributes:
        flags: vLLM flags by name with their new value; None removes, an empty string sets a switch.
        note: What it costs the user, in words.
        elsewhere: Checkpoint and hardware, where other flags alone do not do; a person moves a service.
        line: All flags of the option as one shell-quoted line.
        takes_away: What it takes away from what runs now, in one line.
        move: The same move in typed form, where the platform rents it in one piece with as many accelerators as now.
    """

    flags: Mapping[str, str | None]
    fit: FitSummary
    note: str
    cost_usd_per_h: float | None = None
    decode_tokens_per_s: float | None = None
    elsewhere: str | None = None
    line: str = ""
    move: Move | None = None
    takes_away: str = ""


@dataclass(frozen=True, kw_only=True)
class StartUp:
    """How long a start may take.

    Attributes:
        seconds: The slow end.
        says: The sum that gives it, such as ``16.4 GB at 24.7 MB/s: 666 s; torch.compile 120 s``; empty where it was
            only seen.
    """

    seconds: float
    says: str = ""


class Capacity(Protocol):
    """The arithmetic, bound to the catalogues and to what is known of the watched services."""

    def assess(self, service: str, config: ServingConfig) -> FitSummary:
        """Return what the arithmetic says of a configuration; ``fit: not computed`` where it cannot."""
        ...

    def container(self, service: str, config: ServingConfig) -> ContainerFit:
        """Return what the arithmetic says of the container's memory; not computed where it cannot."""
        ...

    def misses(self, service: str, config: ServingConfig) -> str:
        """Return which need of the owner a configuration misses, or nothing; what is not known misses none."""
        ...

    def takes_away(
        self,
        service: str,
        before: ServingConfig,
        after: ServingConfig,
        *,
        usd_per_h: tuple[float | None, float | None],
    ) -> str:
        """Return in one line what a change takes away, with the prices given."""
        ...

    def cost_usd_per_h(self, service: str, config: ServingConfig) -> float | None:
        """Return the price of one instance's hour where the service runs, or None where it is unknown."""
        ...

    def decode_tokens_per_s(self, service: str, config: ServingConfig) -> float | None:
        """Return the expected decode speed of one sequence, or None where it is unknown."""
        ...

    def options(self, service: str, config: ServingConfig) -> tuple[FitOption, ...]:
        """Return ranked changes that fit, the least change first."""
        ...

    def allocation(self, service: str, config: ServingConfig | None, gib: float) -> str | None:
        """Name the tensor or buffer of that size, or None where none matches."""
        ...

    def start_up(self, service: str, config: ServingConfig, *, seen_s: float | None) -> StartUp | None:
        """Return the start-up time to allow, seconds, from size and load rate or from what was seen."""
        ...
