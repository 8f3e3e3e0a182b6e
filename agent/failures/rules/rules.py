"""The rules that a catalogue entry may name in ``decide``."""

from collections.abc import Mapping

from agent.failures.rules import build as rules_build
from agent.failures.rules import frames as rules_frames
from agent.failures.rules import memory as rules_memory
from agent.failures.rules import platform as rules_platform
from agent.failures.rules import rollout as rules_rollout
from agent.failures.rules import waits as rules_waits
from agent.failures.rules.rule_input import Rule

RULES: Mapping[str, Rule] = {
    function.__name__: function
    for function in (
        rules_build.architecture,
        rules_build.bfloat16,
        rules_build.block_split,
        rules_build.context,
        rules_build.dtype,
        rules_build.capability,
        rules_build.flag,
        rules_build.import_failure,
        rules_build.tool_parser,
        rules_build.weights_shape,
        rules_frames.captured,
        rules_frames.conflict,
        rules_frames.frames,
        rules_frames.unsupported,
        rules_memory.cache_blocks,
        rules_memory.gpu_oom,
        rules_memory.hbm,
        rules_memory.illegal,
        rules_memory.occupied,
        rules_memory.offload_buffer,
        rules_memory.one_request,
        rules_platform.ended_early,
        rules_platform.hardware,
        rules_platform.healthy_start,
        rules_platform.image_pull,
        rules_platform.killed,
        rules_platform.killed_below_an_exception,
        rules_platform.liveness,
        rules_platform.network,
        rules_platform.nccl,
        rules_platform.no_gpu,
        rules_platform.nothing_listens,
        rules_platform.peer,
        rules_platform.saturation,
        rules_platform.silent_death,
        rules_platform.startup_probe,
        rules_rollout.listed_as_pending,
        rules_rollout.rollout,
        rules_rollout.unschedulable,
        rules_waits.broadcast,
        rules_waits.full_cache,
        rules_waits.no_tokens,
        rules_waits.placement,
        rules_waits.store_retries,
        rules_waits.waiting,
    )
}
