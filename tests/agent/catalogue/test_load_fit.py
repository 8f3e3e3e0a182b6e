"""The data of the prediction is read whole, and every name people use finds its entry."""

import json
import re
import shutil
from pathlib import Path

import pytest

import agent.catalogue
from agent.catalogue.load_fit import load_fit_catalogue
from agent.errors import InputRejected
from agent.fit.bounds import GIB
from agent.fit.flags.flags import parse_flags
from agent.fit.memory.predict import predict

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
        ("Qwen/Qwen3-Coder-Next-FP8", "80B-A3B", "fp8"),
        ("lmsys/vicuna-7b-v1.5", "7b", "bf16"),
        ("google/medgemma-27b-text-it", "27b", "bf16"),
        ("openai/gpt-oss-safeguard-20b", "20b", "mxfp4"),
        ("mistralai/Mistral-Small-4-119B-2603", "119B", "fp8"),
        ("allenai/Olmo-3-32B-Think", "32B", "bf16"),
        ("Qwen/Qwen3-Embedding-4B", "4B", "bf16"),
    ],
)
def test_names_find_their_architecture_and_storage(catalogue, name, size, scheme):
    facts = catalogue.models.find(name)
    assert (facts.size, facts.quant.scheme) == (size, scheme)


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("google/medgemma-27b-text-it", 50.31),
        ("google/medgemma-27b-it", 51.10),
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", 92.88),
        ("OpenGVLab/InternVL3-8B", 14.80),
        ("zai-org/GLM-4.1V-9B-Thinking", 19.17),
        ("mistralai/Pixtral-12B-2409", 23.62),
        ("LiquidAI/LFM2.5-1.2B-Instruct", 2.18),
    ],
)
def test_towers_and_empty_layers_are_part_of_the_size_where_there_are_any(catalogue, name, gib):
    """Of two Gemmas for medicine one has no tower; of Nemotron's layers 31 have no attention."""
    assert (catalogue.models.find(name).checkpoint_bytes or 0) / 2**30 == pytest.approx(gib, abs=0.02)


def test_a_draft_is_found_by_its_name_and_an_assistant_is_not_taken_for_its_target(catalogue):
    assert catalogue.models.find_draft("poolside/Laguna-S-2.1-DFlash-INT4").layer_count == 6
    assert catalogue.models.find_draft("z-lab/Qwen3.6-35B-A3B-DFlash").layer_count == 8
    assert catalogue.models.find_draft("google/gemma-4-26B-A4B-it-assistant") is None


def test_a_storage_taken_from_the_name_is_an_assumption_with_a_margin(catalogue):
    facts = catalogue.models.find("someone/Llama-3.1-8B-Instruct-AWQ")
    assert facts.quant.uncertainty >= 0.03
    assert any("by its name" in told for told in facts.assumptions)


def test_a_name_that_announces_several_widths_may_mean_the_widest(catalogue):
    """Mixed checkpoints: what their name says is not enough for a "fits" by the narrowest."""
    plain = catalogue.models.find("someone/Qwen3-8B-AWQ").quant
    mixed = catalogue.models.find("someone/Qwen3-8B-AWQ-BF16-INT8").quant
    assert plain.heavier == 0
    assert mixed.bytes_per_param * (1 + mixed.heavier) == pytest.approx(2)


@pytest.mark.parametrize("stranger", ["someone/Qwen3.6-27B-NVFP4", "Qwen3.6-27B-NVFP4", "/models/Qwen3.6-27B-NVFP4"])
def test_a_layout_of_several_widths_is_its_publishers_own(catalogue, stranger):
    """NVIDIA's keeps attention in 8 bits; another publisher's checkpoint of that name may be much heavier."""
    own, guessed = catalogue.models.find("nvidia/Qwen3.6-27B-NVFP4"), catalogue.models.find(stranger)
    assert (own.quant.widths != (), guessed.quant.widths) == (True, ())
    assert guessed.quant.heavier > own.quant.heavier
    assert any("by its name" in told for told in guessed.assumptions)


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


