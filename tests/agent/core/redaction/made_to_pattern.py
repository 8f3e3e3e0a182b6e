"""Strings made to fit a regular expression, by chance from a seed: what a secret of a public rule would look like."""

import random
import re
import re._constants as sre
import re._parser as parser
import string
from dataclasses import dataclass, field

PRINTABLE = string.digits + string.ascii_letters + string.punctuation + " "
SPACES = " \t\n\r"
WORD = string.ascii_letters + string.digits + "_"
MOST = 60  # repeats above the least one, where the pattern leaves it open

_POSIX = {"[:alnum:]": "A-Za-z0-9", "[:alpha:]": "A-Za-z", "[:digit:]": "0-9", "[:xdigit:]": "0-9A-Fa-f"}


def for_python(pattern: str) -> str:
    """Translate Go's syntax: flags in the middle of a pattern hold to the end of their group; classes; the end of text."""
    for name, signs in _POSIX.items():
        pattern = pattern.replace(name, signs)
    pattern = pattern.replace(r"\z", r"\Z")
    out: list[str] = []
    opened = [0]
    position, inside = 0, False
    while position < len(pattern):
        sign = pattern[position]
        flag = re.match(r"\(\?([ims]+)\)", pattern[position:])
        if sign == "\\":
            out.append(pattern[position : position + 2])
            position += 2
            continue
        if not inside and flag:
            out.append(f"(?{flag[1]}:")
            opened[-1] += 1
            position += flag.end()
            continue
        if sign == "[" and not inside:
            inside = True
        elif sign == "]" and inside:
            inside = False
        elif sign == "(" and not inside:
            opened.append(0)
        elif sign == ")" and not inside:
            out.append(")" * opened.pop())
        out.append(sign)
        position += 1
    out.append(")" * opened[0])
    return "".join(out)


@dataclass
class Maker:
    """Makes texts for one pattern."""

    pattern: str
    chance: random.Random
    groups: dict[int, tuple[int, int]] = field(default_factory=dict)
    parsed: object = None
    signs: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)

    def make(self, secret: int | None = None) -> tuple[str, str]:
        """Return a text and the secret in it: what its group (or the first that took part) caught, else all."""
        self.groups, self.text = {}, []
        self.parsed = self.parsed or parser.parse(for_python(self.pattern))
        self._walk(self.parsed, 0)
        text = "".join(self.text)
        for group in [secret] if secret else sorted(self.groups):
            start, end = self.groups[group]
            if end > start:
                return text, text[start:end]
        return text, text

    def _walk(self, nodes, flags) -> None:
        for kind, value in nodes:
            self._node(kind, value, flags)

    def _node(self, kind, value, flags) -> None:
        if kind is sre.LITERAL:
            self._put(chr(value), flags)
        elif kind is sre.NOT_LITERAL:
            self._put(self.chance.choice([c for c in PRINTABLE if c != chr(value)]), 0)
        elif kind is sre.ANY:
            self._put(self.chance.choice(PRINTABLE), 0)
        elif kind is sre.IN:
            known = self.signs.get((id(value), flags))
            if known is None:
                known = self.signs[id(value), flags] = self._set(value, flags)
            self._put(self.chance.choice(known), 0)
        elif kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            low, high, inner = value
            for _ in range(self.chance.randint(low, min(int(high), low + MOST))):
                self._walk(inner, flags)
        elif kind is sre.BRANCH:
            self._walk(self.chance.choice(value[1]), flags)
        elif kind is sre.SUBPATTERN:
            group, add, remove, inner = value
            start = sum(map(len, self.text))
            self._walk(inner, (flags | add) & ~remove)
            if group:
                self.groups[group] = (start, sum(map(len, self.text)))
        elif kind is not sre.AT:
            raise AssertionError(f"no sample for {kind}")

    def _put(self, sign: str, flags: int) -> None:
        self.text.append(self.chance.choice([sign.lower(), sign.upper()]) if flags & re.IGNORECASE else sign)

    def _set(self, items, flags) -> list[str]:
        signs: set[str] = set()
        for kind, value in items:
            if kind is sre.LITERAL:
                signs.add(chr(value))
            elif kind is sre.RANGE:
                signs |= {chr(code) for code in range(value[0], min(value[1], 126) + 1)}
            elif kind is sre.CATEGORY:
                signs |= set(_CATEGORY[value])
        if flags & re.IGNORECASE:
            signs |= {form for sign in signs for form in (sign.lower(), sign.upper())}
        if items and items[0][0] is sre.NEGATE:
            signs = set(PRINTABLE) - signs
        return sorted(signs)


_CATEGORY = {
    sre.CATEGORY_WORD: WORD,
    sre.CATEGORY_DIGIT: string.digits,
    sre.CATEGORY_NOT_WORD: "".join(sign for sign in PRINTABLE if sign not in WORD),
    sre.CATEGORY_SPACE: SPACES,
    sre.CATEGORY_NOT_SPACE: PRINTABLE.strip(),
}
