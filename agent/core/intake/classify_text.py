"""What one text says broke: the catalogue's finding, and an end of the server that nobody asked for."""

from dataclasses import replace

from agent.core.intake.ends import PlainEnds
from agent.failures.finding import MAX_EVIDENCE_CHARS, EvidenceLine, Finding
from agent.failures.first_cause import UNKNOWN_CONFIDENCE
from agent.failures.match.matcher import Matcher
from agent.failures.signature import FailureClass, Proof

_END_WORDS = ("xit", ".service", "systemd")
"""A log without any of these tells of no end that :class:`PlainEnds` knows."""


def classify_text(log: str, *, matcher: Matcher, whole_log: bool, platform: str | None = None) -> Finding:
    """Classify one text.

    A server that ends without being asked is never benign, whatever it printed last: its code says what the text does
    not, and where the code is 0 the answer is ``unknown`` (docs/adr/0009-ends-are-facts.md).

    Args:
        log: Text out of its envelope.
        matcher: The compiled catalogue.
        whole_log: The text may be the instance's own log, that is more than one line.
        platform: Where it runs; None if not known.
    """
    finding = matcher.classify(log, whole_log=whole_log, platform=platform)
    if not finding.benign or not any(word in log for word in _END_WORDS):
        return finding
    lines = log.split("\n")
    ends = PlainEnds()
    found = [(index, end) for index, line in enumerate(lines) if (end := ends.read(line)) is not None]
    unasked = [(index, end) for index, end in found if end.asked_by is None]
    if not unasked or finding.signature in matcher.proving(Proof.ASKED):
        return finding
    index, end = unasked[-1]
    evidence = (EvidenceLine(index=index, text=lines[index].strip()[:MAX_EVIDENCE_CHARS]),)
    coded = matcher.classify(end.catalogue_text, whole_log=False, platform=platform)
    if coded.class_ not in {FailureClass.UNKNOWN, FailureClass.BENIGN}:
        return replace(coded, evidence=evidence)
    return Finding(
        class_=FailureClass.UNKNOWN,
        signature=None,
        confidence=UNKNOWN_CONFIDENCE,
        certain=False,
        benign=False,
        evidence=evidence,
        fix_actions=("collect_container_logs",),
        phase=finding.phase,
    )
