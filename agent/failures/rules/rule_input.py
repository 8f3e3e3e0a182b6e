"""Where one error text has several remedies or classes, the numbers and neighbours in the log decide."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.failures.finding import Value
from agent.failures.signature import FailureClass, Phase

Fixes = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RuleInput:
    """What a rule may look at.

    Attributes:
        line: The decisive line, lower case.
        text: The whole text around it, lower case, cut to a bounded length.
        fields: Numbers and names of the log.
        phase: How far the server had come.
        also: Ids of other signatures in the text.
        platform: The platform if known.
        repeats: How many lines carry the decisive signature.
        progress_after: A line after the last of them shows progress: tokens, or another phase.
    """

    line: str
    text: str
    fields: Mapping[str, Value]
    phase: Phase
    also: frozenset[str] = frozenset()
    platform: str | None = None
    repeats: int = 1
    progress_after: bool = False

    def gib(self, name: str) -> float | None:
        """A field in GiB, taken from NAME_gib or NAME_mib."""
        for key, unit in ((f"{name}_gib", 1.0), (f"{name}_mib", 1024.0)):
            value = self.fields.get(key)
            if isinstance(value, int | float):
                return float(value) / unit
        return None

    def number(self, name: str) -> float | None:
        """A plain number, or None."""
        value = self.fields.get(name)
        return float(value) if isinstance(value, int | float) else None

    def has(self, *words: str) -> bool:
        """Whether any of the words (lower case) stands in the decisive line."""
        return any(word in self.line for word in words)

    def mentions(self, *words: str) -> bool:
        """Whether any of the words (lower case) stands in the text."""
        return any(word in self.text for word in words)


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """What a rule changes; empty keeps what the catalogue says, the class ``unknown`` takes the signature back."""

    fixes: Fixes = ()
    class_: FailureClass | None = None
    confidence: float | None = None


Rule = Callable[[RuleInput], Ruling]
