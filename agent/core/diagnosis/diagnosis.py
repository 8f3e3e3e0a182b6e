"""A diagnosis is what broke and why, with the evidence for it, who says so, and what is still unknown."""

from enum import StrEnum

from pydantic import AwareDatetime, Field

from agent.core.value import Value, digest


class DiagnosisSource(StrEnum):
    """Where the diagnosis comes from."""

    RULES = "rules"
    MODEL = "model"
    BOTH = "both"
    DIFFER = "differ"  # rules and model name different classes; the rules decide where they are certain


class Evidence(Value):
    """One line that counts, by the signal it stands in; ``line`` is untrusted text."""

    signal: str
    line: str
    decisive: bool = False


class ModelExplanation(Value):
    """What Gemma added: never an action, never a number about memory."""

    class_: str
    root_cause: str
    cited: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    prompt: str  # name, version and digest of the prompt
    model: str
    tokens: int = 0
    took_s: float = 0.0


class Diagnosis(Value):
    """What broke.

    Attributes:
        class_: One of the closed list of failure classes, or ``unknown``.
        root_cause: One sentence for a person.
        certain: Whether it may lead to a plan without a model and without waiting.
        provisional: True for the first word, which may change while more signals arrive.
        log_read: Whether the instance's own log from its start was read.
        fields: Numbers read from the log, units in their names.
        field_signals: By field, the signal it was read from, as in ``Evidence.signal``; empty in old records.
        fix_actions: The catalogue's fixes, best first.
        changes: What somebody changed of the service's configuration shortly before, each in one line.
        unasked_end: Whether a server ended that nobody asked to end; such a diagnosis is never ``benign``.
    """

    class_: str
    signature: str | None
    root_cause: str
    confidence: float = Field(ge=0, le=1)
    certain: bool
    provisional: bool
    log_read: bool
    voice: DiagnosisSource = DiagnosisSource.RULES
    evidence: tuple[Evidence, ...] = ()
    fields: dict[str, str | int | float] = Field(default_factory=dict)
    field_signals: dict[str, str] = Field(default_factory=dict)
    fix_actions: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    model_word: ModelExplanation | None = None
    unasked_end: bool = False
    changes: tuple[str, ...] = ()
    made_at: AwareDatetime

    @property
    def decisive(self) -> Evidence | None:
        """The one line to show first."""
        return next((e for e in self.evidence if e.decisive), self.evidence[0] if self.evidence else None)

    def number(self, *names: str) -> float | None:
        """Return the first of these fields that is a number, or None."""
        values = (self.fields.get(name) for name in names)
        return next((v for v in values if isinstance(v, int | float) and not isinstance(v, bool)), None)

    @property
    def led_by_model(self) -> bool:
        """Whether the class is the model's word, which no rule is sure of; a person must weigh what follows from it."""
        named = self.model_word is not None and self.model_word.class_ == self.class_
        return named and self.signature is None and self.class_ != "unknown"

    @property
    def says(self) -> str:
        """A digest of what people see and a plan rests on; an equal digest needs no new plan."""
        return digest([self.class_, self.signature, self.certain, self.fields, self.fix_actions])

    @property
    def sentence(self) -> str:
        """The class and the root cause, as the timeline tells them."""
        return f"{self.class_}: {self.root_cause}"

    def same_cause(self, other: "Diagnosis") -> bool:
        """Whether another diagnosis names this cause and is as sure of it, whatever evidence it has besides."""
        return (self.class_, self.signature, self.certain) == (other.class_, other.signature, other.certain)