@pytest.mark.parametrize(
    ("name", "positions", "others"),
    [
        ("Qwen/Qwen3-4B", 40960, ()),
        ("Qwen/Qwen3-235B-A22B-FP8", 40960, ()),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8", 262144, ()),
        ("Qwen/Qwen3-30B-A3B-GPTQ-Int4", 40960, ()),
        ("Qwen3-4B", 40960, (262144,)),
        ("/models/Qwen3-4B-FP8", 40960, (262144,)),
        ("someone/Qwen3-4B-AWQ", 40960, (262144,)),
        ("Qwen/QwQ-32B", 40960, (131072,)),
    ],
)
def test_a_repository_is_published_with_one_context_where_a_bare_name_may_mean_two(catalogue, name, positions, others):
    found = catalogue.models.find(name)
    assert (found.max_position, found.other_positions) == (positions, others)


def test_an_unknown_model_is_refused_with_the_nearest_names(catalogue):
    with pytest.raises(InputRejected) as refused:
        catalogue.models.find("google/gemma-4-32B-it")
    assert "gemma-4-31b-it" in refused.value.hint
    assert "models add" in refused.value.hint


def test_an_unknown_accelerator_is_refused_with_the_nearest(catalogue):
    with pytest.raises(InputRejected) as refused:
        catalogue.accelerator("nvidia-l44")
    assert "nvidia-l4" in refused.value.hint
    with pytest.raises(InputRejected) as refused:
        catalogue.accelerator("l5")
    assert len(str(refused.value)) < 200
    assert refused.value.hint.count(", ") == 2


@pytest.mark.parametrize(
    ("told", "rules", "assumed"),
    [
        (None, "0.33.0", False),
        ("0.21", "0.21.0", False),
        ("v0.21.0", "0.21.0", False),
        ("0.20", "0.20.0", False),
        ("0.20.2", "0.20.2", False),
        ("0.22.0", "0.21.0", True),
        ("0.31", "0.31.0", False),
        ("0.26.1rc1.dev256 (vllm-tpu)", "0.26.0", True),
        ("0.40", "0.33.0", True),
        ("0.10.1.1", "0.10.0", True),
        ("0.8.5.post1", "0.8.0", True),
        ("0.11.0+582e4e37.nv25.11", "0.11.0", True),
        ("0.6.3", "0.6.0", False),
        ("0.7.2", "0.7.0", False),
        ("0.5.4", "0.6.0", True),
    ],
)
def test_between_known_versions_the_lower_ones_rules_hold(catalogue, told, rules, assumed):
    found = catalogue.rules(told)
    assert found.version == rules
    assert bool(found.assumptions) is assumed
    assert found.is_unread is (told == "0.5.4")


@pytest.mark.parametrize("version", ["0.1.dev20073", "0.1.dev1+g03416eada", "0.0.0.dev0"])
def test_a_build_of_a_checkout_without_tags_is_of_no_known_release(catalogue, version):
    """DeepSeek V4 ran on eight H100 by 0.1.dev20073: it is neither older than every release nor one of them."""
    found = catalogue.rules(version)
    assert (found.version, found.asked, found.is_unread, found.is_of_a_checkout) == ("0.33.0", "", False, True)
    assert "names no release" in found.assumptions[0]


@pytest.mark.parametrize(("version", "fits"), [("0.1.dev20073", True), ("0.1.dev9064+g103696862", None)])
def test_a_checkout_that_counts_few_commits_may_be_older_than_the_rules(catalogue, version, fits):
    model, card = catalogue.models.find("Qwen/Qwen3-4B"), catalogue.accelerator("nvidia-h100-80gb")
    assert predict(model, card, 1, parse_flags("--max-model-len 4096"), catalogue.rules(version)).fits is fits


@pytest.mark.parametrize(
    ("version", "of_its_own"),
    [
        ("0.27.1+aeon.sm121a.dspark", True),
        ("0.11.0+582e4e37.nv25.11", True),
        ("0.28.1rc1.dev50+gcac8a75a7.d20260828", True),
        ("0.17.0+rocm700", False),
        ("0.8.5.post1+cu121", False),
        ("0.27.1", False),
    ],
)
def test_a_build_that_names_its_maker_may_hold_what_its_release_lacks(catalogue, version, of_its_own):
    assert catalogue.rules(version).is_of_a_checkout is of_its_own


def test_a_text_that_is_no_version_is_refused(catalogue):
    with pytest.raises(InputRejected, match="no version"):
        catalogue.rules("latest")


