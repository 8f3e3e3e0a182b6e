"""The words of a request become typed actions, or an error that says which word is wrong."""

import pytest

from agent.core.change.asked_settings import AskedSettings, SettingNotRead, actions_of
from agent.core.plan.action import (
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetAccelerator,
    SetConcurrency,
    SetEnv,
    SetFlag,
    SetInstanceType,
    SetModel,
    SetResources,
    SetScaling,
    SetTerminationGrace,
)
from agent.errors import InputRejected


@pytest.mark.parametrize(
    ("asked", "actions"),
    [
        ({"set_flag": ("max-model-len=32768",)}, [SetFlag(name="max-model-len", value="32768")]),
        ({"set_flag": ("--max_model_len=32768",)}, [SetFlag(name="max-model-len", value="32768")]),
        ({"set_flag": ("enforce-eager",)}, [SetFlag(name="enforce-eager", value="")]),
        (
            {"set_flag": ('limit-mm-per-prompt={"image": 1}',)},
            [SetFlag(name="limit-mm-per-prompt", value='{"image": 1}')],
        ),
        ({"set_flag": ("a=1", "a=1")}, [SetFlag(name="a", value="1")]),
        ({"unset_flag": ("enforce-eager",)}, [SetFlag(name="enforce-eager", value=None)]),
        ({"set_env": ("A=b=c",)}, [SetEnv(name="A", value="b=c")]),
        ({"scale": "0:2"}, [SetScaling(min_instances=0, max_instances=2)]),
        ({"concurrency": "16"}, [SetConcurrency(concurrency=16)]),
        ({"resources": "8:32Gi"}, [SetResources(cpu=8, memory_mib=32_768)]),
        ({"resources": "4.5:16384"}, [SetResources(cpu=4.5, memory_mib=16_384)]),
        ({"model": "google/gemma-3-4b-it"}, [SetModel(model="google/gemma-3-4b-it")]),
        ({"accelerator": "nvidia-l4"}, [SetAccelerator(accelerator="nvidia-l4", cpu=8, memory_mib=32_768)]),
        (
            {"accelerator": "nvidia-l4", "resources": "4:16Gi"},
            [SetAccelerator(accelerator="nvidia-l4", cpu=4, memory_mib=16_384)],
        ),
        ({"grace": "120"}, [SetTerminationGrace(seconds=120)]),
        ({"restart": True}, [Restart()]),
        ({"lifecycle": "stop"}, [Lifecycle(operation=LifecycleOperation.STOP)]),
        (
            {"lifecycle": "start", "scale": "1:2"},
            [Lifecycle(operation=LifecycleOperation.START, min_instances=1, max_instances=2)],
        ),
        (
            {"lifecycle": "delete", "confirmed": "svc"},
            [Lifecycle(operation=LifecycleOperation.DELETE, confirmed="svc")],
        ),
    ],
    ids=str,
)
def test_words_become_actions(asked, actions):
    shape = {"nvidia-l4": (8.0, 32_768)}.get
    assert list(actions_of(AskedSettings(**asked), shape_of=shape)) == actions


def test_another_instance_type_comes_with_what_it_has_and_stands_alone():
    """What fails afterwards is then known to be the machine; a type of which nothing is known is no request."""
    kind = SetInstanceType(
        instance_type="g6.2xlarge", accelerator="nvidia-l4", accelerator_count=1, cpu=8, memory_mib=32_768
    )
    known = {"g6.2xlarge": kind}.get
    assert actions_of(AskedSettings(instance_type="g6.2xlarge"), type_of=known) == (kind,)
    with pytest.raises(SettingNotRead, match="stands alone"):
        actions_of(AskedSettings(instance_type="g6.2xlarge", restart=True), type_of=known)
    with pytest.raises(SettingNotRead, match=r"'g9\.huge' has is not known"):
        actions_of(AskedSettings(instance_type="g9.huge"), type_of=known)


def test_several_changes_are_one_request_in_a_fixed_order():
    asked = AskedSettings(scale="1:1", set_flag=("a=1",), model="m")
    assert [action.kind for action in actions_of(asked)] == ["set_model", "set_flag", "set_scaling"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({}, "nothing is asked for"),
        ({"set_flag": ("a=1", "a=2")}, "flag --a has two values, '1' and '2'"),
        ({"set_flag": ("a=1",), "unset_flag": ("a",)}, "flag --a has two values, '1' and none"),
        ({"set_env": ("A=1", "A=2")}, "environment variable A has two values"),
        ({"set_env": ("HF_TOKEN=[redacted:hugging-face]",)}, "stands in place of a secret"),
        ({"set_env": ("A",)}, "'A' is no NAME=VALUE"),
        ({"set_flag": ("=1",)}, "'' is no name of a flag"),
        ({"set_flag": ("a b=1",)}, "'a b' is no name of a flag"),
        ({"scale": "2"}, "--scale '2' is no MIN:MAX"),
        ({"scale": "2:1:1"}, "no MIN:MAX"),
        ({"concurrency": "0"}, "'0' is no whole number from 1 to 1000"),
        ({"concurrency": "many"}, "--concurrency 'many' is no whole number"),
        ({"resources": "8:32Ti"}, "no CPU:MEMORY"),
        ({"accelerator": "abacus"}, "no usual CPU and memory are known for 'abacus'"),
        ({"lifecycle": "explode"}, "'explode' is no lifecycle"),
        ({"lifecycle": "stop", "set_flag": ("a=1",)}, "a stop stands alone"),
        ({"lifecycle": "stop", "scale": "1:1"}, "a stop stands alone"),
        ({"lifecycle": "start", "scale": "2:1"}, "cannot be"),
        ({"set_flag": tuple(f"f{n}=1" for n in range(16)), "restart": True}, "17 changes are asked for at once"),
    ],
    ids=str,
)
def test_what_cannot_be_read_says_which_word(asked, says):
    with pytest.raises(InputRejected, match="the change was not understood") as refused:
        actions_of(AskedSettings(**asked))
    assert says in refused.value.why
    assert refused.value.field in {"", *AskedSettings.model_fields}


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"set_flag": ("a=1", "a=2")}, "set_flag"),
        ({"set_flag": ("a=1",), "unset_flag": ("a",)}, "unset_flag"),
        ({"set_env": ("A",)}, "set_env"),
        ({"scale": "2"}, "scale"),
        ({"concurrency": "0"}, "concurrency"),
        ({"resources": "8"}, "resources"),
        ({"accelerator": "abacus"}, "accelerator"),
        ({"lifecycle": "start", "scale": "2:1"}, "scale"),
        ({}, ""),
    ],
    ids=str,
)
def test_a_form_learns_beside_which_field_to_say_it(asked, field):
    with pytest.raises(SettingNotRead) as refused:
        actions_of(AskedSettings(**asked))
    assert refused.value.field == field
