"""SQL stands in .sql files, each statement under its name."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_NAME = re.compile(r"^-- name: (?P<name>[a-z][a-z0-9_]*)$")


@cache
def queries(stem: str) -> Mapping[str, str]:
    """Return the statements of ``queries/STEM.sql`` by name; read once.

    Raises:
        AssertionError: Two statements share a name, or text stands before the first name; a bug in the file.
    """
    return MappingProxyType(parse((files(__package__) / "queries" / f"{stem}.sql").read_text("utf-8"), stem))


def parse(text: str, stem: str) -> dict[str, str]:
    """Return the statements in ``text`` by the ``-- name:`` line above each."""
    found: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in text.splitlines():
        match = _NAME.match(line)
        if match:
            assert match["name"] not in found, f"{stem}.sql: two statements are named {match['name']!r}"
            lines = found.setdefault(match["name"], [])
        elif lines is not None:
            lines.append(line)
        else:
            assert not line.strip() or line.startswith("--"), f"{stem}.sql: {line!r} stands before the first name"
    return {name: "\n".join(body).strip().rstrip(";") for name, body in found.items()}


@cache
def migrations(prefix: str) -> tuple[tuple[int, str], ...]:
    """Return the scripts ``migrations/PREFIX_NNNN_*.sql`` in order, with their numbers.

    Raises:
        AssertionError: A number is missing or stands twice.
    """
    scripts = []
    for entry in (files(__package__) / "migrations").iterdir():
        match = re.fullmatch(rf"{prefix}_(\d{{4}})_[a-z0-9_]+\.sql", entry.name)
        if match:
            scripts.append((int(match[1]), entry.read_text("utf-8")))
    scripts.sort()
    assert [number for number, _ in scripts] == list(range(1, len(scripts) + 1)), f"{prefix}: numbers have holes"
    return tuple(scripts)


def statements(script: str) -> Iterator[str]:
    """Split a script at the ends of its statements, triggers kept whole."""
    from sqlite3 import complete_statement

    lines: list[str] = []
    for line in script.splitlines():
        lines.append(line)
        if line.rstrip().endswith(";") and complete_statement("\n".join(lines)):
            yield "\n".join(lines)
            lines = []
    assert not "".join(lines).strip(), "a script ends inside a statement"
