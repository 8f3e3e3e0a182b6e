"""What an advice costs in predictions: paired in one run with the prediction it is made of.

    python benchmarks/advise_cost.py

Prints, per case, seconds of one advice, seconds of one prediction, their ratio and the predictions asked.
"""

from __future__ import annotations

import time

from agent.catalogue.load_fit import load_fit_catalogue
from agent.catalogue.load_platforms import load_platform_catalogue
from agent.fit.advice.advice import Demand
from agent.fit.advice.advise import advise
from agent.fit.advice.alternatives import Market
from agent.fit.assessment import Setup
from agent.fit.flags.flags import parse_flags
from agent.fit.needs import Needs

CASES = [
    ("31B QAT, L4, no flags", "google/gemma-4-31B-it-qat-w4a16-ct", "nvidia-l4", ""),
    (
        "31B QAT, L4, as tried",
        "google/gemma-4-31B-it-qat-w4a16-ct",
        "nvidia-l4",
        "--max-model-len 4096 --kv-cache-dtype fp8 --gpu-memory-utilization 0.95",
    ),
    ("26B QAT, L4, long", "google/gemma-4-26B-A4B-it-qat-w4a16-ct", "nvidia-l4", "--max-model-len 131072"),
    ("31B, RTX PRO 6000", "google/gemma-4-31B-it", "nvidia-rtx-pro-6000", ""),
]


def main() -> None:
    fit, platforms = load_fit_catalogue(), load_platform_catalogue()
    models = tuple({facts.name: facts for facts in fit.models.by_name.values()}.values())
    market = Market(models=models, accelerators=fit.accelerators, shapes=platforms.shapes)
    print(f"{'case':<24}{'advice s':>10}{'prediction s':>14}{'ratio':>8}{'asked':>8}")
    for name, model, accelerator, flags in CASES:
        setup = Setup(
            model=fit.models.find(model),
            accelerator=fit.accelerator(accelerator),
            count=1,
            flags=parse_flags(flags),
            rules=fit.rules(None),
        )
        started = time.perf_counter()
        for _ in range(20):
            setup.predict(Needs())
        one = (time.perf_counter() - started) / 20
        started = time.perf_counter()
        answer = advise(setup, Demand(), market)
        whole = time.perf_counter() - started
        print(f"{name:<24}{whole:>10.2f}{one:>14.5f}{whole / one:>8.0f}{answer.searched:>8}")


if __name__ == "__main__":
    main()
