"""A selector names services, kinds or options by patterns; one without a letter of its own selects nothing."""

import re
from fnmatch import fnmatchcase
from typing import Annotated, Final

from pydantic import AfterValidator

NO_SELECTOR: Final = "an empty selector and '*' select nothing, want names or patterns such as 'gemma4-*'"

_CLASS = re.compile(r"\[!?\]?[^\]]*\]")


def selects(patterns: tuple[str, ...], name: str) -> bool:
    """An empty selector selects nothing, and a pattern without a letter of its own is no selector."""
    return bool(name) and any(_names_something(p) and fnmatchcase(name, p) for p in patterns)


def checked_selector(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the patterns.

    Raises:
        ValueError: One of them names nothing.
    """
    if not all(_names_something(p) for p in patterns):
        raise ValueError(NO_SELECTOR)
    return patterns


def _some(patterns: tuple[str, ...]) -> tuple[str, ...]:
    if not patterns:
        raise ValueError(NO_SELECTOR)
    return patterns


Patterns = Annotated[tuple[str, ...], AfterValidator(checked_selector)]
"""Patterns of which each names something; there may be none."""

Selector = Annotated[Patterns, AfterValidator(_some)]
"""One or more of them: a row that selects nothing would leave a ``never`` or a limit without force."""


def covers(wide: tuple[str, ...], narrow: tuple[str, ...]) -> bool:
    """Whether each of the narrow patterns is a special case of one of the wide ones.

    Said where it is certain: a pattern with a class of letters covers itself alone.
    """
    return all(any(_covers(w, n) for w in wide) for n in narrow)


def _covers(wide: str, narrow: str) -> bool:
    return wide == narrow or ("[" not in wide + narrow and "?" not in narrow and fnmatchcase(narrow, wide))


def _names_something(pattern: str) -> bool:
    """Whether a pattern holds a letter that must be there: ``[a-z]*`` and ``[!x]*`` are ``*`` in other words."""
    return bool(_CLASS.sub("", pattern).strip("*?"))
