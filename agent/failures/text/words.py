"""Words by which any program tells how it is, known to a rule or not; the catalogue holds them (words.toml)."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import re2

from agent.failures.text.log_text import joined


class Says(StrEnum):
    """What a phrase proves of the program, or of the thing, that a line speaks of."""

    LISTENS = "listens"
    """It opened its port, which it does once in a start."""
    UP = "up"
    """It is up, or did what it was asked."""
    ACTS = "acts"
    """It tells of a step of its ordinary work."""
    PENDING = "pending"
    """It waits for something, or tells what is not there yet."""
    WELL = "well"
    """What was down is well again."""
    DOWN = "down"
    """Somebody is down, gone, or without what it needs, even if others are well."""
    WRONG = "wrong"
    """Something went wrong; programs that are up write it of what they go on without."""
    DOUBTFUL = "doubtful"
    """An end or a try, in order or not."""
    WAITS = "waits"
    """A start that waits for somebody else's."""
    HARMLESS = "harmless"
    """The words of a trouble in a sentence that tells of none."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """One group of words.toml: phrases that prove the same.

    Attributes:
        says: The kind of proof.
        proves: What it is, for people.
        phrases: Whole words, ASCII case does not matter; :data:`PLACEHOLDERS` stand for what varies.
    """

    says: Says
    proves: str
    phrases: tuple[str, ...]


_NO = r"(?:not|no|never|without|nobody|nothing|none|n't)"
PLACEHOLDERS = {
    "<*>": r".+",
    "<end>": r"\.?\s*$",
    "<rest>": r".*",
    "<number>": r"[0-9]+",
    "<fault>": r"-?[1-9][0-9]*",
    "<ok>": r"[23][0-9][0-9]",
    "<5xx>": r"5[0-9][0-9]",
    "<is>": r"[\"']?\s?[=:]\s?[\"']?",
    "<no>": _NO,
    "<word>": r"\w+",
    "<request>": r"\b(?-i:GET|POST|PUT|PATCH|DELETE|HEAD) \S+",
}
"""Anything, the end or the rest of the line, a number, a code of a failure, a status of HTTP, ``is``, ``not``, a word,
a request. Besides them ``*`` stands for the rest of a word, and a word in brackets may be missing."""

_PART = re.compile(r"<[^<>]{1,9}>|\[[^\[\]]{1,40}\] |\*| ")
_BEFORE_A_NUMBER = r"(?:^|[^\w.])"
"""No digit and no point: ``10.0 workers`` are not none."""
_DENIED = re.compile(r"[\"']?\s?[:=]\s?[\"']?(?:[Ff]alse|0|no)\b")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CAPITALS = re.compile(r"\b[A-Z]+(?:_[A-Z]+)+\b(?!\s?[:=])")
"""A state or a code as programs write it; before a colon it is the name of a setting."""


_OPTIONS = re2.Options()
_OPTIONS.max_mem = 64 << 20


def pattern_of(phrase: str) -> str:
    """A phrase as a regular expression.

    Raises:
        ValueError: It has a placeholder that does not exist, or nothing else.
    """
    found: list[str] = []
    at = 0
    for part in _PART.finditer(phrase):
        found += [re.escape(phrase[at : part.start()]), _part(part[0])]
        at = part.end()
    found.append(re.escape(phrase[at:]))
    if not re.sub(r"<[^<>]*>|\W", "", phrase) and "<" not in phrase.replace("<*>", ""):
        raise ValueError(f"{phrase!r} has no word")
    before = r"\b" if phrase[0].isalnum() or phrase.startswith("<no>") else ""
    before = _BEFORE_A_NUMBER if phrase[0].isdigit() else before
    return before + "".join(found) + (r"\b" if phrase[-1].isalnum() or phrase.endswith(("xx>", "<ok>")) else "")


def _part(part: str) -> str:
    if part == "*":
        return r"\w*"
    if part == " ":
        return r"\s"
    if part.startswith("["):
        return f"(?:{re.escape(part[1:-2])} )?"
    if part not in PLACEHOLDERS:
        raise ValueError(f"{part!r} stands for nothing")
    return PLACEHOLDERS[part]


class StatusWords:
    """The words of the catalogue, compiled; without any nothing is said.

    Args:
        groups: In any order; several may prove the same.
    """

    def __init__(self, groups: Iterable[Words] = ()) -> None:
        said: dict[Says, list[str]] = {says: [] for says in Says}
        for group in groups:
            said[group.says] += map(pattern_of, group.phrases)
        up = said[Says.LISTENS] + said[Says.UP]
        self._up = _compiled(up, before=rf"(\b{_NO}\W{{1,2}})?")
        self._listens = _compiled(said[Says.LISTENS])
        self._pending = _compiled(said[Says.PENDING])
        self._well = _compiled(said[Says.WELL])
        self._acts = _compiled(up + said[Says.ACTS] + said[Says.WELL])
        self._down = _compiled(said[Says.DOWN])
        self._wrong = _compiled(said[Says.WRONG] + said[Says.DOWN])
        self._doubtful = _compiled(said[Says.DOUBTFUL])
        self._waits = _compiled(said[Says.WAITS])
        self._harmless = _compiled(said[Says.HARMLESS])
        down = (pattern.replace(_BEFORE_A_NUMBER, "").replace(r"\b", "") for pattern in said[Says.DOWN])
        loose = [pattern.replace(r"\s", r"[\s_]?") for pattern in down]
        self._may_be_down = re2.compile(f"(?i)(?:{'|'.join(loose)})[^\\n]*".encode(), _OPTIONS) if loose else None

    def up(self, line: str) -> bool:
        """Whether a line says that its program is up, or did what it was asked, and does not deny it."""
        return any(self._ups(_encodable(line)))

    def without_up(self, line: str) -> str:
        """The line with a blank for each word by which it says that its program is up."""
        line = _encodable(line)
        for first, last in reversed(list(self._ups(line))):
            line = f"{line[:first]} {line[last:]}"
        return line

    def listens(self, line: str) -> bool:
        """Whether a line says that its program opened its port."""
        return self._listens.search(_encodable(line)) is not None

    def pending(self, line: str) -> bool:
        """Whether a line tells what its program waits for."""
        return self._pending.search(_encodable(line)) is not None

    def well(self, line: str) -> bool:
        """Whether a line says that something is well, and speaks of no trouble."""
        return self._well.search(_encodable(line)) is not None and not self.troubled(line)

    def acts(self, line: str) -> bool:
        """Whether a line tells of ordinary work, or says that something is up or well."""
        return self._acts.search(_apart(line)) is not None

    def down_at(self, line: str) -> int | None:
        """Where a line says that somebody is down, in the line as :meth:`spoken` gives it; None where it does not."""
        found = self._down.search(self._spoken(line))
        return found.start() if found else None

    def wrong(self, line: str) -> bool:
        """Whether a line says that something went wrong, or that somebody is down."""
        return self._wrong.search(self._spoken(line)) is not None

    def troubled(self, line: str) -> bool:
        """Whether a line may speak of any trouble, even an end, a wait or a try that may be in order."""
        return self._waits.search(_apart(line)) is not None or self.unsettled(line)

    def unsettled(self, line: str) -> bool:
        """Whether a line says that something went wrong, or tells of an end or a try, and not that it was in order."""
        return self.wrong(line) or (self._doubtful.search(_apart(line)) is not None and not self.up(line))

    def may_be_down(self, lines: Sequence[str]) -> Iterator[int]:
        """Yield the positions of the lines that may say that somebody is down, in order."""
        if self._may_be_down is None:
            return
        text, starts = joined(lines)
        for found in self._may_be_down.finditer(text):
            yield bisect_right(starts, found.start()) - 1

    def _ups(self, line: str) -> Iterator[tuple[int, int]]:
        for found in self._up.finditer(line):
            if found[1] is None and not _DENIED.match(line, found.end()):
                yield found.span()

    def _spoken(self, line: str) -> str:
        """The line with a blank for what tells of no trouble."""
        return str(self._harmless.sub(" ", _apart(line)))


def _encodable(line: str) -> str:
    """The line without halves of a character, which RE2 cannot read."""
    return line if line.isascii() else line.encode("utf-8", "replace").decode("utf-8")


def _apart(line: str) -> str:
    """The line with words apart that are written as one."""
    line = _HUMP.sub(" ", _encodable(line))
    return _CAPITALS.sub(lambda found: found[0].replace("_", " "), line) if "_" in line else line


def _compiled(patterns: list[str], *, before: str = "") -> "re2._Regexp[str]":
    return re2.compile(f"(?i){before}(?:{'|'.join(patterns)})" if patterns else r"[^\s\S]", _OPTIONS)
