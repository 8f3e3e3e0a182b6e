"""Failed allocations are named by their size."""

import pytest

from agent.catalogue.load_fit import load_fit_catalogue
from agent.errors import InputRejected
from agent.fit.allocation import AllocationKind as A
from agent.fit.allocation import Moment, name_allocation, printed_size
from agent.fit.bounds import GIB, MIB
from agent.fit.flags.flags import Flags

MODELS = load_fit_catalogue().models


def kinds(text, model, **more):
    return [found.kind for found in name_allocation(printed_size(text), MODELS.find(model), **more)]


def test_2_62_gib_on_the_31b_is_the_output_head_built_while_loading():
    """Seed 000 blamed CUDA graphs; the size is vocabulary x hidden x 2 bytes."""
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.62 GiB. GPU 0 has a total capacity of 21.96 GiB"
    first, *_ = name_allocation(printed_size(line), MODELS.find("google/gemma-4-31B-it-qat-w4a16-ct"))
    assert (first.kind, first.moment) == (A.OUTPUT_HEAD, Moment.LOADING)
    assert (first.n_bytes, first.formula) == (262_144 * 5376 * 2, "262144 x 5376 x 2 B")
    assert "enforce_eager" not in first.helped_by
    assert "gpu_memory_utilization" not in first.helped_by
    assert "cpu_offload_gb" in first.helped_by


@pytest.mark.parametrize(
    ("size", "model"),
    [
        ("1.88 GiB", "google/gemma-4-12B-it"),
        ("1.38 GiB", "google/gemma-4-26B-A4B-it"),
        ("1.25 GiB", "google/gemma-4-E4B-it"),
        ("768.00 MiB", "google/gemma-4-E2B-it"),
    ],
)
def test_every_size_of_gemma_4_has_its_own_output_head(size, model):
    assert kinds(size, model)[0] is A.OUTPUT_HEAD


def test_56_mib_on_two_cards_is_a_packed_feed_forward_weight_of_the_nvfp4_31b():
    """55.1 MiB of values, which the allocator rounds to 56; seen on two RTX 5070 Ti."""
    found = name_allocation(
        printed_size("Tried to allocate 56.00 MiB."),
        MODELS.find("nvidia/Gemma-4-31B-IT-NVFP4"),
        flags=Flags(tensor_parallel_size=2),
    )
    assert [one.kind for one in found] == [A.MLP_WEIGHT]
    assert found[0].n_bytes == 5376 * 21504 // 2
    assert "gate_up_proj" in found[0].why


def test_tensor_parallelism_divides_the_head():
    assert kinds("1.31 GiB", "nvidia/Gemma-4-31B-IT-NVFP4", flags=Flags(tensor_parallel_size=2))[0] is A.OUTPUT_HEAD
    assert kinds("2.62 GiB", "nvidia/Gemma-4-31B-IT-NVFP4", flags=Flags(tensor_parallel_size=2)) == []


@pytest.mark.parametrize("size", ["3.00 GiB", "777.00 MiB", "17.50 GiB"])
def test_a_size_that_nothing_of_this_model_has_is_not_named(size):
    assert kinds(size, "google/gemma-4-31B-it-qat-w4a16-ct", batched_tokens=2048, num_seqs=256) == []


def test_an_untied_head_is_no_transient():
    found = name_allocation(printed_size("1002.00 MiB"), MODELS.find("meta-llama/Llama-3.1-8B-Instruct"))
    head = next(one for one in found if one.kind is A.OUTPUT_HEAD)
    assert "transient" not in head.why


def test_the_samplers_scores_are_named_only_when_the_batch_is_known():
    seen = kinds("256.00 MiB", "google/gemma-4-12B-it", num_seqs=256)
    assert A.LOGITS in seen
    assert A.LOGITS not in kinds("256.00 MiB", "google/gemma-4-12B-it")


def test_a_failure_while_profiling_is_not_a_weight():
    assert A.OUTPUT_HEAD not in kinds("2.62 GiB", "google/gemma-4-31B-it", moment=Moment.PROFILING)


@pytest.mark.parametrize("size", ["2.00 MiB", "20.00 MiB"])
def test_an_allocator_segment_is_said_to_tell_nothing(size):
    """Seen with 2.00 MiB on a full card in issue 15598 of vLLM."""
    assert kinds(size, "google/gemma-4-31B-it") == [A.ALLOCATOR_SEGMENT]


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("2.62 GiB", 2.615 * GIB, 2.625 * GIB),
        ("56.00 MiB", 55.995 * MIB, 56.005 * MIB),
        ("Tried to allocate 512 bytes", 512, 512),
        ("14 KiB", 13.5 * 1024, 14.5 * 1024),
    ],
)
def test_a_printed_size_stands_for_all_sizes_that_print_like_it(text, low, high):
    size = printed_size(text)
    assert (size.low, size.high) == (int(low), int(high))


@pytest.mark.parametrize("text", ["", "no size here", "2.62 GB of it", "x" * 10_000])
def test_text_without_a_size_is_refused(text):
    with pytest.raises(InputRejected):
        printed_size(text)
