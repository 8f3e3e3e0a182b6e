"""The levers of a server keep the demand and know their direction."""

import pytest

from agent.catalogue.load_fit import load_fit_catalogue
from agent.fit.advice.advice import Demand
from agent.fit.advice.grid import levers, with_levers
from agent.fit.assessment import Setup
from agent.fit.bounds import GIB
from agent.fit.flags.flags import parse_flags
from agent.fit.needs import Needs

FIT = load_fit_catalogue()


def found(
    flags="", *, model="google/gemma-4-31B-it-qat-w4a16-ct", accelerator="nvidia-l4", count=1, vllm=None, **demand
):
    needs = Needs(context_tokens=demand.pop("context", None), users=demand.pop("users", 1))
    setup = Setup(
        model=FIT.models.find(model),
        accelerator=FIT.accelerator(accelerator),
        count=count,
        flags=parse_flags(flags),
        rules=FIT.rules(vllm),
    )
    values = {}
    for lever in levers(setup, Demand(needs=needs, **demand)):
        values.setdefault(lever.flag, []).extend(lever.values)
    return setup, values


def test_every_step_of_a_lever_is_stronger_than_the_one_before():
    _, values = found("--max-model-len 65536")
    assert values["max_model_len"] == [32768, 16384, 8192, 4096, 2048]
    assert values["max_num_seqs"] == sorted(values["max_num_seqs"], reverse=True)
    assert values["max_num_batched_tokens"] == sorted(values["max_num_batched_tokens"], reverse=True)
    assert values["cpu_offload_gb"] == sorted(values["cpu_offload_gb"])


def test_stated_needs_are_the_last_step():
    _, values = found("--max-model-len 65536", context=10000, users=6)
    assert values["max_model_len"] == [32768, 16384, 10000]
    assert values["max_num_seqs"][-1] == 6
    assert min(values["max_num_seqs"]) == 6


@pytest.mark.parametrize(
    ("flags", "more", "flag"),
    [
        pytest.param("--language-model-only", {}, "language_model_only", id="text-only already"),
        pytest.param("", {"images": True}, "language_model_only", id="images are used"),
        pytest.param("--enforce-eager", {}, "enforce_eager", id="eager already"),
        pytest.param("--kv-cache-dtype fp8", {}, "kv_cache_dtype", id="fp8 already"),
        pytest.param("", {"accelerator": "nvidia-a100-80gb"}, "kv_cache_dtype", id="fp8 below 8.9"),
        pytest.param("", {"vllm": "0.23"}, "async_scheduling", id="counts nothing before 0.26"),
        pytest.param("--kv-cache-memory-bytes 1000000000", {}, "gpu_memory_utilization", id="pool given"),
        pytest.param("", {"accelerator": "tpu-v6e"}, "cpu_offload_gb", id="no offload on a TPU"),
        pytest.param("", {"accelerator": "tpu-v6e"}, "enforce_eager", id="no graphs on a TPU"),
        pytest.param("", {}, "tensor_parallel_size", id="one device"),
        pytest.param("--max-model-len auto", {}, "max_model_len", id="vLLM chooses itself"),
        pytest.param("", {"host_bytes": 8 * GIB}, "cpu_offload_gb", id="no host memory"),
    ],
)
def test_a_lever_that_cannot_be_pulled_or_must_not_be_is_not_offered(flags, more, flag):
    assert flag not in found(flags, **more)[1]


def test_offload_stays_within_the_hosts_memory():
    _, values = found("", host_bytes=16 * GIB)
    assert max(values["cpu_offload_gb"]) == 8.0


def test_unused_devices_are_offered_where_they_divide_the_heads():
    assert found("", count=8)[1]["tensor_parallel_size"] == [2, 4, 8]
    assert found("--tensor-parallel-size 2", count=4)[1]["tensor_parallel_size"] == [4]


def test_one_higher_and_two_lower_shares_of_memory_are_tried():
    assert found("--gpu-memory-utilization 0.9")[1]["gpu_memory_utilization"] == [0.95, 0.85, 0.80]
    assert found("--gpu-memory-utilization 0.95")[1]["gpu_memory_utilization"] == [0.92, 0.90]


def test_pulling_a_lever_changes_its_flag_alone():
    setup, _ = found("--max-model-len 65536 --seed 7")
    for lever in levers(setup, Demand()):
        after = with_levers(setup.flags, {lever.flag: lever.strongest})
        differing = [n for n in after.__dataclass_fields__ if getattr(after, n) != getattr(setup.flags, n)]
        assert differing == [lever.flag]


@pytest.mark.parametrize(
    ("model", "vllm", "flag"),
    [
        ("google/gemma-3-12b-it", "0.17.0", "language_model_only"),
        ("google/gemma-3-12b-it", "0.16.0", "limit_mm_per_prompt"),
        ("google/gemma-3-12b-it", "0.15.0", None),
        ("google/gemma-3-12b-it", "0.12.0", None),
        ("Qwen/Qwen3-VL-8B-Instruct", "0.12.0", "limit_mm_per_prompt"),
    ],
)
def test_text_alone_is_asked_for_as_the_version_takes_it(model, vllm, flag):
    """--language-model-only is there from 0.17 on; before 0.16 few models read the limits."""
    _, values = found("--max-model-len 8192", model=model, vllm=vllm)
    assert {"language_model_only", "limit_mm_per_prompt"} & values.keys() == ({flag} if flag else set())


def test_sizes_by_which_weights_cannot_be_split_are_not_offered():
    assert found("", model="Qwen/Qwen2.5-7B", count=8)[1]["tensor_parallel_size"] == [2, 4]
