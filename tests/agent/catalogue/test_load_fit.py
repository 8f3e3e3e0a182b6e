"""The data of the prediction is read whole, and every name people use finds its entry."""

import json
import shutil
from pathlib import Path

import pytest

import agent.catalogue
from agent.catalogue.load_fit import load_fit_catalogue
from agent.errors import InputRejected
from agent.fit.bounds import GIB

FILES = ("models.json", "accelerators.json", "vllm_versions.json")
CONTRACT = [
    "cpu",
    "nvidia-l4",
    "nvidia-t4",
    "nvidia-a10g",
    "nvidia-l40s",
    "nvidia-a100-40gb",
    "nvidia-a100-80gb",
    "nvidia-h100-80gb",
    "nvidia-h200",
    "nvidia-b200",
    "nvidia-b300",
    "nvidia-gb10",
    "nvidia-thor",
    "nvidia-rtx-pro-6000",
    "nvidia-rtx-6000-ada",
    "nvidia-rtx-3090",
    "nvidia-rtx-4090",
    "nvidia-rtx-5070-ti",
    "nvidia-rtx-5090",
    "tpu-v5e",
    "tpu-v6e",
]


@pytest.fixture(scope="module")
def catalogue():
    return load_fit_catalogue()


@pytest.fixture
def folder(tmp_path):
    for name in FILES:
        shutil.copy(Path(agent.catalogue.__path__[0]) / name, tmp_path / name)
    return tmp_path


def changed(folder, name, change):
    document = json.loads((folder / name).read_text())
    change(document)
    (folder / name).write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize("name", CONTRACT)
def test_every_accelerator_of_the_contract_is_known(catalogue, name):
    facts = catalogue.accelerator(name)
    assert facts.name == name
    assert facts.source
    assert (facts.total_bytes is None) == (name == "cpu")


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("google/gemma-4-31B-it", "31B", "bf16"),
        ("GOOGLE/GEMMA-4-31b-IT", "31B", "bf16"),
        ("gemma-4-31B-it", "31B", "bf16"),
        ("/mnt/models/gemma-4-31B-it-qat-w4a16-ct/", "31B", "w4a16-g32"),
        ("gs://bucket/gemma-4-26B-A4B-it-NVFP4", "26B-A4B", "nvfp4"),
        ("unsloth/gemma-4-31B-it-qat-w4a16", "31B", "w4a16-g32"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "8B", "w4a16"),
        ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "70B", "awq"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8", "30B-A3B", "fp8"),
        ("Qwen/Qwen2.5-VL-7B-Instruct-GPTQ-Int4", "7B", "gptq"),
        ("Qwen3-8B NVFP4", "8B", "nvfp4"),
        ("RedHatAI/gemma-3-27b-it-FP8-dynamic", "27b", "fp8"),
        ("openai/gpt-oss-120b", "120b", "mxfp4"),
        ("Qwen/Qwen3.6-35B-A3B", "35B-A3B", "bf16"),
    ],
)
def test_names_find_their_architecture_and_storage(catalogue, name, size, scheme):
    facts = catalogue.models.find(name)
    assert (facts.size, facts.quant.scheme) == (size, scheme)


def test_a_storage_taken_from_the_name_is_an_assumption_with_a_margin(catalogue):
    facts = catalogue.models.find("someone/Llama-3.1-8B-Instruct-AWQ")
    assert facts.quant.uncertainty >= 0.03
    assert any("by its name" in told for told in facts.assumptions)


@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", 32768),
        ("Qwen/Qwen2.5-7B", 131072),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", 131072),
        ("someone/DeepSeek-R1-Distill-Qwen-7B-AWQ", 131072),
        ("Qwen/Qwen2.5-Math-7B-Instruct", 4096),
        ("Qwen/QwQ-32B", 40960),
        ("Qwen/Qwen3-8B", 40960),
        ("Qwen/Qwen3-8B-Base", 32768),
        ("microsoft/Phi-4-reasoning", 32768),
    ],
)
def test_a_sibling_of_the_same_shape_has_its_own_context(catalogue, name, positions):
    facts = catalogue.models.find(name)
    assert facts.max_position == positions
    assert facts.rope_cache_bytes == positions * 256  # 128 numbers of 2 bytes each


