"""Everything that one prediction takes, as one value that a search can vary."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.fit.flags.flags import Flags
from agent.fit.memory.predict import predict
from agent.fit.model_and_hardware import AcceleratorFacts, ModelFacts
from agent.fit.needs import Needs
from agent.fit.report import FitReport
from agent.fit.speed.calibration import Kind, Measurement, calibrated
from agent.fit.speed.speed import decode_speed
from agent.fit.version_rules import VersionRules


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """A server: checkpoint, devices, flags, version.

    Attributes:
        model: The checkpoint.
        accelerator: One device.
        count: Devices present.
        flags: The server's flags.
        rules: The vLLM version's rules.
        draft: The speculative draft model, where one is named and known.
        measurements: What was measured here; of three that agree the speed of one request is computed.
    """

    model: ModelFacts
    accelerator: AcceleratorFacts
    count: int
    flags: Flags
    rules: VersionRules
    draft: ModelFacts | None = None
    measurements: tuple[Measurement, ...] = ()

    def with_flags(self, flags: Flags) -> Setup:
        """The same server with other flags."""
        return replace(self, flags=flags)

    def predict(self, needs: Needs) -> FitReport:
        """Its fit report; speed and price are left unknown.

        Raises:
            InputRejected: As ``predict``: impossible whatever the memory.
        """
        return predict(self.model, self.accelerator, self.count, self.flags, self.rules, draft=self.draft, needs=needs)

    def speed(self, sequences: int = 1) -> tuple[float, float] | None:
        """Bounds of its decode rate, tokens/s over all sequences; None if unknown."""
        share = self.measured_share if sequences == 1 else None
        found = decode_speed(self.model, self.accelerator, self.flags, self.rules, sequences=sequences, share=share)
        return None if found is None else found.bounds

    @property
    def measured_share(self) -> tuple[float, float] | None:
        """The share of the bandwidth that measurements here agree on; None where too few do."""
        return calibrated(
            self.measurements,
            Kind.BANDWIDTH_SHARE,
            family=self.model.family,
            accelerator=self.accelerator.name,
            vllm=self.rules.version,
        )
