"""Tools that compute: does it fit, what would fit, how long a start may take, what it costs."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import Field

from agent.app.fit_answers import FitAnswers
from agent.entrypoints.mcp.tools.result import Result
from agent.errors import InputRejected
from agent.fit.advice.advice import Demand
from agent.fit.question import ARGUMENTS, Question, question_from
from agent.fit.speed.price import find_shapes, usd_per_million_tokens
from agent.fit.speed.startup import probe_budget, startup_time

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
    """Ranked changes that fit, best first; ``ruled_out`` says why flags alone do not do."""

    fits_now: bool | None
    options: list[dict[str, Any]]
    ruled_out: dict[str, str] | None


class ProbeResult(Result):
    """A startup probe that outlasts the slow end of a start, seconds."""

    start_s: list[float]
    probe: dict[str, int]
    budget_s: int
    engine_ready_timeout_s: int
    enough: bool
    note: str


class CostRow(Result):
    """The price of one rented shape."""

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


class CostResult(Result):
    """Prices by platform; speed is computed, not measured."""

    decode_tokens_per_s: list[float] | None
    rows: list[CostRow]
    note: str


class FitTools:
    """The computing tools.

    Args:
        open_answers: Reads the catalogues and added profiles; called per question, so that an added model is known.
    """

    def __init__(self, open_answers: Callable[[], FitAnswers]) -> None:
        self._open = open_answers

    @asks
    def fit(self, question: Question) -> FitResult:
        """Check by vLLM's own memory rules whether a model fits an accelerator with these flags."""
        row = self._open().fit(question).to_contract()
        return FitResult(fits=row["fits"], reason=row["reason"], report=row)

    @asks
    def advise(self, question: Question, *, top: Annotated[int, Field(ge=1, le=10)] = 5) -> AdviceResult:
        """Rank the changes that make a model fit, each with what it takes away, its proof and its price."""
        advice = self._open().advise(question, Demand(needs=question.needs)).top(top).to_json()
        kept = ("rank", "reach", "changes", "model", "accelerator", "count", "flags", "cost", "note", "loses", "proof")
        options = [{key: option[key] for key in kept} for option in advice["options"]]
        ruled_out = advice["ruled_out"]
        return AdviceResult(fits_now=advice["current"]["fits"], options=options, ruled_out=ruled_out)

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
    ) -> CostResult:
        """Price an hour and a million output tokens of one busy request, per platform that rents the accelerator."""
        answers = self._open()
        report = answers.fit(question)
        speed = report.decode_tokens_per_s
        name = answers.catalogue.accelerator(question.accelerator).name
        middle = (speed[0] * speed[1]) ** 0.5 if speed is not None else None
        rows = [
            CostRow(
                shape=shape.name,
                platform=shape.platform,
                accelerator=shape.accelerator,
                count=shape.count,
                usd_per_h=shape.usd_per_h,
                usd_per_million_output_tokens=usd_per_million_tokens(shape.usd_per_h, middle),
                scales_to_zero=shape.sleeps,
                region=shape.region,
                as_of=shape.as_of,
                source=shape.source,
            )
            for shape in find_shapes(answers.shapes, name, question.count, platform=platform)
        ]
        note = "computed speed of one request at a time, not measured; prices of the named date"
        return CostResult(decode_tokens_per_s=list(speed) if speed else None, rows=rows, note=note)


def _unknown(what: str, name: str, known: list[str]) -> InputRejected:
    return InputRejected(f"{what} {name!r} is unknown", why=f"known are {', '.join(known)}", hint="give one of them")
