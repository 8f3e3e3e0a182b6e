"""Answers to "does it fit" and "what would fit": names looked up, memory computed, speed and price added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from agent.catalogue.load_fit import FitCatalogue, load_fit_catalogue
from agent.fit.bounds import Bounds
from agent.fit.memory.predict import predict
from agent.fit.model_and_hardware import ModelFacts
from agent.fit.question import Question
from agent.fit.report import FitReport
from agent.fit.speed.calibration import Kind, Measurement, calibrated
from agent.fit.speed.price import Shape, find_shapes
from agent.fit.speed.speed import decode_speed
from agent.fit.version_rules import VersionRules
from agent.fit.versions import over_versions

if TYPE_CHECKING:
    from agent.fit.advice.advice import Advice, Demand


@dataclass(frozen=True, kw_only=True)
class FitAnswers:
    """Everything that an answer looks up.

    Attributes:
        catalogue: Bundled models, accelerators and versions.
        find_model: Which model a name means; added profiles win over bundled entries.
        shapes: What is rented where, for the price.
        measurements: What was measured here; three that agree replace a bundled range.
    """

    catalogue: FitCatalogue
    find_model: Callable[[str], ModelFacts]
    shapes: Sequence[Shape]
    measurements: Sequence[Measurement] = ()

    @classmethod
    def open(cls, *, folders: bool = True) -> FitAnswers:
        """Read the bundled data and find the installation's profiles; a store in the cloud keeps none.

        Args:
            folders: Whether the name of a model may be a folder of this machine.
        """
        from agent.app.measurements import stored_measurements
        from agent.app.model_profiles import known_models
        from agent.catalogue.load_platforms import load_platform_catalogue
        from agent.settings import read_settings

        catalogue, settings = load_fit_catalogue(), read_settings()
        known = known_models(catalogue.models, settings, folders=folders) if settings.embedded else catalogue.models
        shapes, kept = load_platform_catalogue().shapes, stored_measurements(settings)
        return cls(catalogue=catalogue, find_model=known.find, shapes=shapes, measurements=kept)

    def share(self, model: ModelFacts, accelerator: str, rules: VersionRules) -> tuple[float, float] | None:
        """Return the share of the bandwidth that measurements here agree on; None where too few do."""
        return calibrated(
            self.measurements, Kind.BANDWIDTH_SHARE, family=model.family, accelerator=accelerator, vllm=rules.version
        )

    def load_rate(self, model: ModelFacts, accelerator: str, rules: VersionRules, storage: str) -> Bounds | None:
        """Return the bytes per second from a storage that measurements here agree on; None where too few do."""
        ends = calibrated(
            self.measurements,
            Kind.LOAD_RATE,
            family=model.family,
            accelerator=accelerator,
            vllm=rules.version,
            storage=storage,
        )
        return None if ends is None else Bounds(low=int(ends[0]), best=int(sum(ends) / 2), high=int(ends[1]))

    def fit(self, question: Question) -> FitReport:
        """Look the names up, predict, and add speed and price.

        Raises:
            InputRejected: If model, accelerator or version is not known, or the configuration is impossible.
        """
        model, rules = self.find_model(question.model), self.catalogue.rules(question.vllm)
        accelerator = self.catalogue.accelerator(question.accelerator)
        self.catalogue.refuse_typing_errors(question.flags)
        asked = question.flags.speculative_config
        draft = self.catalogue.models.find_draft(asked.model if asked else "")

        def by(rules: VersionRules) -> FitReport:
            return predict(model, accelerator, question.count, question.flags, rules, draft=draft, needs=question.needs)

        report = by(rules)
        if not rules.asked:
            undated = [each for each in self.catalogue.versions if not each.is_dated]
            report = over_versions(report, [(each.version, by(each)) for each in undated])
        share = self.share(model, accelerator.name, rules)
        speed = decode_speed(model, accelerator, question.flags, rules, share=share)
        notes = () if share is None else (_measured_here(share),)
        rented = find_shapes(self.shapes, accelerator.name, question.count)
        return replace(
            report,
            assumptions=(*report.assumptions, *question.notes, *notes),  # a refusal stands first
            decode_tokens_per_s=speed.bounds if speed is not None else None,
            cost_usd_per_h=next((shape.usd_per_h for shape in rented if shape.usd_per_h is not None), None),
        )

    def advise(self, question: Question, demand: Demand) -> Advice:
        """Rank the changes that make the question's model fit and keep what the demand asks for.

        Raises:
            InputRejected: If a name or flag is not known, or the setup is impossible.
        """
        from agent.catalogue.load_platforms import bundled_start, load_platform_catalogue
        from agent.fit.advice.advise import advise
        from agent.fit.advice.alternatives import Market
        from agent.fit.assessment import Setup
        from agent.fit.cost.moves import with_moves

        self.catalogue.refuse_typing_errors(question.flags)
        speculative = question.flags.speculative_config
        setup = Setup(
            model=self.find_model(question.model),
            accelerator=self.catalogue.accelerator(question.accelerator),
            count=question.count,
            flags=question.flags,
            rules=self.catalogue.rules(question.vllm),
            draft=self.catalogue.models.find_draft(speculative.model if speculative else ""),
            measurements=tuple(self.measurements),
        )
        market = Market(
            models=self.catalogue.models.entries,
            accelerators=self.catalogue.accelerators,
            shapes=tuple(self.shapes),
        )
        platforms = load_platform_catalogue()
        return with_moves(
            advise(setup, demand, market),
            setup,
            demand,
            models=self._model_by_name(setup.model),
            accelerators=self.catalogue.accelerators,
            shapes=market.shapes,
            starts=platforms.starts,
            start_of=partial(bundled_start, platforms),
        )

    def _model_by_name(self, asked: ModelFacts) -> Callable[[str], ModelFacts]:
        """Options name bundled checkpoints, or the one that was asked about."""
        bundled = {model.name: model for model in self.catalogue.models.entries}
        return lambda name: asked if name == asked.name else bundled[name]


def _measured_here(share: tuple[float, float]) -> str:
    return f"decode speed by measurements here: {share[0]:.0%} to {share[1]:.0%} of the bandwidth"
