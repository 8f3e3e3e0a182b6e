"""docs/failures.md is what the catalogue says."""

from pathlib import Path

from agent.catalogue.load_failures import load_failures
from agent.failures.signature import Role
from tools.failures_page import render

PAGE = Path(__file__).parents[2] / "docs" / "failures.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(load_failures()), (
        "python -m tools.failures_page > docs/failures.md"
    )


def test_every_signature_but_phase_markers_stands_on_the_page() -> None:
    catalogue = load_failures()
    page = render(catalogue)
    missing = [s.id for s in catalogue.signatures if s.role is not Role.PHASE and f"### {s.id}:" not in page]
    assert missing == []