def test_an_unknown_model_is_refused_with_the_nearest_names(catalogue):
    with pytest.raises(InputRejected) as refused:
        catalogue.models.find("google/gemma-4-32B-it")
    assert "gemma-4-31b-it" in refused.value.mend
    assert "models add" in refused.value.mend


def test_an_unknown_accelerator_is_refused_with_all_known(catalogue):
    with pytest.raises(InputRejected) as refused:
        catalogue.accelerator("nvidia-l44")
    assert "nvidia-rtx-pro-6000" in refused.value.why
    assert "nvidia-l4" in refused.value.mend


@pytest.mark.parametrize(
    ("told", "rules", "assumed"),
    [
        (None, "0.33.0", False),
        ("0.21", "0.21.0", False),
        ("v0.21.0", "0.21.0", False),
        ("0.20", "0.20.0", False),
        ("0.20.2", "0.20.2", False),
        ("0.22.0", "0.21.0", True),
        ("0.31", "0.27.0", True),
        ("0.26.1rc1.dev256 (vllm-tpu)", "0.26.0", True),
        ("0.40", "0.33.0", True),
        ("0.6.3", "0.19.0", True),
    ],
)
def test_between_known_versions_the_lower_ones_rules_hold(catalogue, told, rules, assumed):
    found = catalogue.rules(told)
    assert found.version == rules
    assert bool(found.assumptions) is assumed
    assert found.is_unread is (told == "0.6.3")


def test_a_text_that_is_no_version_is_refused(catalogue):
    with pytest.raises(InputRejected, match="no version"):
        catalogue.rules("latest")


def test_checkpoint_sizes_are_the_published_ones(catalogue):
    assert catalogue.models.find("google/gemma-4-31B-it").checkpoint_bytes == pytest.approx(62_545_905_784, rel=0.001)
    assert catalogue.models.find("google/gemma-4-E2B-it").checkpoint_bytes / GIB == pytest.approx(9.54, abs=0.01)
    assert catalogue.models.find("google/gemma-4-E2B-it-qat-mobile").checkpoint_bytes is None


def test_every_entry_has_a_source_and_a_date(catalogue):
    for name in catalogue.models.names:
        assert all(source.strip() for source in catalogue.models.find(name).sources)
    for name in FILES[:2]:
        document = json.loads((Path(agent.catalogue.__path__[0]) / name).read_text())
        assert all(each["source"] and each["date"] for each in document.get("models", document.get("accelerators")))


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("models.json", lambda d: d["models"][0].pop("hidden"), "hidden"),
        ("models.json", lambda d: d["models"][0].update(vocab=-1), "vocab"),
        (
            "models.json",
            lambda d: (
                d["models"][0]["layers"][0].pop("window_tokens", None)
                or d["models"][0]["layers"][0].update(kind="sliding")
            ),
            "window",
        ),
        ("models.json", lambda d: d["models"][0].update(source=""), "source"),
        ("models.json", lambda d: d["schemes"]["awq"].update(bytes_per_param=9), "bytes_per_param"),
        ("accelerators.json", lambda d: d["accelerators"][0].update(total_gib=[2, 1, 3]), "out of order"),
        ("accelerators.json", lambda d: d["accelerators"][0].update(total_gib=None), "memory"),
        ("accelerators.json", lambda d: d["accelerators"][1].update(aliases=["t4"]), "twice"),
        ("vllm_versions.json", lambda d: d["versions"][0].update(default_utilisation=2), "utilisation"),
        ("vllm_versions.json", lambda d: d["versions"].clear(), "no version"),
    ],
)
def test_a_broken_entry_is_refused_with_its_mistake(folder, name, change, told):
    with pytest.raises(InputRejected) as refused:
        load_fit_catalogue(changed(folder, name, change))
    assert name in refused.value.what
    assert told in refused.value.why


def test_all_mistakes_of_a_file_are_told_at_once(folder):
    def change(document):
        document["models"][0].pop("hidden")
        document["models"][1].update(vocab=0)

    with pytest.raises(InputRejected) as refused:
        load_fit_catalogue(changed(folder, "models.json", change))
    assert refused.value.why.count(";") >= 1


def test_a_missing_file_is_refused(folder):
    (folder / "models.json").unlink()
    with pytest.raises(InputRejected, match=r"models\.json"):
        load_fit_catalogue(folder)
