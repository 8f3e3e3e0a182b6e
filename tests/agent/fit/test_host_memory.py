"""What loading and serving take of the container's memory."""

import pytest

from agent.fit.assessment import Setup
from agent.fit.bounds import GIB, Bounds
from agent.fit.flags.flags import parse_flags
from agent.fit.host_memory import host_need

QAT = "google/gemma-4-26B-A4B-it-qat-w4a16-ct"
MOUNTED = Bounds.exactly(0)


@pytest.fixture
def need(catalogue):
    def asked(flags="", *, accelerator="nvidia-l4", files=MOUNTED, model=QAT):
        parsed = parse_flags(flags)
        setup = Setup(
            model=catalogue.models.find(model),
            accelerator=catalogue.accelerator(accelerator),
            count=parsed.world,
            flags=parsed,
            rules=catalogue.rules(None),
        )
        return host_need(setup, files_in_memory=files)

    return asked


def test_a_checkpoint_larger_than_the_container_was_loaded(need):
    """Recorded: 16.44 GB came up in 16,384 MiB, for what is mapped is page cache; so the need must allow it."""
    assert need("--language-model-only").fits(16384 * 2**20) is True
    assert need().fits(16384 * 2**20) is True


@pytest.mark.parametrize(("flags", "more"), [("--cpu-offload-gb 8", 8), ("--cpu-offload-gb 14", 14)])
def test_offload_pins_host_memory_rounded_up(need, flags, more):
    """At least what is offloaded, at most twice that; recorded: 14 GiB came up in 32,768 MiB."""
    with_it, without = need(flags).total, need().total
    assert with_it.low - without.low == more * GIB
    assert with_it.high - without.high == 2 * more * GIB
    assert need(flags).fits(32768 * 2**20) is not False


def test_too_little_for_the_processes_alone_is_told(need):
    """The optimistic end does not fit."""
    assert need().fits(2 * GIB) is False


def test_files_that_lie_in_memory_count(need):
    """A checkpoint downloaded into a file system in memory."""
    assert need(files=Bounds.exactly(16 * GIB)).total.low == need().total.low + 16 * GIB


def test_several_workers_take_more_and_share_memory(need):
    """Each worker is a process; their queues lie in shared memory."""
    two = need("--tensor-parallel-size 2").total
    assert two.low > need().total.low + GIB
    assert two.high > need().total.high + 4 * GIB


def test_images_are_kept_only_where_they_are_served(need):
    """The cache of processed images is empty after a start and may fill to its limit twice."""
    assert need().total.high - need("--language-model-only").total.high == 8 * GIB
    assert need("--mm-processor-cache-gb 0").total == need("--language-model-only").total


def test_a_loader_that_reads_whole_files_holds_them(need, catalogue):
    """At most all of the checkpoint."""
    size = catalogue.models.find(QAT).checkpoint_bytes
    assert need("--safetensors-load-strategy eager").total.high == need().total.high + size


@pytest.mark.parametrize(
    ("flags", "accelerator", "says"),
    [
        ("--load-format runai_streamer", "nvidia-l4", "runai_streamer"),
        ("--kv-cache-memory-bytes 1G", "cpu", "w4a16-g32"),
    ],
)
def test_what_is_not_modelled_is_not_computed(need, flags, accelerator, says):
    """Doubt is never "fits", however large the container."""
    found = need(flags, accelerator=accelerator)
    assert says in found.unknown
    assert found.fits(2**50) is None


def test_values_that_cannot_be_read_count_as_the_default(need):
    """VLLM refuses them itself."""
    assert need("--mm-processor-cache-gb many").total == need().total


def test_weights_cache_and_activations_lie_beside_the_processes_on_a_cpu(need):
    """16 GiB cannot hold the weights of an 8B model and the processes; 64 GiB hold everything."""
    found = need("--max-model-len 8192 --kv-cache-memory-bytes 4G", accelerator="cpu", model="Qwen/Qwen3-8B")
    sizes = {part.name: part.size for part in found.parts}
    assert sizes["Weights"].best / GIB == pytest.approx(15.27, abs=0.05)
    assert (sizes["KV cache"].low, sizes["KV cache"].high) == (0, 4 * GIB)
    assert sizes["Packed copies"].high == 2 * 151_936 * 4096 * 2, "embedding and head keep both copies"
    assert [found.fits(limit * GIB) for limit in (16, 18, 64)] == [False, None, True]


def test_each_rank_on_a_cpu_has_a_cache_and_activations_of_its_own(need):
    """VLLM_CPU_KVCACHE_SPACE is one worker's; weights are divided, so their sum stays."""
    flags = "--max-model-len 8192 --kv-cache-memory-bytes 4G"
    one, two = (
        need(f"{flags} --tensor-parallel-size {ranks}", accelerator="cpu", model="Qwen/Qwen3-8B") for ranks in (1, 2)
    )
    first, second = ({part.name: part.size for part in found.parts} for found in (one, two))
    assert second["KV cache"].high == 2 * first["KV cache"].high
    assert second["Weights"].best == pytest.approx(first["Weights"].best, rel=0.01)
    assert "Further workers" in second


def test_a_container_in_which_vllm_was_killed_is_too_small(need):
    """Recorded: a made-up model of a few megabytes was killed by the limit of 1,900 MiB (vLLM 0.32.0)."""
    found = need("--kv-cache-memory-bytes 1G", accelerator="cpu", model="HuggingFaceTB/SmolLM2-135M-Instruct")
    assert found.fits(1900 * 2**20) is False
    assert found.fits(3 * GIB) is None


@pytest.mark.parametrize(
    ("model", "flags", "says"),
    [
        ("Qwen/Qwen3-8B", "", "VLLM_CPU_KVCACHE_SPACE"),
        ("Qwen/Qwen3-30B-A3B", "--kv-cache-memory-bytes 4G", "experts"),
        ("Qwen/Qwen3-8B", "--kv-cache-memory-bytes 4G -sc.method mtp", "guessing"),
    ],
)
def test_what_was_not_read_of_the_cpu_backend_is_told(need, model, flags, says):
    """A share of the host, repacked experts and draft models have no figure."""
    found = need(flags, accelerator="cpu", model=model)
    assert says in found.unknown
    assert found.fits(2**50) is None
