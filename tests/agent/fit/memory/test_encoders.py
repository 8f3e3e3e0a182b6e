"""What the profile run takes for images and videos."""

import pytest

from agent.fit.bounds import GIB
from agent.fit.flags.flags import parse_flags
from agent.fit.memory.batch import effective
from agent.fit.memory.overheads import activation_peak


@pytest.mark.parametrize(
    ("name", "flags", "gib"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "", 15.25),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "--limit-mm-per-prompt '{\"video\":0}'", 2.27),
        ("RedHatAI/Qwen3.6-35B-A3B-NVFP4", "--max-num-batched-tokens 4096 --max-num-seqs 1", 2.92),
        ("Qwen/Qwen3.6-35B-A3B", "--max-model-len 8192 --max-num-batched-tokens 4096 --max-num-seqs 1", 1.98),
        ("Qwen/Qwen3.8-27B", "-tp 2 --max-num-seqs 1", 1.51),
        ("nvidia/Qwen3.6-27B-NVFP4", "--max-num-batched-tokens 65536 --max-num-seqs 8", 11.39),
        ("Qwen/Qwen3.6-27B", "--language-model-only --max-num-seqs 1", 0.37),
    ],
)
def test_a_large_image_or_video_is_what_the_profile_run_holds(catalogue, name, flags, gib):
    """Recorded: one video of 114,688 tokens, one image of 16,384 whatever the context, four images in a large batch."""
    model, card = catalogue.models.find(name), catalogue.accelerator("nvidia-a100-80gb")
    parsed = parse_flags(flags)
    rules = catalogue.rules("0.23")
    run = effective(model, card, parsed, rules)
    assert activation_peak(model, parsed, run, rules).best / GIB == pytest.approx(gib, rel=0.02)


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        ('{"max_pixels":1003520,"min_pixels":3136}', True),
        ('{"max_pixels":1280,"use_fast":true}', True),
        ('{"max_pixels":99999999}', None),
        ('{"max_pixels":true}', None),
        ('{"max_pixels":-1}', None),
        ('{"size":{"longest_edge":1280}}', None),
        ("no", None),
    ],
)
def test_smaller_images_take_no_more_to_profile(ask, asked, fits):
    flags = "--max-model-len 8192 --limit-mm-per-prompt '{\"video\":0}'"
    whole, small = (
        ask("Qwen/Qwen2.5-VL-7B-Instruct", "nvidia-l40s", f"{flags} {more}", vllm="0.19")
        for more in ("", f"--mm-processor-kwargs '{asked}'")
    )
    assert (whole.fits, small.fits) == (True, fits)
    assert small.overheads.activations.low <= whole.overheads.activations.low
    assert small.overheads.activations.high == whole.overheads.activations.high


@pytest.mark.parametrize(
    ("card", "version", "kernel", "fits"),
    [
        ("nvidia-l40s", "0.19.0", "flash_attn", True),
        ("nvidia-l40s", "0.20.2", "FLASHINFER", True),
        ("nvidia-l40s", "0.19.0", "FLASHINFER", None),
        ("nvidia-l40s", "0.20.2", "TORCH_SDPA", None),
        ("nvidia-l40s", "0.20.2", "ROCM_AITER_FA", None),
        ("amd-mi300x", "0.20.2", "FLASHINFER", None),
    ],
)
def test_vision_kernels_with_linear_memory_are_counted(ask, card, version, kernel, fits):
    flags = f"--max-model-len 8192 --mm-encoder-attn-backend {kernel}"
    assert ask("Qwen/Qwen2.5-VL-7B-Instruct", card, flags, vllm=version).fits is fits


@pytest.mark.parametrize(
    ("card", "count", "flags", "version", "pool_gib"),
    [
        ("nvidia-rtx-3090", 4, "-tp 4 --gpu-memory-utilization 0.90 --max-model-len 65536", "0.11.0", 2.31),
        ("nvidia-h100-80gb", 2, "-tp 2 --max-model-len 65536 --max-num-seqs 64", "0.12.0", 38.15),
        ("nvidia-h100-80gb", 2, "-tp 2 --max-model-len 65536 --max-num-seqs 256", "0.12.0", 37.23),
    ],
)
def test_the_embeddings_of_a_whole_video_are_held_beside_the_text(ask, card, count, flags, version, pool_gib):
    """Rows held26, held448 and held449, all of which started."""
    report = ask("Qwen/Qwen3-VL-30B-A3B-Instruct", card, flags, vllm=version, count=count)
    assert report.fits is True
    assert report.kv_cache_bytes.low / GIB < pool_gib < report.kv_cache_bytes.high / GIB


def test_a_video_is_no_longer_than_the_context(ask):
    short, long = (
        ask("Qwen/Qwen3-VL-30B-A3B-Instruct", "nvidia-h200", f"--max-model-len {n}", vllm="0.12.0").overheads
        for n in (4096, 65536)
    )
    assert long.activations.best - short.activations.best == pytest.approx(2 / 3 * 153_600 * 2048 * 4 * 2)


