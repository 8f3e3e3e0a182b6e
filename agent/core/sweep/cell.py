"""One cell of a sweep: the load that is planned, what is predicted of it, and what was measured."""

from collections.abc import Sequence
from enum import StrEnum
from math import ceil
from typing import Any, Final, Self

from pydantic import AwareDatetime, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from agent.core.sweep.provenance import Provenance
from agent.core.value import Value

SCHEMA: Final = "sre-agent.cell/1"
FEWEST_STEPS: Final = 3  # one request at a time, all at once, and one rate


class Bound(StrEnum):
    """What makes requests wait."""

    MAX_NUM_SEQS = "max_num_seqs"
    KV_CACHE = "kv_cache"
    PLATFORM_CONCURRENCY = "platform_concurrency"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """What became of a cell."""

    MEASURED = "measured"
    PARTIAL = "partial"  # it was cut off; what it has is kept
    DROPPED = "dropped"  # it cannot run, so nothing was sent
    FAILED = "failed"  # nothing usable was measured


class Strategy(StrEnum):
    """When the next request of a cell is sent."""

    CONCURRENT = "concurrent"  # when one of those in flight has ended: a closed loop
    SYNCHRONOUS = "synchronous"  # when the one before has ended
    THROUGHPUT = "throughput"  # at once
    CONSTANT = "constant"  # at a fixed rate, whether or not others have ended: an open loop


