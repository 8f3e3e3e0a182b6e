"""What a checkpoint's name says of its shape, and which known size a tuner's name contains."""

import pytest

from agent.catalogue.load_fit import load_fit_catalogue
from agent.catalogue.model_names import shape_of
from agent.errors import InputRejected


@pytest.fixture(scope="module")
def catalogue():
    return load_fit_catalogue()


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("gemma-4-31b-it-qat-w4a16-ct", ("gemma", "4", "31b")),
        ("qwen3.8-27b-nvfp4-rtx5090", ("qwen", "3.8", "27b")),
        ("llama-3.1-8b-instruct.iq4_xs", ("llama", "3.1", "8b", "iq4", "xs")),
    ],
)
def test_packaging_words_are_no_part_of_the_shape(name, shape):
    assert shape_of(name) == shape


@pytest.mark.parametrize(
    ("name", "base", "scheme"),
    [
        ("someone/Qwen3-14B-abliterated", "Qwen/Qwen3-14B", "bf16"),
        ("Huihui-Qwen3-14B-abliterated-v2", "Qwen/Qwen3-14B", "bf16"),
        ("someone/Dolphin3.0-Llama3.1-8B-FP8", "meta-llama/Llama-3.1-8B-Instruct", "fp8"),
        ("someone/Qwen3-14B-Uncensored-NVFP4", "Qwen/Qwen3-14B", "nvfp4"),
        ("someone/Huihui-gpt-oss-20b-mxfp4-abliterated-v2", "openai/gpt-oss-20b", "mxfp4"),
        ("someone/Qwen3-14B-finetuned-bnb-4bit", "Qwen/Qwen3-14B", "bnb-4bit"),
        ("someone/gemma-3-12b-it-heretic", "google/gemma-3-12b-it", "bf16"),
        ("someone/Llama-3.1-8B-Instruct-medical-sft-v2", "meta-llama/Llama-3.1-8B-Instruct", "bf16"),
    ],
)
def test_a_tuned_checkpoint_is_taken_as_the_size_in_its_name_by_a_stated_assumption(catalogue, name, base, scheme):
    found = catalogue.models.find(name)
    assert found.layers == catalogue.models.find(base).layers
    assert found.quant.scheme == scheme
    assert any(f"{name} is taken as {base}" in told for told in found.assumptions)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("someone/Llama-3.1-8B-Instruct-speculator.eagle3", id="a-draft-of-it"),
        pytest.param("someone/Qwen3-8B-reward", id="another-head"),
        pytest.param("someone/Qwen3-14B-pruned", id="fewer-layers"),
        pytest.param("someone/Qwen3-14B-to-7B", id="another-size"),
        pytest.param("someone/Qwen3-8B-128K", id="another-context"),
        pytest.param("someone/Qwen3-8B-PrismaQuant-4.75bit", id="a-width-that-is-not-known"),
        pytest.param("someone/gpt-oss-20b-derestricted", id="stored-narrow-by-its-maker-perhaps-wide-by-its-tuner"),
        pytest.param("someone/Qwen3.6-27B-Uncensored-NVFP4-MTP", id="recurrent-layers-of-some-width"),
        pytest.param("someone/Qwen2.5-7B-Instruct-bnb-4bit-merged", id="merged-in-16-bits-with-what-was-in-four"),
        pytest.param("someone/llama-3-8b-bnb-4bit-finetuned", id="trained-in-four-bits"),
        pytest.param("someone/Qwen3-14B-AWQ-abliterated", id="another-base-in-four-bits"),
        pytest.param("someone/Uncensored-14B", id="no-known-size"),
        pytest.param("someone/llava-onevision-llama-3-8b-hf", id="images"),
        pytest.param("llava-hf/llava-interleave-qwen-7b-hf", id="many-images"),
        pytest.param("someone/TinyLLaVA-Llama-3-8B", id="images-by-a-longer-word"),
        pytest.param("someone/cambrian-llama-3-8b", id="images-by-a-name-of-its-own"),
        pytest.param("someone/videollama-qwen2.5-7b", id="videos"),
        pytest.param("someone/ultravox-llama-3.1-8b", id="speech"),
        pytest.param("someone/openvla-llama-2-7b", id="movements"),
        pytest.param("someone/Qwen3-14B-multimodal", id="anything"),
        pytest.param("someone/Qwen2.5-7B-Instruct-Omni", id="all-at-once"),
        pytest.param("someone/Qwen2.5-7B-InternViT", id="a-tower"),
        pytest.param("someone/chinese-llama-2-7b", id="a-larger-vocabulary"),
        pytest.param("someone/Llama-3.1-8B-UltraLong", id="a-longer-context"),
        pytest.param("someone/Qwen3-14B-expanded", id="more-layers"),
        pytest.param("someone/Qwen3-14B-Quuxified", id="a-word-that-is-not-known-to-leave-the-shape-alone"),
        pytest.param("someone/Qwen3-14B-Japanese", id="perhaps-a-larger-vocabulary"),
        pytest.param("someone/Llama-2-7B-pro", id="perhaps-with-layers-of-its-own"),
        pytest.param("someone/Quux-Qwen3-14B-abliterated", id="an-unknown-word-before-the-size"),
    ],
)
def test_a_name_that_may_mean_another_shape_or_width_stays_unknown(catalogue, name):
    with pytest.raises(InputRejected, match="is not known"):
        catalogue.models.find(name)


@pytest.mark.parametrize(
    ("name", "own", "others"),
    [
        ("someone/Qwen2.5-7B-sft", 32_768, (131_072,)),
        ("someone/Qwen2.5-7B-Instruct-abliterated", 32_768, ()),
        ("Qwen/Qwen2.5-1.5B", 131_072, (32_768,)),
        ("CohereLabs/aya-expanse-32b", 8_192, (131_072,)),
        ("Qwen/Qwen3Guard-Gen-8B", 32_768, ()),
    ],
)
def test_positions_that_a_name_leaves_open_are_known_as_such(catalogue, name, own, others):
    """Qwen 2.5 base models have 131,072 positions, which a server takes where no length is given."""
    found = catalogue.models.find(name)
    assert (found.max_position, found.other_positions) == (own, others)
