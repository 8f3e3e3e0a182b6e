"""Answers to "what does it cost, and where": names looked up, shapes priced, measured speeds put in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from agent.app.fit_answers import FitAnswers
from agent.catalogue.load_platforms import PlatformCatalogue, bundled_start, load_platform_catalogue
from agent.core.sweep.measured_speeds import measured_speeds
from agent.errors import InputRejected
from agent.fit.cost.answer import CostAnswer
from agent.fit.cost.bill import own_hardware_usd_per_h
from agent.fit.cost.load import Load
from agent.fit.cost.offers import MeasuredSpeed, Offer, Wanted, offers
from agent.fit.flags.flags import Flags
from agent.fit.model_and_hardware import ModelFacts
from agent.fit.needs import Needs
from agent.fit.question import Question
from agent.fit.speed.calibration import START_STORAGE
from agent.fit.speed.price import Shape
from agent.fit.speed.startup import startup_time
from agent.fit.version_rules import VersionRules

if TYPE_CHECKING:
    from agent.catalogue.service_capacity import Setting

_CONTEXT = 8_192
_NOT_IN = "without discounts, taxes, storage, traffic, support and a cluster's own fee"


@dataclass(frozen=True, kw_only=True)
class OwnHardware:
    """A machine that one owns.

    Attributes:
        price_usd: What it cost.
        years: In which it is written off.
        watts: Of the whole machine while it generates.
        usd_per_kwh: Price of electricity.
        idle_watts: At rest; None where nobody measured it.
    """

    price_usd: float
    years: float
    watts: float
    usd_per_kwh: float
    idle_watts: float | None = None

    def shape(self, accelerator: str, count: int, *, busy: float, today: date) -> Shape:
        """Return the machine as something that can be had."""
        at_rest = "" if self.idle_watts is None else f", {self.idle_watts:g} W at rest"
        return Shape(
            name="own-hardware",
            platform="own",
            accelerator=accelerator,
            count=count,
            vcpus=0,
            memory_bytes=0,
            usd_per_h=own_hardware_usd_per_h(
                price_usd=self.price_usd,
                years=self.years,
                watts=self.watts,
                usd_per_kwh=self.usd_per_kwh,
                busy=busy,
                idle_watts=self.idle_watts,
            ),
            sleeps=False,
            region="where it stands",
            as_of=today.isoformat(),
            source=f"as given: {self.price_usd:g} USD over {self.years:g} years, {self.watts:g} W{at_rest} at "
            f"{self.usd_per_kwh:g} USD/kWh",
        )


@dataclass(frozen=True, kw_only=True)
class CostAnswers:
    """Everything that an answer looks up.

    Attributes:
        fit: Models, accelerators and versions.
        platforms: Shapes with prices, load rates, idle times.
        today: To tell the age of prices.
        measured: Speeds that sweeps measured.
    """

    fit: FitAnswers
    platforms: PlatformCatalogue
    today: date
    measured: Sequence[MeasuredSpeed] = ()

    @classmethod
    def open(cls, today: date, *, sweeps: Sequence[Path] = (), fit: FitAnswers | None = None) -> CostAnswers:
        """Read the bundled data, find the installation's profiles, and read what sweeps measured.

        Args:
            today: To tell the age of prices.
            sweeps: Folders of sweeps.
            fit: Models, accelerators and versions, where they are read already.

        Raises:
            InputRejected: A folder holds no sweep.
        """
        from agent.adapters.load.sweep_folder import read_cells

        speeds = tuple(speed for folder in sweeps for speed in measured_speeds(read_cells(folder)))
        return cls(fit=fit or FitAnswers.open(), platforms=load_platform_catalogue(), today=today, measured=speeds)

    def answer(
        self,
        question: Question,
        load: Load,
        *,
        accelerator: str | None,
        platform: str | None = None,
        tokens_per_s: float | None = None,
        own: OwnHardware | None = None,
    ) -> CostAnswer:
        """Price a model on one accelerator, or on everything that can be rented.

        Args:
            question: Model, flags, version and needs; its accelerator is not looked at.
            load: How it is used.
            accelerator: The only one to look at; None takes all.
            platform: The only one to look at; None takes all.
            tokens_per_s: What one request must get at least.
            own: A machine of one's own to compare with; it needs the accelerator.

        Raises:
            InputRejected: A name or flag is not known, or nothing is left to look at.
        """
        self.fit.catalogue.refuse_typing_errors(question.flags)
        model = self.fit.find_model(question.model)
        name = None if accelerator is None else self.fit.catalogue.accelerator(accelerator).name
        shapes = self._shapes(name, question, platform)
        if own is not None and name is not None:
            shapes = (*shapes, own.shape(name, question.count, busy=load.busy, today=self.today))
        if not shapes:
            raise InputRejected(
                "nothing was priced",
                why=f"prices.toml has no shape with {question.count} x {name or 'any accelerator'} on "
                f"{platform or 'any platform'}",
                hint="leave --accelerator, --count or --platform out, or give the price of your own machine",
            )
        flags, notes = with_context(question.flags, question.needs, model)
        rules = self.fit.catalogue.rules(question.vllm)
        needs = question.needs
        wanted = self._wanted(model, flags, rules, shapes, needs=needs, tokens_per_s=tokens_per_s, load=load)
        return CostAnswer(
            model=question.model,
            load=load,
            needs=question.needs,
            tokens_per_s=tokens_per_s,
            rows=self._offers(wanted, shapes),
            today=self.today,
            notes=(*question.notes, *notes, *self._notes(wanted)),
        )

    def of_service(
        self, setting: Setting, load: Load, *, shape: Shape | None, tokens_per_s: float | None, name: str
    ) -> CostAnswer:
        """Price a watched service as it runs, and on everything else that can be rented.

        Args:
            setting: What its configuration means.
            load: How it is used.
            shape: What it runs on, at its price; None where nobody knows.
            tokens_per_s: What its owner needs for one request.
            name: The service's.
        """
        flags, notes = with_context(setting.flags, setting.needs, setting.model)
        every = self.platforms.shapes if shape is None else (shape, *self.platforms.shapes)
        model, rules, needs = setting.model, setting.rules, setting.needs
        wanted = self._wanted(model, flags, rules, every, needs=needs, tokens_per_s=tokens_per_s, load=load)
        now = self._offers(wanted, (shape,))[0] if shape is not None else None
        return CostAnswer(
            model=f"{name} ({setting.model.name})",
            load=load,
            needs=setting.needs,
            tokens_per_s=tokens_per_s,
            rows=self._offers(replace(wanted, flags=_unsplit(flags)), self.platforms.shapes),
            today=self.today,
            notes=(*notes, *self._notes(wanted)),
            now=now,
        )

    def _wanted(
        self,
        model: ModelFacts,
        flags: Flags,
        rules: VersionRules,
        shapes: Sequence[Shape],
        *,
        needs: Needs,
        tokens_per_s: float | None,
        load: Load,
    ) -> Wanted:
        start = bundled_start(self.platforms, model, flags)
        return Wanted(
            model=model,
            flags=flags,
            rules=rules,
            needs=needs,
            tokens_per_s=tokens_per_s,
            load=load,
            start_s=float(start.best) if start is not None else None,
            shares=self._shares(model, rules, shapes),
            starts=self._starts(model, flags, rules, shapes),
            start_range=start,
        )

    def _shapes(self, accelerator: str | None, question: Question, platform: str | None) -> tuple[Shape, ...]:
        return tuple(
            shape
            for shape in self.platforms.shapes
            if accelerator in {None, shape.accelerator}
            and platform in {None, shape.platform}
            and shape.count >= question.count
        )

    def _offers(self, wanted: Wanted, shapes: Sequence[Shape]) -> tuple[Offer, ...]:
        return offers(
            wanted,
            shapes,
            self.fit.catalogue.accelerators,
            measured=self.measured,
            idle_s=self.platforms.idle_s,
            starts=self.platforms.starts,
        )

    def _shares(
        self, model: ModelFacts, rules: VersionRules, shapes: Sequence[Shape]
    ) -> dict[str, tuple[float, float]]:
        found = {name: self.fit.share(model, name, rules) for name in {shape.accelerator for shape in shapes}}
        return {name: share for name, share in found.items() if share is not None}

    def _starts(
        self, model: ModelFacts, flags: Flags, rules: VersionRules, shapes: Sequence[Shape]
    ) -> dict[str, float]:
        """Starts by accelerator, where loads that were measured here agree."""
        warm_up, eager = self.platforms.warm_up, bool(flags.enforce_eager)
        found = {}
        for name in {shape.accelerator for shape in shapes if shape.sleeps}:
            ends = self.fit.load_rate(model, name, rules, START_STORAGE)
            start = startup_time(model.checkpoint_bytes, ends, warm_up, eager=eager)
            if start is not None:
                found[name] = float(start.best)
        return found

    def _notes(self, wanted: Wanted) -> tuple[str, ...]:
        notes = [f"on-demand prices in USD, {_NOT_IN}; a month has 730 hours"]
        if wanted.load.min_instances == 0 and wanted.load.wakes_per_day == 0:
            notes.append("starting and idling before sleep are billed too: give --wakes-per-day to count them")
        elif wanted.load.wakes_per_day:
            notes.append(_start_note(wanted))
        notes.append("tokens/s are of all requests together; the KV cache is left out of computed ones")
        notes.append("an hour pays for input and output together: their prices per million are not added up")
        return tuple(notes)


def _start_note(wanted: Wanted) -> str:
    """Say what of a wake-up is billed: the bundled start, and the starts that measurements here replace it with."""
    bundled = "" if wanted.start_s is None else f"{wanted.start_s:,.0f} s of start, read over {START_STORAGE}"
    here = [f"{seconds:,.0f} s on {name}" for name, seconds in sorted(wanted.starts.items())]
    measured = f"by loads measured here {', '.join(here)}" if here else ""
    said = "; ".join(part for part in (bundled, measured) if part)
    if not said:
        return "how long a start takes is unknown: of a wake-up only the idle time is counted"
    return f"a wake-up is billed for {said}, and the idle time"


def with_context(flags: Flags, needs: Needs, model: ModelFacts) -> tuple[Flags, tuple[str, ...]]:
    """Return flags that say a context, with a note where they did not; the model's own often fits nowhere."""
    if flags.max_model_len is not None:
        return flags, ()
    context = needs.context_tokens or min(_CONTEXT, model.max_position or _CONTEXT)
    return replace(flags, max_model_len=context), (
        f"--max-model-len is taken to be {context:,}: the flags do not say it",
    )


def _unsplit(flags: Flags) -> Flags:
    """Tensor parallelism follows the shape; pipelines and replicas stay as they are."""
    return replace(flags, tensor_parallel_size=None) if flags.devices == flags.tp else flags
