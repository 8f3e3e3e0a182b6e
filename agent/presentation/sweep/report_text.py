"""The report of a sweep as text for a terminal: the same sentences and tables, without plots."""

from collections.abc import Iterator

from agent.core.text.safe_text import terminal
from agent.presentation.sweep.report import SweepReport, Table


def text_report(report: SweepReport) -> str:
    """Return the whole report; text of others cannot move the cursor or end a line."""
    return "\n".join(_lines(report))


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


def _lines(report: SweepReport) -> Iterator[str]:
    yield terminal(report.title, lines=False)
    for section in report.sections:
        yield ""
        if section.title:
            yield terminal(section.title, lines=False)
        yield from (terminal(paragraph, lines=False) for paragraph in section.paragraphs)
        if section.table is not None:
            yield from text_table(section.table)
