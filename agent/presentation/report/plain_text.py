"""A document as text for a terminal: the same sentences and tables, without drawings."""

from collections.abc import Iterator

from agent.core.text.safe_text import inert, terminal
from agent.presentation.report.document import Document, Table


def plain_text(document: Document) -> str:
    """Return the whole document; text of others cannot move the cursor or end a line."""
    return "\n".join(_lines(document))


def text_table(table: Table, *, own: bool = False) -> Iterator[str]:
    """Yield the lines of a table, its columns below one another.

    Args:
        table: The texts.
        own: Whether they are the installation's own settings, in which addresses and hosts stay as they are.
    """
    rows = [tuple(_safe(text, own=own) for text in row) for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows if any(table.columns) else rows[1:]:
        cells = (
            text.rjust(width) if number >= table.numbers else text.ljust(width)
            for number, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def _safe(text: str, *, own: bool) -> str:
    return inert(text).replace("\n", "\\n") if own else terminal(text, lines=False)


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
