"""Does this model fit this accelerator with these flags: vLLM's start-up, step by step, in arithmetic."""

from __future__ import annotations

from agent.fit.facts import AcceleratorFacts, ModelFacts, VersionRules
from agent.fit.flags import Flags
from agent.fit.report import FitReport


def predict(
    model: ModelFacts,
    accelerator: AcceleratorFacts,
    count: int,
    flags: Flags,
    rules: VersionRules,
    *,
    draft: ModelFacts | None = None,
) -> FitReport:
    """Predict what vLLM will print, or which step fails.

    Args:
        model: The checkpoint.
        accelerator: One device.
        count: Devices present, at least tensor x pipeline parallel size.
        flags: The server's flags.
        rules: The vLLM version's rules.
        draft: Facts of the speculative draft model, where one is named and known.

    Returns:
        Figures per device with their ranges; never raises for a valid configuration that does not fit.

    Raises:
        InputRejected: If the configuration is impossible for arithmetic reasons (0 devices, fewer than TP x PP).
    """
    raise NotImplementedError
