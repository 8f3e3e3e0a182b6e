"""The page of the architecture is the code's own account of itself."""

from pathlib import Path

from agent.core.incident.phase import Phase
from agent.ports.bus import Topic
from agent.stages.advance import STAGE_OF
from tools.architecture_page import page

ROOT = Path(__file__).resolve().parents[2]


def test_the_committed_page_is_current():
    """A stage that moved to another function is on the page, or this fails."""
    shown = (ROOT / "docs" / "architecture.md").read_text()
    assert shown == page(), "run: python -m tools.architecture_page > docs/architecture.md"


def test_every_stage_topic_and_phase_is_on_it():
    """Nothing is left out."""
    text = page()
    for word in (*(stage.__name__ for stage in STAGE_OF.values()), *Topic, *Phase):
        assert word in text