@pytest.mark.parametrize(("typed", "meant"), [("0.23.O", "0.23.0"), ("O.33.0", "0.33.0"), ("0,32.0", "0.32.0")])
def test_a_version_that_is_nearly_right_gets_the_one_that_was_meant(catalogue, typed, meant):
    with pytest.raises(InputRejected) as refused:
        catalogue.rules(typed)
    assert refused.value.hint == f"did you mean {meant}?"


SOLD_IN_SEVERAL_SIZES = {
    "a100": {40, 80}, "a800": {40, 80}, "h100": {80, 94}, "h20": {96, 141}, "gh200": {96, 144}, "v100": {16, 32},
    "orin": {32, 64}, "rtx-6000": {24, 48, 96}, "rtx-a2000": {6, 12}, "rtx-pro-5000": {48, 72}, "rtx-2060": {6, 12},
    "rtx-3050": {6, 8}, "rtx-3060": {8, 12}, "rtx-3080": {10, 12}, "rtx-4060-ti": {8, 16}, "rtx-5060-ti": {8, 16},
    "rx-9060-xt": {8, 16}, "w7800": {32, 48},
}  # fmt: skip
"""Products of one name with several sizes of memory, GB by their makers' data sheets."""


@pytest.mark.parametrize("stem", SOLD_IN_SEVERAL_SIZES)
@pytest.mark.parametrize("maker", ["", "nvidia-", "amd-"])
def test_a_name_that_covers_several_sizes_is_refused_with_the_list(catalogue, maker, stem):
    with pytest.raises(InputRejected) as refused:
        catalogue.accelerator(maker + stem)
    if maker == ("amd-" if stem in {"rx-9060-xt", "w7800"} else "nvidia-") or not maker:
        listed = [catalogue.accelerator(word) for word in re.findall(r"(?:nvidia|amd)-[\w-]+", refused.value.hint)]
        assert len(listed) >= 2
        for size in SOLD_IN_SEVERAL_SIZES[stem]:
            assert any(0.9 * size <= facts.total_bytes.best / GIB <= size for facts in listed), size


def test_no_alias_of_the_catalogue_stands_for_one_of_several_sizes(catalogue):
    """Every name of every entry: cut of its size and its form, it is refused or has no larger or smaller sister."""
    stems: dict[str, set[str]] = {}
    for alias, facts in catalogue.accelerators.items():
        stem = re.sub(r"-(\d+)gb?$|-nvl$|-pcie$|-sxm\d?$", "", alias)
        stems.setdefault(stem, set()).add(facts.name)
    for stem, names in stems.items():
        totals = {round(catalogue.accelerators[name].total_bytes.best / GIB / 4) for name in names if name != "cpu"}
        if len(totals) > 1:
            assert stem not in catalogue.accelerators, (stem, names)
            assert stem in catalogue.families, (stem, names)
    for stem in SOLD_IN_SEVERAL_SIZES:
        assert not {stem, f"nvidia-{stem}", f"amd-{stem}"} & catalogue.accelerators.keys()


@pytest.mark.parametrize(
    ("typed", "meant"), [("nvidia-l44", "nvidia-l4"), ("nvida-h200", "nvidia-h200"), ("a-100", "a100")]
)
def test_an_accelerator_that_is_nearly_right_gets_the_name_that_was_meant(catalogue, typed, meant):
    with pytest.raises(InputRejected) as refused:
        catalogue.accelerator(typed)
    assert meant in refused.value.hint


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--max-model-length 4096", "--max-model-len"),
        ("--max_model_lenn 4096", "--max-model-len"),
        ("--gpu-memory-utilisation 0.9", "--gpu-memory-utilization"),
        ("--tensor-paralel-size 2", "--tensor-parallel-size"),
        ("--enforce-eagre", "--enforce-eager"),
        ("--no-enable-prefix-cachin", "--enable-prefix-caching"),
        ("--speculative-confg.model x", "--speculative-config"),
    ],
)
def test_a_flag_with_a_typing_error_is_refused_with_the_flag_that_was_meant(catalogue, typed, meant):
    with pytest.raises(InputRejected) as refused:
        catalogue.refuse_typing_errors(parse_flags(typed))
    assert refused.value.hint == f"did you mean {meant}?"


