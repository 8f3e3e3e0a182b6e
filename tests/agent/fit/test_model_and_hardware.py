"""Facts carry their units and answer simple questions."""

import dataclasses

import pytest

from agent.fit import model_and_hardware as facts


def test_layers_of_all_kinds_are_counted(catalogue):
    assert catalogue.models.find("google/gemma-4-31B-it").layer_count == 60
    assert catalogue.models.find("Qwen/Qwen3.5-27B").layer_count == 64


def test_a_capability_is_at_least_the_one_asked_for(catalogue):
    assert catalogue.accelerator("nvidia-l4").supports((8, 9))
    assert not catalogue.accelerator("nvidia-a100-80gb").supports((8, 9))
    assert not catalogue.accelerator("cpu").supports((1, 0))


@pytest.mark.parametrize(
    "kind",
    [each for each in vars(facts).values() if dataclasses.is_dataclass(each) and each.__module__ == facts.__name__],
)
def test_values_are_frozen_and_keyword_only(kind):
    assert kind.__dataclass_params__.frozen
    assert all(each.kw_only for each in dataclasses.fields(kind))
    assert hasattr(kind, "__slots__")
