"""The evidence pack: what a model is shown of an incident, the most telling first, fitted into a number of bytes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.diagnosis.diagnosis import Diagnosis, Evidence
from agent.core.text.safe_text import plain
from agent.core.value import canonical, digest
from agent.failures.match.matcher import Matcher
from agent.failures.signature import Role

LINE_LIMIT = 280  # characters shown of one line
FACT_LIMIT = 700  # characters shown of the configuration, or of another fact
SHOWN_LINES = 60
NEAR = 3  # lines before and after a decisive one are worth more

_ERROR = re.compile(
    r"(?i)\b(?:error|exception|traceback|critical|fatal|panic|killed|failed|abort(?:ed)?|exit(?:ed)?)\b"
)
_WARNING = re.compile(r"(?i)\bwarn(?:ing)?\b|\bdenied\b|\brefused\b|\btimed? ?out\b")
_VARIES = re.compile(r"0x[0-9a-fA-F]+|\d+")
_WORTH = {Role.CAUSE: 300, Role.HINT: 220, Role.CONSEQUENCE: 150, Role.PHASE: 110, Role.BENIGN: 5}


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the story and where it stands: a signal, or a line of the instance's log."""

    ref: str
    text: str


@dataclass(frozen=True, kw_only=True)
class ModelInput:
    """Everything that is known of a trouble, redacted.

    Attributes:
        story: Every line, by time.
        facts: Short texts by name, such as the configuration, the fit, the last change; the most telling first.
    """

    rules: Diagnosis
    story: tuple[Line, ...]
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShownLine:
    """A line that is shown: its id, its place in the story, and its text."""

    id: str
    index: int
    ref: str
    text: str


