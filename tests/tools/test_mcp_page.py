"""The page of the MCP server lists the tools that there are."""

from pathlib import Path

from tools.mcp_page import page

ROOT = Path(__file__).resolve().parents[2]


def test_the_committed_page_is_current():
    """A tool that was added, renamed or changed in what it may do is on the page, or this fails."""
    assert (ROOT / "docs" / "mcp.md").read_text() == page(), "run: python -m tools.mcp_page > docs/mcp.md"
