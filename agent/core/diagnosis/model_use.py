"""How the model is used: for what it is asked, with which prompt, and what its words may mean."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent.core.diagnosis.model_request import When
from agent.core.diagnosis.prompt import Prompt


@dataclass(frozen=True, kw_only=True)
class ModelUse:
    """What was read once.

    Attributes:
        classes: The names that an answer may give, ``unknown`` among them.
        fixes: The catalogue's fixes by class, best first.
        when: For which diagnoses the model is asked.
        wake: For which a sleeping endpoint is woken.
        may_ask: Whether the model may ask for more evidence, once.
    """

    prompt: Prompt
    classes: tuple[str, ...]
    fixes: Mapping[str, tuple[str, ...]]
    when: When = When.ALWAYS
    wake: When = When.UNCERTAIN
    may_ask: bool = True
