"""Which facts decide, and when a test on one holds."""

import pytest

from agent.adapters.platform.rehearsal.conditions import facts, holds, mistaken
from agent.core.service.serving import EnvVar, Probe, ServingConfig


@pytest.mark.parametrize(
    ("test", "value", "answer"),
    [
        ("= 0.9", "0.90", True),
        ("= 0.9", "0.91", False),
        ("= fp8", "fp8", True),
        ("!= fp8", "auto", True),
        ("!= fp8", None, True),
        (">= 790", "790", True),
        (">= 790", "789", False),
        ("< 787", "780", True),
        ("> 1", None, False),
        ("> 1", "many", False),
        ("<= 32640", "32640", True),
        ("absent", None, True),
        ("absent", "", False),
        ("present", "", True),
        ("present", None, False),
        ("any", None, True),
        (("absent", "= 0"), "0", True),
        (("absent", "= 0"), "5", False),
    ],
)
def test_a_test_holds(test: object, value: str | None, answer: bool) -> None:
    """Numbers are equal however they are written; what is absent passes no comparison."""
    assert holds(test, value) is answer
    assert not mistaken(test)


@pytest.mark.parametrize("test", ["790", "=790", "about 5", ">= ", "", ("= 1", "one")])
def test_a_word_that_is_no_test_is_noticed(test: object) -> None:
    """A scenario with it is refused when it is read."""
    assert mistaken(test)


def test_flags_are_facts_by_their_canonical_name() -> None:
    """Underscores, equal signs and the last of several all lead to one fact; the model is a fact of its own."""
    config = ServingConfig(args=("serve", "m", "--max_model_len=1", "--max-model-len", "8192", "--enforce-eager"))
    found = facts(config)
    assert found["flag max-model-len"] == "8192"
    assert found["flag enforce-eager"] == ""
    assert found["model"] == "m"
    assert facts(ServingConfig(args=("--model", "m")))["model"] == "m"
    assert "flag model" not in facts(ServingConfig(args=("--model", "m")))


def test_a_probe_counts_by_its_whole_budget() -> None:
    """Two ways to wait 300 s are one fact; without a probe the platform's own 240 s count."""
    one = ServingConfig(startup_probe=Probe(kind="http", path="/health", port=1, period_s=30, failure_threshold=10))
    other = ServingConfig(
        startup_probe=Probe(kind="http", path="/health", port=1, initial_delay_s=60, period_s=24, failure_threshold=10)
    )
    assert facts(one) == facts(other)
    assert facts(ServingConfig())["startup_probe budget_s"] == "240"


def test_a_secret_is_a_fact_by_its_name() -> None:
    """Its value is nowhere."""
    assert facts(ServingConfig(env=(EnvVar(name="K", secret="vault"),)))["env K"] == "secret vault"