@pytest.mark.parametrize(
    ("model", "card", "flags", "vllm", "fits"),
    [
        pytest.param("mistralai/Voxtral-Mini-3B-2507", "amd-mi300x", "", "0.27", True, id="158 GiB to spare"),
        pytest.param("mistralai/Voxtral-Mini-3B-2507", "nvidia-h100-80gb", "", "0.27", True, id="60 GiB to spare"),
        pytest.param("mistralai/Voxtral-Mini-3B-2507", "nvidia-l4", "", "0.27", None, id="10 GiB to spare"),
        pytest.param("mistralai/Voxtral-Mini-3B-2507", "nvidia-h100-80gb", "", "0.12", None, id="whole videos"),
        pytest.param(
            "mistralai/Voxtral-Mini-3B-2507",
            "nvidia-h100-80gb",
            "--max-num-batched-tokens 65536",
            "0.27",
            None,
            id="a large batch",
        ),
    ],
)
def test_a_tower_that_nobody_saw_profiled_fits_where_twice_the_most_that_was_seen_does(
    ask, model, card, flags, vllm, fits
):
    """Row held218 of held_out.json: Voxtral Mini started on an MI300X."""
    report = ask(model, card, f"--max-model-len 8192 --max-num-seqs 64 {flags}", vllm=vllm)
    assert report.fits is fits
    assert any("audio tower takes was not recorded" in told for told in report.assumptions)


def test_a_wider_tower_may_take_more(ask):
    flags = "--max-model-len 8192 --max-num-seqs 16 --tensor-parallel-size 4"
    small, large = (
        ask(model, "nvidia-h200", flags, vllm="0.27", count=4).overheads.activations.high / GIB
        for model in ("OpenGVLab/InternVL3-14B", "OpenGVLab/InternVL3-38B")
    )
    assert large > small + 2 * 32


IMAGE = """--limit-mm-per-prompt '{"image":1,"video":0}'"""
NONE = """--limit-mm-per-prompt '{"image":0,"video":0}'"""


@pytest.mark.parametrize(
    ("model", "card", "flags", "fits"),
    [
        pytest.param("Qwen/Qwen3-VL-2B-Instruct", "amd-rx-7800-xt", IMAGE, None, id="asked-for-256-GiB"),
        pytest.param("Qwen/Qwen3-VL-2B-Instruct", "amd-rx-7800-xt", NONE, True, id="no-image"),
        pytest.param("Qwen/Qwen3-VL-2B-Instruct", "amd-mi100", IMAGE, None, id="older-data-center"),
        pytest.param("Qwen/Qwen3-VL-2B-Instruct", "amd-mi300x", IMAGE, True, id="data-center"),
        pytest.param("google/gemma-3-4b-it", "amd-rx-7900-xtx", "", None, id="many-small-images"),
    ],
)
def test_what_an_image_encoder_takes_without_flash_attention_is_not_known(ask, model, card, flags, fits):
    """Reported: a Qwen3-VL 2B with an image ran out of memory in its profile run, and served without one."""
    more = "--max-model-len 2K --max-num-seqs 1 --max-num-batched-tokens 2K"
    report = ask(model, card, f"{more} {flags}", vllm="0.17")
    assert report.fits is fits
    assert any("FlashAttention" in said for said in report.assumptions) is (fits is None)


def test_a_start_that_profiles_no_image_says_that_one_may_still_end_it(ask):
    """The first large image asks for what the profile run would have asked for."""
    flags = "--max-model-len 2K --max-num-seqs 1 --skip-mm-profiling"
    report = ask("Qwen/Qwen3-VL-2B-Instruct", "amd-rx-7800-xt", flags, vllm="0.17")
    assert report.fits is True
    assert any("an image may ask for more" in said for said in report.assumptions)


def test_a_checkpoint_that_was_seen_in_two_sizes_is_bounded_by_both(ask):
    """Two starts of the same settings, two days apart, printed these beside their draft."""
    draft = '{"model":"poolside/Laguna-S-2.1-DFlash-INT4","num_speculative_tokens":15}'
    flags = f"--max-model-len 65536 --gpu-memory-utilization 0.89 --max-num-seqs 32 --speculative-config '{draft}'"
    weights = ask("poolside/Laguna-S-2.1-INT4", "nvidia-gb10", flags, vllm="0.25").weights_bytes
    assert weights.low / GIB < 69.34 < 95.46 < weights.high / GIB


@pytest.mark.parametrize(
    ("model", "card", "flags", "fits"),
    [
        ("Qwen/Qwen3-ASR-1.7B", "nvidia-l4", "--max-model-len 4096", True),
        ("Qwen/Qwen3-ASR-0.6B", "nvidia-l4", "--max-model-len 4096", True),
        ("deepseek-ai/DeepSeek-OCR", "nvidia-rtx-3090", "--max-model-len 8192 --max-num-seqs 32", True),
        ("deepseek-ai/DeepSeek-OCR-2", "nvidia-l40s", "--max-model-len 8192 --max-num-seqs 32", True),
        ("deepseek-ai/DeepSeek-OCR-2", "nvidia-l40s", "--max-num-seqs 32 --max-num-batched-tokens 16384", None),
        ("Qwen/Qwen3-ASR-1.7B", "nvidia-l4", "--max-model-len 4096 --max-num-batched-tokens 16384", None),
        ("PaddlePaddle/PaddleOCR-VL", "nvidia-l4", "--max-model-len 4096", None),
    ],
)
def test_items_of_one_size_whose_code_was_read_bound_what_was_never_recorded(ask, model, card, flags, fits):
    """Rows held299 and held729 started; a larger batch may hold more of their items at once."""
    report = ask(model, card, flags, vllm="0.30.0")
    assert report.fits is fits
    assert any("was not recorded" in told for told in report.assumptions) or fits is None
