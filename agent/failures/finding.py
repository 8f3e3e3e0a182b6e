"""A finding is what the rules say about one text: class, numbers, the decisive lines, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agent.failures.signature import FailureClass, Phase, Role

Value = int | float | str

MAX_EVIDENCE_CHARS = 500


@dataclass(frozen=True, kw_only=True)
class EvidenceLine:
    """One decisive line.

    Attributes:
        index: Position of the line in the text, from 0.
        text: The line without terminal colours, cut to 500 characters.
    """

    index: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The deterministic first word about one text.

    Attributes:
        class_: One of the closed list, or ``unknown``.
        signature: Catalogue id; None exactly when the class is unknown.
        confidence: 0..1; at most 0.3 when unknown.
        certain: A plan may follow without asking a model.
        benign: True exactly when the class is ``benign``.
        fields: Numbers and names found in the log, units in the names.
        field_lines: By field, the index of the line it was read from.
        evidence: The decisive lines, most decisive first.
        fix_actions: Best first, in the closed vocabulary of the catalogue.
        phase: How far the server had come when it happened.
        consequence: The text shows only what followed from an earlier cause, or a hint.
        hint: Only words of the class were found, no known text: no reason to open an incident.
        precedence: 0..100; a finding of higher precedence explains one of lower.
        also_seen: Other signatures in the text, highest precedence first.
    """

    class_: FailureClass
    signature: str | None
    confidence: float
    certain: bool
    benign: bool
    fields: Mapping[str, Value] = field(default_factory=dict)
    field_lines: Mapping[str, int] = field(default_factory=dict)
    evidence: tuple[EvidenceLine, ...] = ()
    fix_actions: tuple[str, ...] = ()
    phase: Phase = Phase.UNKNOWN
    consequence: bool = False
    hint: bool = False
    precedence: int = 0
    also_seen: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LineMatch:
    """What one log line is by itself; shared by all lines of the same signature.

    Attributes:
        signature: Catalogue id.
        class_: The class while the phase is unknown.
        role: Cause, consequence, benign or phase marker.
        phase: The phase that the line proves.
        precedence: 0..100, as in the catalogue.
        certain: The line alone decides.
    """

    signature: str
    class_: FailureClass
    role: Role
    phase: Phase
    precedence: int
    certain: bool