@pytest.mark.parametrize(
    "flags", ["--enable-lora --max-loras 4", "--swap-space 4", "--our-own-plugin-switch", "--port 1"]
)
def test_flags_that_vllm_takes_or_that_resemble_none_are_no_typing_errors(catalogue, flags):
    catalogue.refuse_typing_errors(parse_flags(flags))


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


@pytest.mark.parametrize("name", ["unsloth/Qwen3-8B-bnb-4bit", "unsloth/Qwen3-8B-unsloth-bnb-4bit"])
def test_bitsandbytes_keeps_a_scale_of_32_bits_for_64_parameters(catalogue, name):
    quant = catalogue.models.find(name).quant
    assert (quant.scheme, quant.bytes_per_param) == ("bnb-4bit", 0.5 + 4 / 64)
    assert quant.bytes_per_param * (1 - quant.uncertainty) <= 0.5 + 1.03 / 64


def test_the_nearest_names_are_told_once_each(catalogue):
    with pytest.raises(InputRejected) as refused:
        catalogue.models.find("zai-org/GLM-5.3-Flash")
    near = str(refused.value).split("did you mean ")[1].split("? If not")[0].split(" or ")
    assert len(near) == len(set(near)) > 1


def test_a_cache_that_one_publisher_asks_for_is_not_taken_for_anothers(catalogue):
    own, others, bare = (
        catalogue.models.find(name).quant.narrows_cache
        for name in ("nvidia/Qwen3-30B-A3B-NVFP4", "RedHatAI/Qwen3-30B-A3B-NVFP4", "/models/Qwen3-30B-A3B-NVFP4")
    )
    assert (own, others, bare) == ("modelopt", "", "")


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("bartowski/Qwen2.5-7B-Instruct-GGUF", "Qwen/Qwen2.5-7B-Instruct"),
        ("unsloth/Qwen3-8B-GGUF:UD-Q4_K_XL", "Qwen/Qwen3-8B"),
        ("/models/Qwen2.5-14B-Instruct-Q8_0.gguf", "Qwen/Qwen2.5-14B-Instruct"),
        ("/models/Llama-3.1-8B-Instruct.IQ4_XS.gguf", "meta-llama/Llama-3.1-8B-Instruct"),
        ("nobody/nothing-GGUF", "the checkpoint that it was made from"),
    ],
)
def test_a_gguf_file_is_refused_with_what_can_be_asked_instead(catalogue, name, asked):
    with pytest.raises(InputRejected) as refused:
        catalogue.models.find(name)
    assert refused.value.hint == f"ask about {asked}: its context costs the same."


EIGHT_BITS = [
    "bnb-8bit", "BNB_8bit", "bnb.8bit", "8bit-bnb", "unsloth-bnb-8bit", "bnb-int8", "AWQ-8bit", "AWQ-INT8", "awq-w8a16",
    "INT8-AWQ", "GPTQ-8bit", "GPTQ-Int8", "gptq_8bit", "8bit-gptq", "GPTQ-w8a16", "GPTQ-g32-8bit", "autoround-8bit",
    "int8-AutoRound", "AutoRound-int8", "8bit", "int8", "w8a8", "w8a16", "quantized.w8a8", "FP8", "FP8-dynamic",
    "w8a8-fp8", "NVFP4-8bit", "NVFP4-FP8", "MXFP4-8bit", "fp8-int4", "4bit-8bit", "bnb-4bit-8bit", "W4A16-FP8",
]  # fmt: skip
UNTOLD = ["bnb", "GPTQ", "AutoRound", "GPTQ-marlin", "AutoRound-GPTQ"]
SIXTEEN_BITS = ["fp16", "bf16", "AWQ-fp16", "AWQ-bfloat16", "GPTQ-Int4-BF16"]
FOUR_BITS = {
    **dict.fromkeys(["bnb-4bit", "unsloth-bnb-4bit", "4bit-bnb", "NVFP4", "FP4", "MXFP4"], 0.65),
    **dict.fromkeys(["AWQ", "AWQ-INT4", "AWQ-4bit", "GPTQ-Int4", "GPTQ-4bit", "gptq_4bit", "w4a16-gptq"], 0.58),
    **dict.fromkeys(["int4-AutoRound", "4bit", "int4", "w4a16", "quantized.w4a16"], 0.58),
}


