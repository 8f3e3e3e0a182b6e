"""Flags that stretch a model's positions."""

import json

import pytest

YARN = '{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}'


@pytest.mark.parametrize(
    "asked",
    [
        f"""--hf-overrides '{{"rope_scaling":{YARN}}}'""",
        f"""--hf-overrides '{{"rope_parameters":{YARN}}}'""",
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
        pytest.param("--hf-overrides", id="no-value"),
        *(
            pytest.param(f"--hf-overrides '{text}'", id=name)
            for name, text in {
                "longer-still": f"{{\"rope_scaling\":{YARN}}}' --max-model-len '200000",
                "fewer-by-their-original": f'{{"rope_scaling":{YARN.replace("32768", "8192")}}}',
                "a-type-that-multiplies-nothing": f'{{"rope_scaling":{YARN.replace("yarn", "llama3")}}}',
                "a-type-that-starts-short": f'{{"rope_scaling":{YARN.replace("yarn", "longrope")}}}',
                "no-type": '{"rope_scaling":{"factor":4}}',
                "two-scalings": f'{{"rope_scaling":{YARN},"rope_parameters":{YARN}}}',
                "of-a-text-config-that-it-has-not": f'{{"text_config":{{"rope_parameters":{YARN}}}}}',
                "of-another-kind": f'{{"rope_scaling":{YARN},"num_hidden_layers":400}}',
                "no-object": '{"rope_scaling":[]}',
                "words": '{"max_position_embeddings":"131072"}',
                "true": '{"max_position_embeddings":true}',
                "huge": f'{{"max_position_embeddings":1{"0" * 400}}}',
                "not-a-number": '{"rope_scaling":{"rope_type":"dynamic","factor":NaN}}',
                "infinite": '{"rope_scaling":{"rope_type":"dynamic","factor":Infinity}}',
                "negative": '{"rope_scaling":{"rope_type":"dynamic","factor":-4}}',
                "deep": '{"a":' * 5_000,
            }.items()
        ),
    ],
)
def test_positions_that_are_not_sure_or_too_few_are_cannot_tell(ask, asked):
    report = ask("Qwen/Qwen3-8B", "nvidia-h100-80gb", f"--max-model-len 131072 {asked}", vllm="0.27")
    assert report.fits is None


@pytest.mark.parametrize(
    "positions", ['"max_position_embeddings":8192', f'"rope_scaling":{YARN.replace("32768", "2048")}']
)
def test_fewer_positions_than_a_models_own_end_its_context(ask, positions):
    """The longest context is derived from them: 8,192 where 40,960 are the model's own."""
    asked = f"--max-num-seqs 16 --hf-overrides '{{{positions}}}'"
    given, own = (
        ask("Qwen/Qwen3-8B", "nvidia-h100-80gb", f"{asked} {length}", vllm="0.27")
        for length in ("--max-model-len 32768", "")
    )
    assert (given.fits, own.fits, own.max_model_len) == (None, True, 8192)


@pytest.mark.parametrize(
    ("section", "fits"), [({"text_config": {"rope_parameters": json.loads(YARN)}}, True), (json.loads(YARN), None)]
)
def test_a_model_with_towers_takes_positions_in_its_text_config(ask, section, fits):
    section = json.dumps(section).replace("32768", "262144")
    flags = f"--max-model-len 300000 --max-num-seqs 4 --hf-overrides '{section}'"
    report = ask("Qwen/Qwen3.5-9B", "nvidia-h100-80gb", flags, vllm="0.27")
    assert report.fits is fits


@pytest.mark.parametrize("model", ["openai/gpt-oss-20b", "google/gemma-3-1b-it", "deepseek-ai/DeepSeek-V2-Lite"])
def test_positions_of_a_model_that_stretches_its_own_are_cannot_tell(ask, model):
    flags = """--max-model-len 200000 --hf-overrides '{"max_position_embeddings":262144}'"""
    assert ask(model, "nvidia-h100-80gb", flags, vllm="0.27").fits is None


def test_a_flag_that_0_12_has_no_more_is_refused(ask):
    asked = f"--max-model-len 131072 --rope-scaling '{YARN}'"
    report = ask("Qwen/Qwen3-8B", "nvidia-h100-80gb", asked, vllm="0.27")
    assert (report.fits, report.reason) == (False, "unsupported")
