"""What a model costs on everything that can be rented: one row per shape, and the cheapest that meets the needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent.errors import InputRejected
from agent.fit.advice.advise import SLOWEST_TOKENS_PER_S
from agent.fit.advice.cost import users_at_once
from agent.fit.assessment import Setup
from agent.fit.bounds import GIB, Bounds
from agent.fit.cost.bill import Bill, Throughput, bill
from agent.fit.cost.load import Load
from agent.fit.flags.flags import Flags
from agent.fit.host_memory import host_need
from agent.fit.model_and_hardware import AcceleratorFacts, ModelFacts
from agent.fit.needs import Needs
from agent.fit.report import FitReport
from agent.fit.speed.platform_start import PlatformStart, StartThere, start_on
from agent.fit.speed.price import Shape
from agent.fit.speed.speed import decode_speed
from agent.fit.version_rules import VersionRules


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredSpeed:
    """Throughput that a load generator measured.

    Attributes:
        model: Name as it was asked for.
        accelerator: Contract name.
        count: Devices.
        requests: At once.
        output_tokens_per_s, input_tokens_per_s: Of all requests together.
        source: Where it stands: tool, date, context, flags.
    """

    model: str
    accelerator: str
    count: int
    requests: int
    output_tokens_per_s: float
    input_tokens_per_s: float | None
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What shall run, and how it is used.

    Attributes:
        model: The checkpoint.
        flags: The server's; tensor parallelism follows the shape where they do not say it.
        rules: The vLLM version's.
        needs: Context and users.
        tokens_per_s: What one request must get at least.
        load: How much of the time it generates.
        start_s: One start by the bundled load rate; None if unknown.
        starts: By accelerator, one start by the load rate that measurements here agree on.
        shares: By accelerator, the share of its bandwidth that measurements here agree on.
        start_range: Fast, usual and slow start by the bundled load rate; None if unknown.
    """

    model: ModelFacts
    flags: Flags
    rules: VersionRules
    needs: Needs = field(default_factory=Needs)
    tokens_per_s: float | None = None
    load: Load = field(default_factory=Load)
    start_s: float | None = None
    starts: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    start_range: Bounds | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """One shape with what it would cost.

    Attributes:
        shape: What is rented.
        flags: As they would be there.
        fits: As in the fit report.
        misses: Which needs it misses, in words; () where it meets all.
        throughput: Of all requests of the load together.
        requests: How many of the load's requests run at once there; the rest wait.
        bill: What it costs.
        start: What its start meets there; None where nothing is known of the platform, as of one's own machine.
    """

    shape: Shape
    flags: Flags
    fits: bool | None
    misses: tuple[str, ...]
    throughput: Throughput
    requests: int
    bill: Bill
    start: StartThere | None = None

    @property
    def meets(self) -> bool:
        """Whether it surely starts and meets every need."""
        return self.fits is True and not self.misses


def offers(
    wanted: Wanted,
    shapes: Iterable[Shape],
    accelerators: Mapping[str, AcceleratorFacts],
    *,
    measured: Sequence[MeasuredSpeed] = (),
    idle_s: Mapping[str, int] | None = None,
    starts: Mapping[str, PlatformStart] | None = None,
) -> tuple[Offer, ...]:
    """Return a row for each shape: what meets the needs first, then by the price of a month; unknown prices last.

    Args:
        wanted: What shall run.
        shapes: What can be rented.
        accelerators: By contract name.
        measured: Speeds that were measured; they replace the computed ones of the same model and devices.
        idle_s: How long an idle instance is kept and billed, by platform.
        starts: How servers start, by platform; a shape whose platform does not wait for a slow start misses the needs.
    """
    found = [
        _starting(
            _offer(wanted, shape, accelerators[shape.accelerator], measured, (idle_s or {}).get(shape.platform, 0)),
            wanted,
            (starts or {}).get(shape.platform),
        )
        for shape in shapes
    ]
    return tuple(sorted(found, key=_rank))


def _starting(offer: Offer, wanted: Wanted, limits: PlatformStart | None) -> Offer:
    """The offer with what a start meets there; of a shape on which it does not fit no start is looked at."""
    if limits is None or offer.fits is False:
        return offer
    there = start_on(limits, wanted.start_range)
    return replace(offer, start=there, misses=(*offer.misses, *filter(None, (there.misses,))))


