"""Tools that compute: does it fit, what would fit, how long a start may take, what it costs."""

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import Field

from agent.entrypoints.mcp.tools.result import Result
from agent.errors import InputRejected
from agent.fit.question import ARGUMENTS, Question, question_from

if TYPE_CHECKING:
    from agent.app.fit_answers import FitAnswers

Model = Annotated[
    str,
    Field(
        max_length=200,
        pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$",  # no path and no address: a client reads no files here
        description="Hugging Face id, or a name that list_models shows",
    ),
]
Accelerator = Annotated[str, Field(max_length=80, description=ARGUMENTS["accelerator"])]
FlagLine = Annotated[str, Field(max_length=8_000, description=ARGUMENTS["flags"])]
Count = Annotated[int | None, Field(ge=1, le=1024, description=ARGUMENTS["count"])]
Version = Annotated[str | None, Field(max_length=40, description=ARGUMENTS["vllm"])]
Context = Annotated[int | None, Field(ge=1, description=ARGUMENTS["need_context"])]
Users = Annotated[int | None, Field(ge=1, description=ARGUMENTS["need_users"])]

R = TypeVar("R")


def question(
    model: Model,
    accelerator: Accelerator,
    *,
    flags: FlagLine = "",
    count: Count = None,
    vllm: Version = None,
    need_context: Context = None,
    need_users: Users = None,
) -> Question:
    """Return what a client asks; its parameters are those of every tool that asks one question.

    Raises:
        InputRejected: The flags cannot be read, or name another model.
    """
    asked = {"model": model, "accelerator": accelerator, "flags": flags, "count": count, "vllm": vllm}
    asked |= {"need_context": need_context, "need_users": need_users}
    return question_from({name: value for name, value in asked.items() if value is not None})


def asks(tool: Callable[..., R]) -> Callable[..., R]:
    """Give a tool the parameters of :func:`question` in place of its own first one, which gets the answer of it."""
    named = inspect.signature(question).parameters
    own, _, *others = inspect.signature(tool).parameters.values()

    @functools.wraps(tool)
    def call(self: Any, **given: Any) -> R:
        asked = {name: given.pop(name) for name in named if name in given}
        return tool(self, question(**asked), **given)

    parameters = [own, *named.values(), *others]
    call.__signature__ = inspect.signature(tool).replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


class FitResult(Result):
    """The fit report of `sre-agent fit --json`: bytes per device, null where unknown."""

    fits: bool | None
    reason: str
    report: dict[str, Any]


class AdviceResult(Result):
    """Ranked changes that fit, best first; ``ruled_out`` says why flags do not do, ``moves`` where else to rent."""

    fits_now: bool | None
    options: list[dict[str, Any]]
    ruled_out: dict[str, str] | None
    moves: list[dict[str, Any]]


class ProbeResult(Result):
    """A startup probe that outlasts the slow end of a start, seconds."""

    start_s: list[float]
    probe: dict[str, int]
    budget_s: int
    engine_ready_timeout_s: int
    enough: bool
    note: str


class CostRow(Result):
    """The price of one rented shape; tokens are priced for a busy hour, and with the idle hours that are billed."""

    shape: str
    platform: str
    accelerator: str
    count: int
    usd_per_h: float | None
    usd_per_million_output_tokens: float | None
    scales_to_zero: bool
    region: str
    as_of: str
    source: str
    usd_per_month: float | None = None
    usd_per_million_output_tokens_with_idle: float | None = None
    tokens_per_s: list[float] | None = None
    requests_at_once: int = 1
    fits: bool | None = None
    meets_needs: bool = False
    misses: list[str] = Field(default_factory=list)
    price_is_old: bool = False


class CostResult(Result):
    """Prices by platform; speed is computed, not measured. ``where_to_run`` is the cheapest that meets the needs."""

    decode_tokens_per_s: list[float] | None
    rows: list[CostRow]
    where_to_run: str | None = None
    note: str


