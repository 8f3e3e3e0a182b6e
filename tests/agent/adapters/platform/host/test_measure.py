"""A start on this machine is measured by one completion, and says what to set where the server wants a key."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from agent.adapters.clock import SystemClock
from agent.adapters.platform.host.measure import measurements
from agent.adapters.platform.host.probe import Address
from agent.core.change.verification import Check, Measurement
from agent.ports.host import Stage, Start
from tests.contracts import vllm_http

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
START = Start(revision="gemma-1", mark="m", template="{}", stage=Stage.READY, began_at=NOW, ready_at=NOW)


@pytest.fixture
def vllm() -> Iterator:
    server = vllm_http.VllmHttp()
    yield server
    server.stop()


def measured(vllm) -> dict[Check, Measurement]:
    port = int(vllm.url.rpartition(":")[2])
    address = Address(host="127.0.0.1", port=port, api_key="sk-of-the-environment")
    return {m.check: m for m in measurements("gemma", START, address, SystemClock())}


def test_speed_and_first_token_are_told_and_judged_elsewhere(vllm) -> None:
    """What they are worth is a matter of need and prediction."""
    vllm.script.pause_s = 0.02
    found = measured(vllm)
    assert {check: m.good for check, m in found.items()} == {
        Check.READY: True,
        Check.COMPLETION: True,
        Check.TOKENS: True,
        Check.SPEED: None,
    }
    assert 0.02 <= found[Check.SPEED].first_token_s < 5
    assert 0 < found[Check.SPEED].value < 1000


def test_a_server_that_wants_another_key_says_where_it_is_set(vllm) -> None:
    """It is up and well, and nothing is known of its answers; the key is not said."""
    vllm.script.status, vllm.script.body = 401, '{"error":"Unauthorized"}'
    found = measured(vllm)
    assert (found[Check.READY].good, found[Check.COMPLETION].good) == (True, None)
    assert "VLLM_API_KEY" in found[Check.COMPLETION].says
    assert "sk-of-the-environment" not in found[Check.COMPLETION].says
