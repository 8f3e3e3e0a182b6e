"""Flags that stretch a model's positions."""

import pytest

YARN = '{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}'


@pytest.mark.parametrize(
    "asked",
    [
        f"--rope-scaling '{YARN}'",
        f"""--hf-overrides '{{"rope_scaling":{YARN}}}'""",
        f"""--hf-overrides '{{"text_config":{{"rope_parameters":{YARN}}}}}'""",
        """--hf-overrides '{"max_position_embeddings":131072}'""",
        """--hf-overrides '{"rope_scaling":{"rope_type":"dynamic","factor":4}}'""",
    ],
)
def test_a_longer_context_is_answered_where_flags_give_the_positions(ask, asked):
    """Qwen 3 as its publisher says to serve 131,072 tokens: four times the table of cosines, no refusal."""
    flags = "--max-model-len 131072 --max-num-seqs 16"
    refused, served = (ask("Qwen/Qwen3-8B", "nvidia-h100-80gb", f"{flags} {more}", vllm="0.27") for more in ("", asked))
    assert (refused.fits, refused.reason.value, served.fits) == (False, "unsupported", True)
    assert served.weights_bytes.best > refused.weights_bytes.best
    assert any("positions instead of 40,960" in told for told in served.assumptions)


def test_a_stretched_context_costs_its_cache(ask):
    flags = f"--max-model-len 131072 --rope-scaling '{YARN}'"
    report = ask("Qwen/Qwen3-32B", "nvidia-h100-80gb", flags, vllm="0.10.2")
    assert (report.fits, report.reason.value) == (False, "one_request")


@pytest.mark.parametrize(
    "asked",
    [
        """--hf-overrides '{"architectures":["X"]}'""",
        "--hf-overrides {no",
        f"--rope-scaling '{YARN}' --max-model-len 200000",
    ],
)
def test_other_overrides_and_still_longer_contexts_are_cannot_tell(ask, asked):
    report = ask("Qwen/Qwen3-8B", "nvidia-h100-80gb", f"--max-model-len 131072 {asked}", vllm="0.27")
    assert report.fits is None
