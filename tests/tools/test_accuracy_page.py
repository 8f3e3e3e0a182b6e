"""docs/accuracy.md is what its tool writes."""

from pathlib import Path

from tools.accuracy_page import render

PAGE = Path(__file__).parents[2] / "docs" / "accuracy.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "python -m tools.accuracy_page > docs/accuracy.md"
