"""What it costs: dollars per hour of a shape, per million tokens, and with the hours it sleeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent.fit.bounds import GIB

HOUR_S = 3600


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """What a second costs where a platform bills parts apart, USD.

    Attributes:
        gpu_usd_per_s: One device.
        vcpu_usd_per_s: One vCPU.
        gib_usd_per_s: One GiB of host memory.
    """

    gpu_usd_per_s: float
    vcpu_usd_per_s: float
    gib_usd_per_s: float

    def usd_per_h(self, *, count: int, vcpus: float, memory_gib: float) -> float:
        """Price of one running hour of so many devices, vCPUs and GiB."""
        second = self.gpu_usd_per_s * count + self.vcpu_usd_per_s * vcpus + self.gib_usd_per_s * memory_gib
        return round(second * HOUR_S, 4)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """One thing that can be rented, and its price.

    Attributes:
        name: "cloud-run-l4".
        platform: "cloud_run", "gke", "container_apps", "ec2", "tpu_vm", "gce".
        accelerator: Contract name, "nvidia-l4".
        count: Devices in it.
        vcpus: Of the instance; 0 if not stated.
        memory_bytes: Host memory; 0 if not stated.
        usd_per_h: Price of one running hour; None if unknown.
        sleeps: Costs nothing while no instance runs.
        region: Where the price holds.
        as_of: Date of the price, ISO.
        source: Where it stands, and how sure that is.
        rates: What its parts cost, where the platform bills them apart; None where only the whole has a price.
        commitment: What is agreed beforehand, where it is not rented on demand; empty where it is.
    """

    name: str
    platform: str
    accelerator: str
    count: int
    vcpus: int
    memory_bytes: int
    usd_per_h: float | None
    sleeps: bool
    region: str
    as_of: str
    source: str
    rates: Rates | None = None
    commitment: str = ""

    def priced(self, *, vcpus: float | None, memory_bytes: int | None) -> float | None:
        """Price of a running hour with other CPUs or memory; the shape's own where nothing else is billed."""
        if self.rates is None:
            return self.usd_per_h
        cpus = self.vcpus if vcpus is None else vcpus
        memory = self.memory_bytes if memory_bytes is None else memory_bytes
        return self.rates.usd_per_h(count=self.count, vcpus=cpus, memory_gib=memory / GIB)


def find_shapes(
    shapes: Sequence[Shape], accelerator: str, count: int, *, platform: str | None = None
) -> tuple[Shape, ...]:
    """Shapes with at least so many of an accelerator, the table's order kept (its first is the usual choice).

    Args:
        shapes: The price table.
        accelerator: Contract name.
        count: Devices needed.
        platform: Only this one's; None takes all.

    Returns:
        Exact counts first, then larger ones; () if nobody here rents it.
    """
    fitting = [
        shape
        for shape in shapes
        if shape.accelerator == accelerator and shape.count >= count and platform in {None, shape.platform}
    ]
    return tuple(sorted(fitting, key=lambda shape: shape.count))


def told_apart(before: float | None, after: float | None) -> tuple[str, str]:
    """Two prices with as many digits as tell them apart, two where six do not; "unknown" where there is none."""
    digits = 2
    if before is not None and after is not None:
        digits = next((n for n in (2, 4, 6) if f"{before:.{n}f}" != f"{after:.{n}f}"), 2)
    one, other = ("unknown" if usd is None else f"{usd:,.{digits}f}" for usd in (before, after))
    return one, other


def price_change(before: float | None, after: float | None) -> str:
    """Both prices where their words differ, "1.42 -> 2.84"; else the one, "1.42"."""
    one, other = told_apart(before, after)
    return other if one == other else f"{one} -> {other}"


def usd_per_million_tokens(usd_per_h: float | None, tokens_per_s: float | None) -> float | None:
    """Price of a million generated tokens on a busy server.

    Args:
        usd_per_h: None if unknown.
        tokens_per_s: All sequences together; None if unknown.

    Returns:
        None if either is unknown or nothing is generated.
    """
    if usd_per_h is None or not tokens_per_s:
        return None
    return usd_per_h / (tokens_per_s * HOUR_S) * 1_000_000