@dataclass(frozen=True, kw_only=True)
class EvidencePack:
    """What is shown.

    Attributes:
        evidence: The text for the fenced blank.
        lines: Every line in it, by time.
        left_out: How many lines of the story are not in it.
    """

    evidence: str
    lines: tuple[ShownLine, ...]
    left_out: int

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids that an answer may cite."""
        return tuple(line.id for line in self.lines)

    def cited(self, ids: Sequence[str]) -> tuple[Evidence, ...]:
        """Return the lines of these ids as evidence, in the order in which they were cited, each once."""
        by_id = {line.id: line for line in self.lines}
        return tuple(
            Evidence(signal=by_id[one].ref, line=by_id[one].text, decisive=n == 0)
            for n, one in enumerate(dict.fromkeys(ids))
            if one in by_id
        )


def build_pack(case: ModelInput, matcher: Matcher, *, limit: int, asked_for: Sequence[int] = ()) -> EvidencePack:
    """Choose what is shown.

    Args:
        case: Everything that is known.
        matcher: The compiled catalogue; lines that it knows are worth more.
        limit: The most bytes of the text as JSON carries it (a line end is two).
        asked_for: Lines of the story, by index, that the model wanted to see; they come first.

    Returns:
        The same pack for the same arguments. An id (``e1``, ``e2``..) names a line's rank, so that the lines of a pack
        of two thirds of the size or less are among those of the larger one, under the same ids.
    """
    ranked = _ranked(case, matcher, asked_for)[:SHOWN_LINES]
    facts = _facts(case.facts, limit // 3)
    room = limit - _size(facts) - 80
    chosen: list[ShownLine] = []
    for rank, index in enumerate((i for i in ranked if case.story[i].text.strip()), start=1):
        line = ShownLine(id=f"e{rank}", index=index, ref=case.story[index].ref, text=_clean(case.story[index].text))
        room -= _size(f"[{line.id}] {line.text}\n(- 99999 lines -)\n")
        if room < 0:
            break
        chosen.append(line)
    lines = tuple(sorted(chosen, key=lambda line: line.index))
    left_out = len(case.story) - len(lines)
    return EvidencePack(evidence="\n".join([*facts, *_excerpt(lines, len(case.story))]), lines=lines, left_out=left_out)


def _excerpt(lines: Sequence[ShownLine], total: int) -> list[str]:
    """The lines by time, with a mark wherever some were left out."""
    text_lines = [f"lines of the log by time ({total - len(lines)} of {total} are left out):"]
    next_index = 0
    for line in lines:
        if line.index > next_index:
            text_lines.append(f"(- {line.index - next_index} lines -)")
        text_lines.append(f"[{line.id}] {line.text}")
        next_index = line.index + 1
    if next_index < total:
        text_lines.append(f"(- {total - next_index} lines -)")
    return text_lines


def _facts(facts: Sequence[tuple[str, str]], room: int) -> list[str]:
    text_lines = []
    for name, text in facts:
        line = f"{name}: {plain(text, limit=FACT_LIMIT).replace(chr(10), ' ')}"
        if text and _size(line) <= room:
            text_lines.append(line)
            room -= _size(line)
    return text_lines


def _ranked(case: ModelInput, matcher: Matcher, asked_for: Sequence[int]) -> list[int]:
    worth = _worths(case, matcher)
    first_of: dict[str, int] = {}
    for index in sorted(worth, key=lambda i: (-worth[i], i)):
        first_of.setdefault(_shape(case.story[index].text), index)
    wanted = [index for index in dict.fromkeys(asked_for) if 0 <= index < len(case.story)]
    ranked = sorted(set(first_of.values()) - set(wanted), key=lambda i: (-worth[i], i))
    decisive = [i for i in ranked if worth[i] >= 1000]
    return [*decisive, *wanted, *(i for i in ranked if worth[i] < 1000)]


def _worths(case: ModelInput, matcher: Matcher) -> dict[int, int]:
    """Return what each line is worth: what the rules cite, what the catalogue knows, what sounds like trouble."""
    texts = [line.text for line in case.story]
    cited = {(e.signal, e.line.strip()[:200]): n for n, e in enumerate(case.rules.evidence)}
    worth = {index: _sounds(text) for index, text in enumerate(texts)}
    for index, match in matcher.scan([text.replace("\n", " ") for text in texts]):
        worth[index] = max(worth[index], _WORTH.get(match.role, 0))
    decisive = []
    for index, line in enumerate(case.story):
        rank = cited.get((line.ref, line.text.strip()[:200]))
        if rank is not None:
            worth[index] = 2000 - rank
            decisive.append(index)
    for index in decisive:
        for near in range(max(0, index - NEAR), min(len(texts), index + NEAR + 1)):
            if worth[near] < 1000:
                worth[near] += 60
    return worth


def _sounds(text: str) -> int:
    if not text.strip():
        return 0
    if _ERROR.search(text):
        return 100
    if "non-default args" in text or "vllm serve" in text:
        return 90
    return 40 if _WARNING.search(text) else 10


def _shape(text: str) -> str:
    return _VARIES.sub("#", text.strip())[:200]


def _clean(text: str) -> str:
    return plain(text.strip().replace("\n", " "), limit=LINE_LIMIT)


def _size(text: str | Sequence[str]) -> int:
    """Bytes of the text inside a JSON document."""
    whole = text if isinstance(text, str) else "\n".join(text)
    return len(canonical(whole))


def rules_summary(rules: Diagnosis, *, platform: str) -> str:
    """Return what the rules say, in words of closed lists alone: no outside text stands outside the fence.

    Args:
        rules: The diagnosis without a model.
        platform: Where the service runs, a word of our list.
    """
    name = platform if platform.replace("_", "").isalnum() and len(platform) <= 32 else "unknown"
    if rules.signature is None:
        return f"Platform: {name}. No rule recognises the trouble."
    sure = "certainly" if rules.certain else "perhaps"
    return f"Platform: {name}. The rules say: {sure} {rules.class_} (signature {rules.signature})."


def fence_mark(evidence: str) -> str:
    """Return the marks' word: it depends on every byte of what they enclose, so that nothing inside can close them."""
    return digest(evidence)[:12]
