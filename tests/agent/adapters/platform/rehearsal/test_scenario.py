"""A scenario speaks for what was recorded, and for nothing else."""

from pathlib import Path
from typing import Any

import pytest

from agent.adapters.platform.rehearsal.scenario import facts, holds, load_scenario, mistaken
from agent.core.plan.action import SetEnv, SetFlag, SetResources, SetScaling, applied
from agent.core.service.serving import EnvVar, Probe, ServingConfig
from agent.errors import InputRejected

SMALL = """
service = "s"
platform = "cloud_run"
title = "t"
source = "made for a test"
[live]
revision = "s-1"
ready = true
[live.config]
args = ["serve", "m", "--max-model-len", "8192"]
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scenario.toml"
    path.write_text(text)
    return path


def test_another_change_beside_the_recorded_one_is_not_on_record(oom_scenario: Any) -> None:
    """Offload 5 GiB came up; offload 5 GiB with a shorter queue, more memory or another variable was never seen."""
    config = applied(oom_scenario.live.config, (SetFlag(name="cpu-offload-gb", value="5"),))
    assert oom_scenario.outcome_of(config).name == "offload 5 GiB"
    for more in (
        SetFlag(name="max-num-seqs", value="4"),
        SetResources(cpu=8, memory_mib=65536),
        SetEnv(name="VLLM_X", value="1"),
    ):
        assert oom_scenario.outcome_of(applied(config, (more,))) is None


def test_what_is_free_does_not_count(oom_scenario: Any) -> None:
    """How many instances there may be does not decide whether one starts."""
    config = applied(oom_scenario.live.config, (SetScaling(min_instances=1, max_instances=3),))
    assert oom_scenario.is_live(config) is False
    assert oom_scenario.outcome_of(config).name == "no offload, share 0.95, context 4096"


def test_leaving_out_a_flag_may_mean_its_default(oom_scenario: Any) -> None:
    """No offload is no offload, whether 0 is written or nothing is."""
    config = applied(oom_scenario.live.config, (SetFlag(name="cpu-offload-gb", value=None),))
    assert oom_scenario.is_live(config)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("platform =", "platfrom ="), "platfrom"),
        (("ready = true", ""), "ready"),
        (("source = ", "sauce = "), "source"),
        (("[live]", "[live"), "TOML"),
        (('revision = "s-1"', 'revision = "s-1"\nmystery = 1'), "mystery"),
    ],
)
def test_a_file_with_a_mistake_is_refused(tmp_path: Path, change: tuple[str, str], word: str) -> None:
    """The refusal names the mistake and the file."""
    with pytest.raises(InputRejected) as refused:
        load_scenario(written(tmp_path, SMALL.replace(*change)))
    assert word in str(refused.value)
    assert "scenario.toml" in str(refused.value)


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        ('name = "a"\nresult = "failed"\nafter_s = 1\nsource = "x"', "message"),
        ('name = "live"\nresult = "came_up"\nafter_s = 1\nsource = "x"', "live"),
        ('name = "a"\nresult = "came_up"\nafter_s = 1\nsource = ""', "source"),
        ('name = "a"\nresult = "came_up"\nafter_s = -1\nsource = "x"', "after_s"),
        ('name = "a"\nresult = "came_up"\nafter_s = 1\nsource = "x"\nwhen = { "flag x" = "about 5" }', "no test"),
        ('name = "a"\nresult = "came_up"\nbasis = "computed"\nafter_s = 1\nsource = "x"', "basis"),
    ],
    ids=["no message", "reserved name", "no source", "before its start", "no test", "a record cannot be computed"],
)
def test_an_outcome_that_cannot_be_trusted_is_refused(tmp_path: Path, outcome: str, word: str) -> None:
    """Every outcome says how it ended, who saw it and what it speaks for."""
    with pytest.raises(InputRejected) as refused:
        load_scenario(written(tmp_path, SMALL + "\n[[outcome]]\n" + outcome))
    assert word in str(refused.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """A typed error, not a trace."""
    with pytest.raises(InputRejected):
        load_scenario(tmp_path / "nothing.toml")


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
