"""The plan of a sweep: which cells can run, where requests begin to wait, how long it takes and what it costs."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, sqrt
from typing import Final

from pydantic import Field

from agent.core.sweep.cell import Bound, PlannedCell, Predicted, Strategy
from agent.core.sweep.provenance import Limits
from agent.core.value import Value

WAVES: Final = 4  # measured requests of a cell, as a multiple of its concurrency
FEWEST_REQUESTS: Final = 16
DRIVER_START_S: Final = 12.0  # measured: 9 to 12 s for guidellm 0.8.1 and vllm bench serve 0.32 on 2 cores
STEP_START_S: Final = 5.0  # guidellm 0.8.1 starts its workers anew for each step: 0.3 to 0.45 of its own start


class SweepAsked(Value):
    """Which cells somebody wants.

    Attributes:
        contexts: Tokens of one request, prompt and answer together.
        requests: Measured requests of each cell; None takes four waves, and at least 16.
        rates: Constant request rates of each context's run of request rates; 0 for no such run.
    """

    contexts: tuple[int, ...] = Field(min_length=1)
    concurrencies: tuple[int, ...] = Field(min_length=1)
    output_tokens: int = Field(default=128, gt=0)
    requests: int | None = Field(default=None, gt=0)
    rates: int = Field(default=0, ge=0)

    def cells(self) -> tuple[PlannedCell, ...]:
        """Return the cells, small contexts and few requests first; one wave of each warms it up."""
        contexts = sorted(set(self.contexts))
        return tuple(cell for context in contexts for cell in (*self._closed(context), *self._open(context)))

    def _closed(self, context: int) -> Iterator[PlannedCell]:
        for users in sorted(set(self.concurrencies)):
            yield PlannedCell(
                context_tokens=context,
                output_tokens=self.output_tokens,
                concurrency=users,
                requests=self.requests or max(FEWEST_REQUESTS, WAVES * users),
                warmup_requests=users,
            )

    def _open(self, context: int) -> Iterator[PlannedCell]:
        """The steps of the run of request rates, each with as many requests as the highest concurrency has."""
        steps = self.rates + 2 if self.rates else 0
        for step in range(1, steps + 1):
            yield PlannedCell(
                context_tokens=context,
                output_tokens=self.output_tokens,
                concurrency=0,
                requests=self.requests or max(FEWEST_REQUESTS, WAVES * max(self.concurrencies)),
                step=step,
                steps=steps,
            )


class Known(Value):
    """What the arithmetic knows of the server; None means unknown.

    Attributes:
        full_requests: Requests of a context that the KV cache holds at once, by context.
        tokens_per_s: Decode speed of one request; low and high end.
        usd_per_h: Of all instances that serve.
    """

    limits: Limits = Limits()
    full_requests: Mapping[int, float | None] = Field(default_factory=dict)
    tokens_per_s: tuple[float, float] | None = None
    usd_per_h: float | None = None


class CellPlan(Value):
    """One cell with its prediction.

    Attributes:
        cannot_run: Why it is not sent; empty where it is.
    """

    planned: PlannedCell
    predicted: Predicted
    cannot_run: str = ""


class SweepPlan(Value):
    """Every cell, dropped ones too; ``asked`` is what they were made from."""

    asked: SweepAsked
    cells: tuple[CellPlan, ...]

    @property
    def runnable(self) -> tuple[CellPlan, ...]:
        """The cells that are sent."""
        return tuple(cell for cell in self.cells if not cell.cannot_run)

    @property
    def duration_s(self) -> float | None:
        """How long all of it takes; None where the speed is unknown."""
        return _sum([cell.predicted.duration_s for cell in self.runnable])

    @property
    def cost_usd(self) -> float | None:
        """What the server costs meanwhile; None where speed or price is unknown."""
        return _sum([cell.predicted.cost_usd for cell in self.runnable])


def plan_sweep(asked: SweepAsked, known: Known) -> SweepPlan:
    """Return every cell with its prediction; what cannot run is dropped with the reason.

    Of the cells whose requests the KV cache cannot hold together, the smallest is kept: it shows the plateau.
    """
    made: list[CellPlan] = []
    for planned in asked.cells():
        beyond = [
            c for c in made if c.planned.context_tokens == planned.context_tokens and _over_cache(c.planned, known)
        ]
        why = _cannot_run(planned, known, shown=bool(beyond))
        made.append(CellPlan(planned=planned, predicted=_predicted(planned, known), cannot_run=why))
    return SweepPlan(asked=asked, cells=tuple(made))


def knee_of(context: int, known: Known) -> tuple[int | None, Bound]:
    """Return how many requests of a context run at once, and what sets that: the least of what is known."""
    held = known.full_requests.get(context)
    caps = {
        Bound.MAX_NUM_SEQS: known.limits.max_num_seqs,
        Bound.KV_CACHE: int(held) if held is not None else None,
        Bound.PLATFORM_CONCURRENCY: known.limits.platform_concurrency,
    }
    least = min(
        ((cap, bound) for bound, cap in caps.items() if cap is not None), default=None, key=lambda pair: pair[0]
    )
    return least if least is not None else (None, Bound.UNKNOWN)


def _over_cache(cell: PlannedCell, known: Known) -> bool:
    """Whether the requests that the engine would run at once are more than the cache holds."""
    held = known.full_requests.get(cell.context_tokens)
    caps = (known.limits.max_num_seqs, known.limits.platform_concurrency)
    at_once = min(cell.concurrency, *(cap for cap in caps if cap is not None), cell.concurrency)
    return held is not None and at_once > held


def _cannot_run(cell: PlannedCell, known: Known, *, shown: bool) -> str:
    longest, held = known.limits.max_model_len, known.full_requests.get(cell.context_tokens)
    if longest is not None and cell.context_tokens > longest:
        return f"requests of {cell.context_tokens:,} tokens: --max-model-len is {longest:,}"
    if held is not None and held < 1:
        return f"the KV cache does not hold one request of {cell.context_tokens:,} tokens"
    if shown and _over_cache(cell, known):
        return f"the KV cache holds {int(held or 0)} of {cell.concurrency} requests of {cell.context_tokens:,} tokens"
    return ""


def _predicted(cell: PlannedCell, known: Known) -> Predicted:
    knee, bound = knee_of(cell.context_tokens, known)
    took = _duration_s(cell, known, knee)
    cost = took * known.usd_per_h / 3600 if took is not None and known.usd_per_h is not None else None
    return Predicted(knee=knee, bound=bound, output_tokens_per_s=known.tokens_per_s, duration_s=took, cost_usd=cost)


def _duration_s(cell: PlannedCell, known: Known, knee: int | None) -> float | None:
    if known.tokens_per_s is None or min(known.tokens_per_s) <= 0:
        return None
    speed = sqrt(known.tokens_per_s[0] * known.tokens_per_s[1])
    if cell.steps:
        return _step_duration_s(cell, cell.output_tokens / speed, knee or cell.requests)
    at_once = min(cell.concurrency, knee or cell.concurrency)
    waves = ceil((cell.requests + cell.warmup_requests) / at_once)
    return DRIVER_START_S + waves * cell.output_tokens / speed


def _step_duration_s(cell: PlannedCell, answer_s: float, at_once: int) -> float:
    """How long a step of a run of request rates takes; the load generator starts once, its workers for each step."""
    if cell.strategy is Strategy.SYNCHRONOUS:
        return DRIVER_START_S + cell.requests * answer_s
    if cell.strategy is Strategy.THROUGHPUT:
        return STEP_START_S + ceil(cell.requests / at_once) * answer_s
    share = (cell.step - 2) / (cell.steps - 2)  # of the way from one request at a time to as many as run at once
    return STEP_START_S + cell.requests * answer_s / (1 + share * (at_once - 1)) + answer_s


def _sum(figures: Sequence[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return sum(known) if len(known) == len(figures) else None
