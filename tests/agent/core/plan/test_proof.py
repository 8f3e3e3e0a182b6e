"""Which memory each kind of action can take more of."""

from typing import get_args

import pytest

from agent.catalogue.load_bundled import load_default_policy
from agent.catalogue.load_failures import load_failures
from agent.core.plan.action import (
    Action,
    ForPerson,
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetEnv,
    SetFlag,
    SetResources,
    SetVolumeOptions,
)
from agent.core.plan.proof import FLAGS, KINDS, TASKS, VARIABLES, Memory, affected_memory
from agent.core.service.serving import ServingConfig

NEITHER: frozenset[Memory] = frozenset()
BOTH = frozenset(Memory)


def test_every_kind_of_action_stands_in_the_table() -> None:
    """A new kind has to be thought about."""
    kinds = {member.model_fields["kind"].default for member in get_args(get_args(Action)[0])}
    assert kinds == KINDS.keys()


def test_what_is_said_to_be_harmless_is_a_flag_or_variable_that_policy_knows() -> None:
    """A misspelt name would never match."""
    policy = load_default_policy()
    assert FLAGS.keys() <= policy.flags.keys() | {"chat-template"}  # which no policy can allow: a person's task
    assert policy.env.keys() >= VARIABLES


def test_every_task_is_a_fix_of_the_catalogue_or_of_the_vocabulary() -> None:
    """The table names fixes as the catalogue does."""
    fixes = {fix.split()[0] for signature in load_failures().signatures for fix in signature.fixes}
    assert fixes >= TASKS - {"none_benign", "change_zone", "set_strategy", "increase_disk"}


@pytest.mark.parametrize(
    ("action", "memory"),
    [
        (Restart(), NEITHER),
        (Lifecycle(operation=LifecycleOperation.CREATE, config=ServingConfig(image="vllm")), BOTH),
        (Lifecycle(operation=LifecycleOperation.START), NEITHER),
        (Lifecycle(operation=LifecycleOperation.STOP), NEITHER),
        (Lifecycle(operation=LifecycleOperation.DELETE, confirmed="gemma"), NEITHER),
        (SetFlag(name="max-model-len", value="1024"), {Memory.DEVICE}),
        (SetFlag(name="kv_cache_dtype", value="fp8"), {Memory.DEVICE}),
        (SetFlag(name="tool-call-parser", value="gemma4"), NEITHER),
        (SetFlag(name="cpu-offload-gb", value="8"), BOTH),
        (SetFlag(name="something-new", value="1"), BOTH),
        (SetEnv(name="VLLM_ENGINE_READY_TIMEOUT_S", value="900"), NEITHER),
        (SetEnv(name="VLLM_CPU_KVCACHE_SPACE", value="4"), BOTH),
        (SetResources(cpu=8, memory_mib=32768), {Memory.CONTAINER}),
        (SetVolumeOptions(volume="w", options=("implicit-dirs",)), NEITHER),
        (SetVolumeOptions(volume="w", options=("file-cache:max-size-mb:-1",)), {Memory.CONTAINER}),
        (ForPerson(action="fix_quota", instruction=""), NEITHER),
        (ForPerson(action="set_flag tool_call_parser", instruction=""), NEITHER),
        (ForPerson(action="set_flag gpu_memory_utilization lower", instruction=""), {Memory.DEVICE}),
        (ForPerson(action="change_accelerator", instruction=""), BOTH),
        (ForPerson(action="", instruction=""), BOTH),
    ],
    ids=lambda value: getattr(value, "kind", None),
)
def test_an_action_touches(action: Action, memory: frozenset[Memory]) -> None:
    """Whatever is not known to be harmless may take both."""
    assert affected_memory((action,)) == memory


def test_a_plan_touches_what_any_of_its_actions_touches() -> None:
    """One flag beside a probe is still a flag."""
    assert affected_memory((Restart(), SetFlag(name="max-num-seqs", value="1"))) == {Memory.DEVICE}
    assert affected_memory(()) == NEITHER
