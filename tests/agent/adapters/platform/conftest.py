"""A small scenario and a clock that a test moves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.adapters.platform.rehearsal.platform import RehearsalPlatform
from agent.adapters.platform.rehearsal.scenario import Scenario, load_scenario
from agent.ports.platform import Order
from tests.leases import HELD
from tests.watch import Watch

EXAMPLES = Path(__file__).parents[4] / "examples"


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def probe_scenario() -> Scenario:
    return load_scenario(EXAMPLES / "gemma4-26b-l4-startup-probe" / "scenario.toml")


@pytest.fixture
def oom_scenario() -> Scenario:
    return load_scenario(EXAMPLES / "gemma4-31b-l4-oom" / "scenario.toml")


@pytest.fixture
def open_platform(tmp_path: Path, watch: Watch) -> Callable[..., RehearsalPlatform]:
    def open_it(scenario: Scenario, **more: Any) -> RehearsalPlatform:
        return RehearsalPlatform(tmp_path / "world.db", {scenario.service: scenario}, watch, **more)

    return open_it


@pytest.fixture
def order() -> Callable[..., Order]:
    def make(
        platform: RehearsalPlatform, service: str, *actions: object, key: str = "k1", staged: bool = False
    ) -> Order:
        return Order(
            service=service,
            incident="inc-1",
            effect_key=key,
            revision=f"{service}-sre-{key}",
            etag=platform.describe(service).etag,
            actions=actions,
            staged=staged,
            lease_end=HELD,
        )

    return make
