"""Flags and model of a server whose words stand in a container: which changes of them nobody would read."""

from typing import Final

from agent.core.plan.action import Action, SetFlag, SetInstanceType, SetModel, applied
from agent.core.service.container_args import canonical_name, flag_map, served_model, starts_in_shell
from agent.core.service.serving import ServingConfig

PORT: Final = 8000  # where `vllm serve` listens unless it is told
NO_TYPES: Final = "the platform has no types of machines by name: choose an accelerator, CPU and memory"


def flag_without_effect(config: ServingConfig, action: Action) -> str:
    """Return why an action would change what nobody reads: flags, a model, a type of machine; else empty."""
    match action:
        case SetInstanceType() if config.instance_type is None:
            return NO_TYPES
        case SetFlag(name=name) | SetModel(model=name) if starts_in_shell(config.command, config.args):
            return f"the server is started by a shell line, in which {name!r} cannot be set safely"
        case SetFlag(name=name, value=None) if canonical_name(name) in flag_map(config.command):
            return f"--{canonical_name(name)} stands in the container's command, where flags are not taken away"
        case SetModel(model=model) if not _names_model(config, action, model):
            return "the model stands among the words where it is not replaced: in the command, or alone in front"
        case _:
            return ""


def served_name(config: ServingConfig) -> str | None:
    """Return the name that requests must give: the first of ``--served-model-name``, else the model's own."""
    named = flag_map((*config.command, *config.args)).get("served-model-name", "").split()
    return named[0] if named else served_model(config.command, config.args)


def server_port(config: ServingConfig) -> int:
    """Return where the server listens: at ``--port``, where its startup probe asks, else at vLLM's own default."""
    given = flag_map((*config.command, *config.args)).get("port", "")
    probed = config.startup_probe.port if config.startup_probe is not None else None
    return int(given) if given.isdigit() else probed or PORT


def _names_model(config: ServingConfig, action: Action, model: str) -> bool:
    """Whether the new model is the one that vLLM would read; a model standing alone in front beats ``--model``."""
    args = applied(config, (action,)).args
    if "serve" not in (*config.command, *args) and args and not args[0].startswith("-"):
        return False
    return served_model(config.command, args) == model