class PlannedCell(Value):
    """One load: requests of one size, so many at once; or one step of a run of request rates.

    A run of request rates measures one request at a time, then all at once, then constant rates between what these two
    came to. Its steps are cells of their own, and the load generator takes all of them together.

    Attributes:
        context_tokens: Tokens of one request, prompt and answer together.
        output_tokens: Tokens of the answer.
        concurrency: Requests in flight; 0 of a step of a run of request rates.
        requests: Measured requests that are sent.
        warmup_requests: Requests sent before, which no figure counts.
        step: Of a run of request rates, from 1 on; 0 otherwise.
        steps: How many that run has; 0 otherwise.
    """

    context_tokens: int = Field(gt=1)
    output_tokens: int = Field(gt=0)
    concurrency: int = Field(ge=0)
    requests: int = Field(gt=0)
    warmup_requests: int = Field(default=0, ge=0)
    step: int = Field(default=0, ge=0)
    steps: int = Field(default=0, ge=0)

    @model_serializer(mode="wrap")
    def _as_signed(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave the step out where there is none: approvals signed before there were steps hold."""
        found: dict[str, Any] = plain(self)
        return found if self.steps else {name: value for name, value in found.items() if name not in {"step", "steps"}}

    @model_validator(mode="after")
    def _has_one_load(self) -> Self:
        if (self.concurrency > 0) is (self.steps > 0) or (self.step > 0) is not (self.steps > 0):
            raise ValueError("a cell has a concurrency, or is a step of a run of request rates")
        if self.step > self.steps or 0 < self.steps < FEWEST_STEPS:
            raise ValueError(f"step {self.step} of {self.steps} is no step of a run of request rates")
        return self

    @model_validator(mode="after")
    def _has_a_prompt(self) -> Self:
        if self.output_tokens >= self.context_tokens:
            raise ValueError(f"{self.output_tokens} answer tokens leave no prompt in {self.context_tokens}")
        return self

    @property
    def prompt_tokens(self) -> int:
        """Tokens of one prompt."""
        return self.context_tokens - self.output_tokens

    @property
    def id(self) -> str:
        """The cell's name in files and reports."""
        load = f"r{self.step}of{self.steps}" if self.steps else f"n{self.concurrency}"
        return f"c{self.context_tokens}-o{self.output_tokens}-{load}"

    @property
    def strategy(self) -> Strategy:
        """When its next request is sent."""
        if not self.steps:
            return Strategy.CONCURRENT
        return {1: Strategy.SYNCHRONOUS, 2: Strategy.THROUGHPUT}.get(self.step, Strategy.CONSTANT)


class Predicted(Value):
    """What the arithmetic says before anything is sent; None means unknown.

    Attributes:
        knee: Requests that run at once in this context; more of them wait.
        bound: What sets the knee.
        output_tokens_per_s: Of one request; low and high end.
        duration_s: Of the whole cell, warm-up included.
    """

    knee: int | None = Field(default=None, ge=0)
    bound: Bound = Bound.UNKNOWN
    output_tokens_per_s: tuple[float, float] | None = None
    duration_s: float | None = Field(default=None, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)

    def waits(self, concurrency: int) -> bool | None:
        """Whether requests wait at a concurrency; None where the knee is unknown."""
        return None if self.knee is None else concurrency > self.knee


class RequestRow(Value):
    """One request as it was measured; times in seconds.

    Attributes:
        started_s: When it was sent, from the cell's first request.
        ttft_s: Until its first token; None where none came.
        latency_s: Until its last token, or until it failed.
        itl_s: Mean time between its tokens, (latency - TTFT) / (tokens - 1); None with fewer than two tokens.
        error: Why it failed, without secrets; empty where it succeeded.
    """

    started_s: float = Field(ge=0)
    ttft_s: float | None = Field(default=None, ge=0)
    latency_s: float = Field(ge=0)
    itl_s: float | None = Field(default=None, ge=0)
    prompt_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return not self.error


class Percentiles(Value):
    """Of one figure over the requests that have it; seconds, nearest rank.

    Attributes:
        n: Requests that have it.
    """

    n: int = Field(gt=0)
    mean: float
    p50: float
    p90: float
    p99: float


class ErrorCount(Value):
    """Requests that failed in one way.

    Attributes:
        kind: The reason.
    """

    kind: str
    count: int = Field(gt=0)


class MeasuredCell(Value):
    """What came out of one cell; errors are counted apart and stand in no percentile.

    Attributes:
        duration_s: From the end of the warm-up to the end of the last measured request; rates are over this time.
        warmup_requests: Requests before, which no figure counts.
        unfinished: Requests that were in flight when the cell was cut off.
        ttft_s: Time to the first token.
        itl_s: Mean time between the tokens of one request.
        latency_s: Of a whole request.
        input_tokens_per_s: Of all requests together.
        output_tokens_per_s: Of all requests together.
        requests_file: The raw rows, relative to the sweep's folder; empty where there are none.
        requests_sha256: Of that file.
    """

    began_at: AwareDatetime
    duration_s: float = Field(ge=0)
    warmup_requests: int = Field(default=0, ge=0)
    succeeded: int = Field(ge=0)
    failed: int = Field(default=0, ge=0)
    unfinished: int = Field(default=0, ge=0)
    errors: tuple[ErrorCount, ...] = ()
    prompt_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    ttft_s: Percentiles | None = None
    itl_s: Percentiles | None = None
    latency_s: Percentiles | None = None
    input_tokens_per_s: float = Field(default=0.0, ge=0)
    output_tokens_per_s: float = Field(default=0.0, ge=0)
    requests_per_s: float = Field(default=0.0, ge=0)
    requests_file: str = ""
    requests_sha256: str = ""


class Cell(Value):
    """One line of ``cells.jsonl``.

    Attributes:
        format: Name and version of the format.
        why: Why it was dropped, cut off or failed, or measured with fewer requests; otherwise empty.
        measured: None where nothing was sent or nothing usable came back.
        spent_s: Seconds for which the load generator ran, warm-up and earlier tries of this cell included; they count
            against the grant.
        rate: Requests per second that were sent at a constant rate; None of every other strategy.
    """

    format: str = Field(default=SCHEMA, pattern=f"^{SCHEMA}$")
    provenance: Provenance
    planned: PlannedCell
    predicted: Predicted = Predicted()
    outcome: Outcome
    why: str = ""
    measured: MeasuredCell | None = None
    spent_s: float = Field(default=0.0, ge=0)
    rate: float | None = Field(default=None, gt=0)

    @property
    def id(self) -> str:
        """The cell's name in files and reports."""
        return self.planned.id

    @property
    def request_rate(self) -> float | None:
        """Requests per second: as sent at a constant rate, else as answered; None where neither is known."""
        answered = self.measured.requests_per_s if self.measured is not None else 0.0
        return self.rate or answered or None

    @property
    def charged_s(self) -> float:
        """Seconds of the grant that it took; what was stored before that was counted has only its measured time."""
        return max(self.spent_s, self.measured.duration_s if self.measured is not None else 0.0)


def percentiles(figures: Sequence[float | None]) -> Percentiles | None:
    """Return the percentiles by nearest rank: each is a figure that was really measured; None without a figure."""
    known = sorted(figure for figure in figures if figure is not None)
    if not known:
        return None
    p50, p90, p99 = (known[max(ceil(share * len(known) / 100) - 1, 0)] for share in (50, 90, 99))
    return Percentiles(n=len(known), mean=sum(known) / len(known), p50=p50, p90=p90, p99=p99)


def measured_cell(
    rows: Sequence[RequestRow],
    *,
    began_at: AwareDatetime,
    warmup_requests: int = 0,
    unfinished: int = 0,
    since_s: float | None = None,
) -> MeasuredCell:
    """Return the figures of a cell from its raw rows alone.

    Args:
        rows: Measured requests, failed ones included, in any order.
        began_at: When the first of them was sent.
        warmup_requests: Requests before, which are not among the rows.
        unfinished: Requests that were cut off, which are not among the rows.
        since_s: When the last request of the warm-up had ended, on the rows' own clock: until then the server worked
            for the warm-up, while the first of the rows waited. None begins with the first row.
    """
    good = [row for row in rows if row.ok]
    first = min((row.started_s for row in rows), default=0.0)
    last = max((row.started_s + row.latency_s for row in rows), default=0.0)
    took = last - (since_s if since_s is not None and first < since_s < last else first)
    kinds = sorted({row.error for row in rows if not row.ok})
    prompts, answers = sum(r.prompt_tokens for r in good), sum(r.output_tokens for r in good)
    per_s = 1 / took if took > 0 else 0.0
    return MeasuredCell(
        began_at=began_at,
        duration_s=took,
        warmup_requests=warmup_requests,
        succeeded=len(good),
        failed=len(rows) - len(good),
        unfinished=unfinished,
        errors=tuple(ErrorCount(kind=kind, count=sum(row.error == kind for row in rows)) for kind in kinds),
        prompt_tokens=prompts,
        output_tokens=answers,
        ttft_s=percentiles([row.ttft_s for row in good]),
        itl_s=percentiles([row.itl_s for row in good]),
        latency_s=percentiles([row.latency_s for row in good]),
        input_tokens_per_s=prompts * per_s,
        output_tokens_per_s=answers * per_s,
        requests_per_s=len(good) * per_s,
    )