@pytest.mark.parametrize(
    ("words", "least"),
    [
        *((words, 1.0) for words in (*EIGHT_BITS, *UNTOLD)),
        *((words, 2.0) for words in SIXTEEN_BITS),
    ],
)
@pytest.mark.parametrize("base", ["Qwen3-32B", "openai/gpt-oss-20b"])
def test_a_name_that_says_eight_bits_or_no_width_is_never_counted_as_four(catalogue, base, words, least):
    """bnb-8bit was once counted as 4 bits, and a model of 33 GiB "fitted" a card of 32."""
    quant = catalogue.models.find(f"x/{base.rpartition('/')[2]}-{words}").quant
    assert quant.bytes_per_param * (1 + quant.heavier) >= least


@pytest.mark.parametrize(("words", "most"), FOUR_BITS.items())
def test_a_name_that_says_four_bits_is_counted_as_four(catalogue, words, most):
    quant = catalogue.models.find(f"x/Qwen3-32B-{words}").quant
    assert 0.5 < quant.bytes_per_param <= quant.bytes_per_param * (1 + quant.heavier) < most


@pytest.mark.parametrize(
    "words", ["8-bit", "8bits", "bnb-8-bit", "GPTQ-8-bit", "bnb8", "gptq8", "int8wo", "mxfp8", "6bit"]
)
def test_a_width_spelt_in_a_way_that_is_not_known_is_refused(catalogue, words):
    with pytest.raises(InputRejected, match="is not known"):
        catalogue.models.find(f"x/Qwen3-32B-{words}")


def test_a_bitsandbytes_checkpoint_in_eight_bits_does_not_fit_a_card_for_four(catalogue):
    model, card = catalogue.models.find("x/Qwen3-32B-bnb-8bit"), catalogue.accelerator("rtx-5090")
    report = predict(model, card, 1, parse_flags("--max-model-len 4096"), catalogue.rules("0.19.0"))
    assert (report.fits, report.weights_bytes.low > 31 * GIB) == (False, True)


def asked(catalogue, name, card, flags):
    return predict(
        catalogue.models.find(name), catalogue.accelerator(card), 1, parse_flags(flags), catalogue.rules(None)
    )


@pytest.mark.parametrize("name", ["me/Qwen3-8B-quantized", "me/Qwen3-8B-marlin", "me/Qwen3-8B-compressed-tensors"])
def test_a_name_that_says_quantised_and_not_how_may_be_anything_from_four_bits_to_sixteen(catalogue, name):
    """Such names were taken as 16 bits, and a card that holds four was refused."""
    four, said, whole = (
        asked(catalogue, each, "nvidia-l4", "--max-model-len 8192").weights_bytes
        for each in ("Qwen/Qwen3-8B-AWQ", name, "Qwen/Qwen3-8B")
    )
    assert said.low <= four.best < whole.best <= said.high
    assert asked(catalogue, name, "nvidia-rtx-3060-12gb", "--max-model-len 2048 --max-num-seqs 4").fits is None


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("RedHatAI/Qwen3-8B-quantized.w4a16", "w4a16"),
        ("me/Qwen3-8B-W4", "w4a16"),
        ("me/Qwen3-8B-AWQ-marlin", "awq"),
        ("google/gemma-4-E2B-it-qat-q4_0-unquantized", "bf16"),
    ],
)
def test_a_width_that_a_name_tells_wins(catalogue, name, scheme):
    assert catalogue.models.find(name).quant.scheme == scheme


def test_a_card_in_the_name_of_a_checkpoint_is_no_part_of_its_shape(catalogue):
    find = catalogue.models.find
    assert find("me/Qwen3-8B-NVFP4-RTX5090").layers == find("Qwen/Qwen3-8B").layers


def test_a_name_that_two_publishers_share_weighs_as_either_of_them():
    models = load_fit_catalogue().models
    unsloth, inferact, either = (
        models.find(f"{publisher}Qwen3.8-27B-NVFP4") for publisher in ("unsloth/", "Inferact/", "local/")
    )
    assert either.served_bytes.low == unsloth.served_bytes.low
    assert either.served_bytes.high == inferact.served_bytes.high
    assert any("publisher" in told for told in either.assumptions)
