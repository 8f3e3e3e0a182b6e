"""What recurrent states ask of blocks and batches before anything is captured."""

import pytest

ALIGNED = "--max-model-len 8192 --max-num-seqs 32 --enable-prefix-caching"


@pytest.mark.parametrize(
    ("flags", "vllm", "fits"),
    [
        ("--mamba-cache-mode align --max-num-batched-tokens 512", "0.20.0", False),
        ("--max-num-batched-tokens 512", "0.20.0", False),
        ("--max-num-batched-tokens 2048", "0.20.0", True),
        ("--mamba-cache-mode align --no-enable-chunked-prefill --max-num-batched-tokens 8192", "0.20.0", False),
        ("--no-enable-chunked-prefill --max-num-batched-tokens 8192", "0.33.0", False),
        ("--disable-chunked-mm-input --max-num-batched-tokens 8192", "0.20.0", False),
        ("--max-num-batched-tokens 512", "0.28.0", True),
        ("--no-enable-prefix-caching --max-num-batched-tokens 512", "0.20.0", True),
    ],
)
def test_aligned_states_need_whole_blocks_in_a_step_and_prompts_in_parts(ask, flags, vllm, fits):
    """vLLM: "In Mamba cache align mode, block_size (784) must be <= max_num_batched_tokens (512)"."""
    report = ask("Qwen/Qwen3.6-27B", "nvidia-h200", f"{ALIGNED} {flags}", vllm=vllm)
    assert (report.fits, report.reason == "unsupported") == (fits, not fits)


@pytest.mark.parametrize(
    ("flags", "vllm", "fits"),
    [("", "0.20.0", True), ("--mamba-cache-mode align", "0.20.0", False), ("", "0.27.0", True), ("", "0.28.0", False)],
)
def test_mamba_2_keeps_every_state_unless_it_is_asked_to_align(ask, flags, vllm, fits):
    asked = f"{ALIGNED} --no-enable-chunked-prefill --max-num-batched-tokens 8192 {flags}"
    report = ask("ibm-granite/granite-4.0-h-tiny", "nvidia-h200", asked, vllm=vllm)
    assert (report.reason == "unsupported") is not fits
