"""What Cloud Run would refuse before it starts anything."""

import pytest

from agent.adapters.platform.rehearsal.cloud_run_limits import complaints
from agent.core.service.serving import Probe, ServingConfig


def config(**changes: object) -> ServingConfig:
    base = {
        "accelerator": "nvidia-l4",
        "cpu": 8,
        "memory_mib": 32768,
        "startup_probe": Probe(kind="http", initial_delay_s=240, period_s=60, timeout_s=50, failure_threshold=30),
    }
    return ServingConfig(**(base | changes))


def test_the_longest_probe_that_a_gpu_service_may_have_passes() -> None:
    """240 s and 30 times 60 s: the form that a real deployment used."""
    assert complaints(config()) == ()


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"startup_probe": Probe(initial_delay_s=241, period_s=60, timeout_s=5)}, "initial_delay_s is 241"),
        ({"startup_probe": Probe(period_s=241, timeout_s=5)}, "period_s is 241"),
        ({"startup_probe": Probe(period_s=10, timeout_s=11)}, "timeout_s is 11"),
        ({"startup_probe": Probe(period_s=60, timeout_s=5, failure_threshold=31)}, "1860 s, at most 1800"),
        ({"startup_probe": Probe(period_s=60, timeout_s=5, failure_threshold=11), "accelerator": None}, "at most 600"),
        ({"cpu": 2}, "at least 4"),
        ({"memory_mib": 8192}, "at least 16384"),
        ({"accelerator": "nvidia-rtx-pro-6000"}, "at least 20"),
        ({"min_instances": 3, "max_instances": 2}, "max_instances is 2"),
    ],
)
def test_a_change_beyond_a_limit_is_named(changes: dict, word: str) -> None:
    """With the value and the limit."""
    assert any(word in sentence for sentence in complaints(config(**changes)))
