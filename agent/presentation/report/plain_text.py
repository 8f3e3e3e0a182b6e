"""A document as text for a terminal: the same sentences and tables, without drawings."""

from collections.abc import Iterator

from agent.core.text.safe_text import terminal
from agent.presentation.report.document import Document, Table


def plain_text(document: Document) -> str:
    """Return the whole document; text of others cannot move the cursor or end a line."""
    return "\n".join(_lines(document))


def text_table(table: Table) -> Iterator[str]:
    """Yield the lines of a table, its columns below one another."""
    rows = [tuple(terminal(text, lines=False) for text in row) for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows if any(table.columns) else rows[1:]:
        cells = (
            text.rjust(width) if number >= table.numbers else text.ljust(width)
            for number, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _lines(document: Document) -> Iterator[str]:
    yield terminal(document.title, lines=False)
    for section in document.sections:
        yield ""
        if section.title:
            yield terminal(section.title, lines=False)
        yield from (terminal(paragraph, lines=False) for paragraph in (*section.paragraphs, *section.items))
        yield from (f"    {terminal(quote, lines=False)}" for quote in section.quotes)
        yield from (terminal(plot.text) for plot in section.plots if plot.text)
        if section.table is not None:
            yield from text_table(section.table)
