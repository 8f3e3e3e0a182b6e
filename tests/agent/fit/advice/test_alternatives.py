"""Other checkpoints and other hardware come nearest first, with flags that they take."""

from agent.catalogue.load_fit import load_fit_catalogue
from agent.catalogue.load_platforms import load_platform_catalogue
from agent.fit.advice.alternatives import Market, flags_for_devices, other_checkpoints, other_hardware
from agent.fit.advice.cost import parameters
from agent.fit.assessment import Setup
from agent.fit.flags.flags import parse_flags

FIT = load_fit_catalogue()
MARKET = Market(
    models=tuple({facts.name: facts for facts in FIT.models.by_name.values()}.values()),
    accelerators=FIT.accelerators,
    shapes=load_platform_catalogue().shapes,
)


def made(model, flags="", accelerator="nvidia-l4"):
    return Setup(
        model=FIT.models.find(model),
        accelerator=FIT.accelerator(accelerator),
        count=1,
        flags=parse_flags(flags),
        rules=FIT.rules(None),
    )


def test_the_same_size_stored_smaller_comes_first_the_publishers_own_before_strangers():
    now = made("google/gemma-4-26B-A4B-it")
    others = [setup.model for setup in other_checkpoints(now, MARKET)]
    assert others[0].name == "google/gemma-4-26B-A4B-it-qat-w4a16-ct"
    sizes = [model.size for model in others]
    assert sizes == sorted(sizes, key=lambda size: size != "26B-A4B")
    assert all(parameters(model) <= parameters(now.model) for model in others)
    assert len({(model.size, model.quant.scheme) for model in others}) == len(others)


def test_a_later_generation_of_the_same_size_is_no_alternative():
    """GLM 4 9B of 2025 has the parameters of its older twin, and a norm more: it is another model."""
    for name in ("zai-org/glm-4-9b-chat", "zai-org/GLM-4-32B-0414"):
        found = {setup.model.name for setup in other_checkpoints(made(name), MARKET)}
        assert ("zai-org/GLM-4-9B-0414" in found) is name.endswith("0414")
        assert "zai-org/glm-4-9b-chat" not in found


def test_offload_does_not_follow_to_a_checkpoint_that_may_not_need_it():
    flags = "--cpu-offload-gb 14 --max-model-len 8192"
    others = list(other_checkpoints(made("google/gemma-4-31B-it-qat-w4a16-ct", flags), MARKET))
    assert others
    assert all(setup.flags == parse_flags("--max-model-len 8192") for setup in others)


def test_the_present_platforms_hardware_comes_first_then_the_cheapest():
    now = made("google/gemma-4-31B-it-qat-w4a16-ct")
    first, *rest = other_hardware(now, MARKET, platform="cloud_run")
    assert first.accelerator.name == "nvidia-rtx-pro-6000"
    assert ("nvidia-l4", 1) not in {(setup.accelerator.name, setup.count) for setup in (first, *rest)}
    assert len({(setup.accelerator.name, setup.count) for setup in (first, *rest)}) == len(rest) + 1


def test_several_devices_are_all_used():
    two = next(
        setup
        for setup in other_hardware(made("google/gemma-4-31B-it-qat-w4a16-ct"), MARKET, platform=None)
        if (setup.accelerator.name, setup.count) == ("nvidia-l4", 2)
    )
    assert two.flags.tensor_parallel_size == 2


def test_an_fp8_cache_is_left_behind_where_it_does_not_run():
    flags = parse_flags("--kv-cache-dtype fp8 --max-model-len 8192")
    assert flags_for_devices(flags, FIT.accelerator("nvidia-a100-80gb"), 1).kv_cache_dtype is None
    assert flags_for_devices(flags, FIT.accelerator("nvidia-l40s"), 1).kv_cache_dtype == "fp8"
