"""What a command prints: without secrets, whatever was stored, and harmless to the terminal."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent.core.text.safe_text import inert, terminal

if TYPE_CHECKING:
    from agent.presentation.report.document import Table

TEXT_LIMIT = 10_000
DOCS: Final = Path(__file__).resolve().parents[3] / "docs"  # of a checkout; the package has none
_GUIDE: Final = re.compile(r"\b(docs/[a-z0-9-]+\.md)\b")


def for_people(text: str, *, limit: int = TEXT_LIMIT, lines: bool = True) -> str:
    """Return text of others as a terminal may show it: redacted, then as `agent.core.text.safe_text.terminal`."""
    return terminal(without_secrets(text), limit=limit, lines=lines)


def message(text: str) -> str:
    """Return a message of our own that quotes others, on one line: redacted, links and hosts as they are."""
    return with_guides(inert(without_secrets(text)).replace("\n", "\\n"))


def with_guides(text: str) -> str:
    """Return a text that names pages of docs/ so that whoever has only the package knows where those are."""
    return text if DOCS.is_dir() else _GUIDE.sub(r"\1 in the source repository", text)


def for_programs(row: Mapping[str, Any]) -> str:
    """Return a row as one line of JSON without secrets; keys, ids and numbers stay."""
    from agent.app.redaction import hide

    return hide(json.dumps(row))


def print_table(table: "Table", *, own: bool = False) -> None:
    """Print a list with its headings, without secrets and harmless to the terminal; ``own`` as for ``text_table``."""
    from agent.presentation.report.plain_text import text_table

    for line in text_table(table, own=own):
        print(without_secrets(line))


def without_secrets(text: str) -> str:
    """Take the secrets out of a text that is safe to show otherwise."""
    from agent.app.redaction import redact

    return redact(text)
