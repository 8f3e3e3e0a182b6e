"""Joining the words: rules that are certain decide and the model explains; where they are not, its class may lead."""

import re
from collections.abc import Mapping, Sequence

from agent.core.diagnosis.diagnosis import Diagnosis, DiagnosisSource, Evidence, ModelExplanation
from agent.core.diagnosis.model_request import ModelRequest, about
from agent.core.text.safe_text import plain
from agent.failures.first_cause import CERTAIN_FROM

MODEL_CONFIDENCE = 0.5
"""What a checked answer of an open model is worth; never enough to act without a person."""

UNKNOWN = "unknown"
BENIGN = "benign"
ELSEWHERE = "(amount: see the fit)"
_NUMBER = r"(?:\d[\d.,_]*|one|two|three|four|five|six|seven|eight|nine|ten|twelve|sixteen|twenty|thirty|forty|eighty)"
_UNIT = r"(?:[kmgt]i?b(?:ytes?)?|bytes?|(?:kilo|mega|giga|tera|kibi|mebi|gibi)(?:bytes?|s)?|gigs?)"
_AMOUNT = re.compile(rf"(?i)(?<![\w.]){_NUMBER}(?:\s*(?:/|-|to|of)\s*{_NUMBER})?[\s-]*{_UNIT}\b(?:/s\b)?")


def without_amounts(text: str) -> str:
    """Return prose without the amounts of memory in it: the model guesses them, the fit computes them."""
    return _AMOUNT.sub(ELSEWHERE, text)


def prose(text: str, *, limit: int = 600) -> str:
    """Return a model's prose as it is kept: no amounts, no live links, no controls, bounded."""
    return plain(without_amounts(text), limit=limit)


def rules_hold(rules: Diagnosis) -> bool:
    """Whether the class of the rules stands, whatever a model says.

    It does where they are certain, and where nothing but the unread start of the log keeps them from being so.
    """
    sure = rules.provisional and rules.signature is not None and rules.confidence >= CERTAIN_FROM
    return rules.certain or sure


def combine(rules: Diagnosis, model_request: ModelRequest | None, fixes: Mapping[str, Sequence[str]]) -> Diagnosis:
    """Return the diagnosis of both; the same words give the same diagnosis.

    Args:
        rules: What the rules say, without a model's word.
        model_request: What the model said, if anything; a word about another class of the rules does not count.
        fixes: The catalogue's fixes by class, best first.
    """
    word = model_request.word if model_request is not None and model_request.about == about(rules) else None
    if model_request is None or word is None:
        return rules
    if word.class_ == UNKNOWN:
        return _explained(rules, word, DiagnosisSource.RULES)
    if word.class_ == rules.class_:
        return _explained(rules, word, DiagnosisSource.BOTH)
    if rules_hold(rules) or (rules.unasked_end and word.class_ == BENIGN):
        return _explained(rules, word, DiagnosisSource.DIFFER)
    return _led(rules, word, model_request.lines, tuple(fixes.get(word.class_, ())))


def add_explanation(diagnosis: Diagnosis, word: ModelExplanation) -> Diagnosis:
    """Return a diagnosis that was acted upon already with a word that only explains: its class does not move."""
    if word.class_ == UNKNOWN:
        return _explained(diagnosis, word, diagnosis.voice)
    return _explained(
        diagnosis, word, DiagnosisSource.BOTH if word.class_ == diagnosis.class_ else DiagnosisSource.DIFFER
    )


def _explained(rules: Diagnosis, word: ModelExplanation, voice: DiagnosisSource) -> Diagnosis:
    return rules.with_(model_word=word, voice=voice)


def _led(rules: Diagnosis, word: ModelExplanation, lines: tuple[Evidence, ...], fixes: tuple[str, ...]) -> Diagnosis:
    """The model's class leads to a plan of high risk: never certain; fixes of the catalogue, numbers of the log."""
    known = rules.class_ != UNKNOWN
    doubt = (f"whether it is {rules.class_}, as the rules suspect",) if known else ()
    still = tuple(u for u in rules.unknown if u != "the cause")
    return rules.with_(
        class_=word.class_,
        signature=None,
        root_cause=f"The model's word, no rule is certain: {word.root_cause}",
        confidence=MODEL_CONFIDENCE,
        certain=False,
        voice=DiagnosisSource.DIFFER if known else DiagnosisSource.MODEL,
        evidence=lines or rules.evidence,
        fix_actions=fixes or rules.fix_actions,
        unknown=(*still, *doubt),
        model_word=word,
    )
