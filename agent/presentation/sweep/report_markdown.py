"""The report of a sweep as Markdown, with its plots as files beside it."""

import re
from collections.abc import Iterator
from typing import Final

from agent.core.text.safe_text import plain, shortened
from agent.presentation.sweep.report import Section, SweepReport, Table

PLOTS: Final = "plots"
"""The folder of the drawings, beside the report."""

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>#|~!&])")
_LONGEST: Final = 2_000


def markdown_report(report: SweepReport) -> str:
    """Return the whole report; text of others is shown as it is and makes neither markup nor a live link."""
    return "\n".join(_lines(report)) + "\n"


def escaped(text: str) -> str:
    """Return text for a paragraph or a cell of a table, on one line."""
    return _MARKUP.sub(r"\\\1", shortened(plain(text).replace("\n", " "), _LONGEST))


def _lines(report: SweepReport) -> Iterator[str]:
    yield f"# {escaped(report.title)}"
    for section in report.sections:
        yield ""
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    if section.title:
        yield f"## {escaped(section.title)}"
        yield ""
    for paragraph in section.paragraphs:
        yield f"- {escaped(paragraph)}"
    if section.paragraphs and (section.plots or section.table):
        yield ""
    for plot in section.plots:
        yield f"![{escaped(plot.title)}]({PLOTS}/{plot.name}.svg)"
    if section.table is not None:
        if section.plots:
            yield ""
        yield from _table(section.table)


def _table(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(escaped(column) for column in table.columns)} |"
    rules = ("---:" if number >= table.numbers else "---" for number, _ in enumerate(table.columns))
    yield f"|{'|'.join(rules)}|"
    for row in table.rows:
        yield f"| {' | '.join(escaped(text) for text in row)} |"
