"""The way back from drift is a request that the agent itself would understand; the rest is left to a person."""

import pytest

from agent.core.change.asked_settings import AskedSettings, actions_of
from agent.core.change.config_drift import Drift
from agent.core.change.way_back import way_back

STATE = {"min_instances": "1", "max_instances": "4", "cpu": "8.0", "memory_mib": "32768"}


def drift(path, wanted, live="x"):
    return Drift(path=path, wanted=wanted, live=live, against="declared")


@pytest.mark.parametrize(
    ("row", "asked"),
    [
        (drift("flag --max-num-seqs", "8"), {"set_flag": ("max-num-seqs=8",)}),
        (drift("flag --enforce-eager", ""), {"set_flag": ("enforce-eager=",)}),
        (drift("flag --enforce-eager", None), {"unset_flag": ("enforce-eager",)}),
        (drift("env HF_HUB_OFFLINE", "1"), {"set_env": ("HF_HUB_OFFLINE=1",)}),
        (drift("max_instances", "2"), {"scale": "1:2"}),
        (drift("memory_mib", "16384"), {"resources": "8.0:16384"}),
        (drift("concurrency", "4"), {"concurrency": "4"}),
        (drift("accelerator", "nvidia-l4"), {"accelerator": "nvidia-l4"}),
    ],
    ids=lambda value: value.path if isinstance(value, Drift) else "",
)
def test_a_setting_that_can_be_asked_for_is_asked_for(row, asked):
    """In words of which the agent makes actions."""
    found, left = way_back((row,), STATE)
    assert (found, left) == (AskedSettings(**asked), ())
    assert actions_of(found, shape_of=lambda _: (8.0, 32_768))


@pytest.mark.parametrize(
    "row",
    [
        drift("image", "vllm/vllm-openai:v0.32.0"),
        drift("startup_probe failure_threshold", "56"),
        drift("env HF_TOKEN", "[redacted:hugging-face]"),
        drift("flag --hf-overrides", "key=[redacted:token]"),
        drift("env HF_HUB_OFFLINE", None),
        drift("concurrency", None),
        drift("max_instances", None),
    ],
    ids=lambda row: f"{row.path} {row.wanted}",
)
def test_what_no_request_can_do_is_left_to_a_person(row):
    """A secret is not among what we know: asking for it would write its placeholder into the service."""
    assert way_back((row,), STATE) == (AskedSettings(), (row,))


def test_the_other_end_of_the_scaling_is_not_made_up():
    """Where the platform's default holds, nobody has said how many instances there may be at most."""
    rows = (drift("min_instances", "1"),)
    assert way_back(rows, {"min_instances": "0"}) == (AskedSettings(), rows)