class FitTools:
    """The computing tools.

    Args:
        open_answers: Reads the catalogues and added profiles; called per question, so that an added model is known.
    """

    def __init__(self, open_answers: "Callable[[], FitAnswers]") -> None:
        self._open = open_answers

    @asks
    def fit(self, question: Question) -> FitResult:
        """Check by vLLM's own memory rules whether a model fits an accelerator with these flags."""
        row = self._open().fit(question).to_contract()
        return FitResult(fits=row["fits"], reason=row["reason"], report=row)

    @asks
    def advise(self, question: Question, *, top: Annotated[int, Field(ge=1, le=10)] = 5) -> AdviceResult:
        """Rank the changes that make a model fit, each with what it takes away, its proof and its price."""
        from agent.fit.advice.advice import Demand

        advice = self._open().advise(question, Demand(needs=question.needs)).top(top).to_json()
        kept = (
            "rank",
            "reach",
            "changes",
            "model",
            "accelerator",
            "count",
            "flags",
            "cost",
            "note",
            "loses",
            "proof",
            "start",
        )
        options = [{key: option[key] for key in kept} for option in advice["options"]]
        return AdviceResult(
            fits_now=advice["current"]["fits"],
            options=options,
            ruled_out=advice["ruled_out"],
            moves=advice["moves"],
        )

    def probe_budget(
        self,
        model: Model,
        platform: Annotated[str, Field(max_length=40, description="such as cloud_run_gpu, container_apps, kubernetes")],
        *,
        storage: Annotated[str, Field(max_length=40, description="where the checkpoint is read from")] = "gcs-fuse",
        eager: Annotated[bool, Field(description="--enforce-eager: nothing is compiled")] = False,
    ) -> ProbeResult:
        """Say how long a start may take and the startup probe that waits for it, inside the platform's limits."""
        from agent.catalogue.load_platforms import load_platform_catalogue
        from agent.fit.speed.startup import probe_budget, startup_time

        platforms = load_platform_catalogue()
        limits = platforms.probe_limits.get(platform)
        if limits is None:
            raise _unknown("platform", platform, sorted(platforms.probe_limits))
        rate = platforms.load_rates.get(storage)
        if rate is None:
            raise _unknown("storage", storage, sorted(platforms.load_rates))
        size = self._open().find_model(model).checkpoint_bytes
        start = startup_time(size, rate.bytes_per_s, platforms.warm_up, eager=eager)
        if start is None:
            raise InputRejected(
                "no startup time was computed",
                why=f"the size of the checkpoint of {model!r} is unknown",
                hint="add the model with add_model, so that its files are read",
            )
        plan = probe_budget(start, limits)
        probe = {
            "initial_delay_s": plan.initial_delay_s,
            "period_s": plan.period_s,
            "timeout_s": plan.timeout_s,
            "failure_threshold": plan.failure_threshold,
        }
        return ProbeResult(
            start_s=[start.low, start.best, start.high],
            probe=probe,
            budget_s=plan.budget_s,
            engine_ready_timeout_s=plan.engine_ready_timeout_s,
            enough=plan.enough,
            note=plan.note,
        )

    @asks
    def estimate_cost(
        self,
        question: Question,
        *,
        platform: Annotated[str | None, Field(max_length=40, description="one platform alone")] = None,
        busy: Annotated[float, Field(ge=0, le=1, description="share of the time in which it generates")] = 0.3,
        requests: Annotated[int, Field(ge=1, le=1_000_000, description="requests at once while busy")] = 1,
        min_instances: Annotated[int, Field(ge=0, le=1_000, description="instances that are kept running")] = 0,
        wakes_per_day: Annotated[float, Field(ge=0, le=86_400, description="wake-ups from zero a day")] = 0.0,
    ) -> CostResult:
        """Price an hour, a month and a million output tokens at a load, per platform that rents the accelerator."""
        from agent.app.cost_answers import CostAnswers
        from agent.entrypoints.operator_client.protocol import now
        from agent.fit.cost.answer import row_json
        from agent.fit.cost.load import Load

        load = Load(busy=busy, requests=requests, min_instances=min_instances, wakes_per_day=wakes_per_day)
        answers, today = self._open(), now().date()
        costs = CostAnswers.open(today, fit=answers)
        answer = costs.answer(question, load, accelerator=question.accelerator, platform=platform)
        best = answer.best
        return CostResult(
            decode_tokens_per_s=_bounds(answers.fit(question).decode_tokens_per_s),
            rows=[_cost_row(row_json(row, today)) for row in answer.rows],
            where_to_run=best.shape.name if best is not None else None,
            note=". ".join(("speed is computed, not measured", *answer.notes)),
        )


def _bounds(speed: tuple[float, float] | None) -> list[float] | None:
    return list(speed) if speed is not None else None


def _cost_row(row: dict[str, Any]) -> CostRow:
    said = {key: row[key] for key in CostRow.model_fields if key in row}
    return CostRow(
        **{**said, "usd_per_million_output_tokens": row["usd_per_million_output_tokens_busy"]},
        usd_per_million_output_tokens_with_idle=row["usd_per_million_output_tokens"],
    )


def _unknown(what: str, name: str, known: list[str]) -> InputRejected:
    return InputRejected(f"{what} {name!r} is unknown", why=f"known are {', '.join(known)}", hint="give one of them")
