"""Whoever reads JSON from outside reads it by strict_json; whatever else is read says beside it why not."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOADS = re.compile(r"\bjson\.loads?\(")
REASON = re.compile(r"# not strict: \w.{5,}")


def loose(lines: list[str]) -> list[str]:
    """Lines that read JSON as Python does, and give no reason."""
    return [line.strip() for line in lines if LOADS.search(line) and not REASON.search(line)]


def test_json_of_others_is_read_strictly() -> None:
    """A key that stands twice, NaN, and nesting without an end are refused before anybody acts on them."""
    for path in sorted([*(ROOT / "agent").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]):
        if path.name != "strict_json.py":
            assert loose(path.read_text().splitlines()) == [], path.relative_to(ROOT)


def test_a_plain_reading_is_found() -> None:
    """The search above finds something where there is something."""
    assert loose(["    body = json.loads(raw)", "x = json.load(file)  # ours", "import json"]) != []
    assert loose(["    body = json.loads(raw)  # not strict: a file of ours"]) == []
