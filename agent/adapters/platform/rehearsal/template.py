"""The rehearsal's own form of a template: canonical JSON with revision name, stamps and configuration."""

from functools import lru_cache

from pydantic import ValidationError

from agent.adapters.platform.server_flags import NO_TYPES
from agent.core.plan.action import Action, SetInstanceType, applied
from agent.core.service.serving import EFFECT_LABEL, STAMP_LABELS, ServingConfig
from agent.core.value import Value, canonical
from agent.errors import InputRejected
from agent.ports.platform import HINTS

_INCIDENT_LABEL = next(label for label in STAMP_LABELS if label != EFFECT_LABEL)


class Template(Value):
    """What a new revision is made from; ``revision`` is empty where the platform chose the name."""

    revision: str
    labels: dict[str, str]
    config: ServingConfig


@lru_cache(maxsize=64)
def template_of(text: str) -> Template:
    """Read a template."""
    try:
        return Template.model_validate_json(text)
    except ValidationError as error:
        raise InputRejected(
            "the template was not read", why=f"{error.error_count()} mistakes in it", hint="use one that was described"
        ) from error


def stamped(
    prior: str | ServingConfig,
    revision: str,
    effect_key: str | None,
    incident: str | None,
    *,
    actions: tuple[Action, ...] = (),
) -> str:
    """Return a template with another revision name and stamp, changed by the actions and by nothing else."""
    if isinstance(prior, ServingConfig):
        old = Template(revision=revision, labels={}, config=prior)
    else:
        old = template_of(prior)
    labels = {name: value for name, value in old.labels.items() if name not in STAMP_LABELS}
    if effect_key is not None and incident is not None:
        labels |= {EFFECT_LABEL: effect_key, _INCIDENT_LABEL: incident}
    return _text(old.with_(revision=revision, labels=labels, config=applied(old.config, actions)))


def wanted(template: str, actions: tuple[Action, ...]) -> ServingConfig:
    """Return the configuration that the actions would make.

    Raises:
        InputRejected: One gives a type to a machine that has none.
    """
    config = template_of(template).config
    if config.instance_type is None and any(isinstance(action, SetInstanceType) for action in actions):
        raise InputRejected("the change was refused", why=NO_TYPES, hint=HINTS[InputRejected])
    return applied(config, actions)


def bare(text: str) -> str:
    """Return a template without revision name and stamp, to compare byte by byte."""
    return stamped(text, "", None, None)


def _text(template: Template) -> str:
    return canonical(template.model_dump(mode="json")).decode()