def where_to_run(rows: Sequence[Offer]) -> Offer | None:
    """Return the cheapest that meets the needs, by the price of a month; None where none does."""
    return next((row for row in rows if row.meets and row.bill.usd_per_month is not None), None)


def _rank(row: Offer) -> tuple[bool, bool, float, str]:
    month = row.bill.usd_per_month
    return not row.meets, month is None, month or 0.0, row.shape.name


def _offer(
    wanted: Wanted, shape: Shape, accelerator: AcceleratorFacts, measured: Sequence[MeasuredSpeed], idle_s: int
) -> Offer:
    flags = flags_on(wanted.flags, shape.count)
    setup = Setup(model=wanted.model, accelerator=accelerator, count=shape.count, flags=flags, rules=wanted.rules)
    wake_s = (wanted.starts.get(shape.accelerator, wanted.start_s) or 0.0) + idle_s
    try:
        report = setup.predict(Needs())
    except InputRejected as error:
        nothing = Throughput(output=None, source="not computed")
        price = bill(shape.usd_per_h, nothing, wanted.load, sleeps=shape.sleeps, wake_s=wake_s)
        return Offer(
            shape=shape, flags=flags, fits=False, misses=(error.why,), throughput=nothing, requests=0, bill=price
        )
    running = min(wanted.load.requests, users_at_once(report))
    speed = throughput_of(setup, running, measured, share=wanted.shares.get(shape.accelerator))
    each = None if speed.output is None else (speed.output[0] / running, speed.output[1] / running)
    return Offer(
        shape=shape,
        flags=flags,
        fits=report.fits,
        misses=tuple(_misses(wanted, setup, report, each, shape)),
        throughput=speed,
        requests=running,
        bill=bill(shape.usd_per_h, speed, wanted.load, sleeps=shape.sleeps, wake_s=wake_s),
    )


def flags_on(flags: Flags, count: int) -> Flags:
    """Return the flags with the tensors split over so many devices, where the flags do not say how."""
    if flags.devices > 1 or flags.tensor_parallel_size is not None or count == 1:
        return flags
    return replace(flags, tensor_parallel_size=count)


def throughput_of(
    setup: Setup,
    requests: int,
    measured: Sequence[MeasuredSpeed] = (),
    *,
    share: tuple[float, float] | None = None,
) -> Throughput:
    """Return the tokens per second of so many requests: measured at the next lower number, otherwise computed."""
    name = setup.model.name
    like = [
        cell
        for cell in measured
        if cell.model == name
        and (cell.accelerator, cell.count) == (setup.accelerator.name, setup.count)
        and cell.requests <= requests
    ]
    if like:
        best = max(like, key=lambda cell: (cell.requests, cell.output_tokens_per_s))
        rate = best.output_tokens_per_s
        return Throughput(output=(rate, rate), input=best.input_tokens_per_s, measured=True, source=best.source)
    if share is None or requests != 1:
        return Throughput(output=setup.speed(requests))
    found = decode_speed(setup.model, setup.accelerator, setup.flags, setup.rules, share=share)
    output = None if found is None else found.bounds
    return Throughput(output=output, source="computed: by the share of the bandwidth that was measured here")


def _misses(
    wanted: Wanted, setup: Setup, report: FitReport, speed: tuple[float, float] | None, shape: Shape
) -> Iterator[str]:
    if report.fits is None:
        yield f"cannot tell whether it fits: {report.assumptions[0]}"
        return
    if report.fits is False:
        yield f"does not fit ({report.reason.value})"
        return
    if shape.commitment:
        yield f"not rented on demand: {shape.commitment}"
    context = wanted.needs.context_tokens
    if context is not None and (report.max_model_len or 0) < context:
        yield f"{report.max_model_len or 0:,} tokens of context, {context:,} are needed"
    users = users_at_once(report)
    if users < wanted.needs.users:
        yield f"{users} requests of full length at once, {wanted.needs.users} are needed"
    needed = wanted.tokens_per_s or SLOWEST_TOKENS_PER_S
    if speed is None:
        yield "its speed is unknown"
    elif speed[0] < needed:
        yield f"{speed[0]:.1f} tokens/s for one request, {needed:g} are needed"
    need = host_need(setup, files_in_memory=Bounds.exactly(0))
    if shape.memory_bytes and need.fits(shape.memory_bytes) is False:
        yield f"{shape.memory_bytes / GIB:.0f} GiB of host memory, at least {need.total.low / GIB:.1f} are needed"
