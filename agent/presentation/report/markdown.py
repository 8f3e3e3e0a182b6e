"""A document as Markdown, with its drawings as files beside it or inside."""

import re
from collections.abc import Iterator
from typing import Final

from agent.core.text.safe_text import plain, shortened
from agent.presentation.report.document import Document, Section, Table

PLOTS: Final = "plots"
"""The folder of the drawings, beside the report."""

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>#|~!&])")
_LONGEST: Final = 2_000


def markdown(document: Document) -> str:
    """Return the whole report; text of others is shown as it is and makes neither markup nor a live link."""
    return "\n".join(_lines(document)) + "\n"


def escaped(text: str) -> str:
    """Return text for a paragraph or a cell of a table, on one line."""
    return _MARKUP.sub(r"\\\1", shortened(plain(text).replace("\n", " "), _LONGEST))


def _lines(document: Document) -> Iterator[str]:
    yield f"# {escaped(document.title)}"
    for section in document.sections:
        yield ""
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    blocks = [block for block in _blocks(section) if block]
    for number, block in enumerate(blocks):
        if number:
            yield ""
        yield from block


def _blocks(section: Section) -> Iterator[list[str]]:
    """Yield what stands apart from its neighbours by an empty line."""
    yield [f"## {escaped(section.title)}"] if section.title else []
    yield from ([escaped(paragraph)] for paragraph in section.paragraphs)
    yield [f"- {escaped(item)}" for item in section.items]
    yield from (_verbatim(quote.replace("\n", " ")) for quote in section.quotes)
    yield [f"![{escaped(plot.title)}]({PLOTS}/{plot.name}.svg)" for plot in section.plots if not plot.text]
    yield from (_verbatim(plot.text) for plot in section.plots if plot.text)
    yield list(_table(section.table)) if section.table is not None else []
    yield [f"[{escaped(link.text)}](<{link.url}>)" for link in section.links]


def _verbatim(text: str) -> list[str]:
    """Return a block of code by its indent, which nothing inside can end."""
    return [f"    {line}" for line in shortened(plain(text), _LONGEST).split("\n")]


def _table(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(escaped(column) for column in table.columns)} |"
    rules = ("---:" if number >= table.numbers else "---" for number, _ in enumerate(table.columns))
    yield f"|{'|'.join(rules)}|"
    for row in table.rows:
        yield f"| {' | '.join(escaped(text) for text in row)} |"
