"""A document as one HTML file: no script, nothing fetched, light and dark, readable on paper."""

from collections.abc import Iterator
from html import escape
from typing import Final

from agent.core.text.safe_text import plain, shortened
from agent.presentation.report.document import Document, Section, Table

_LONGEST: Final = 2_000
_STYLE: Final = (
    ":root{--bg:#fbfaf8;--card:#fff;--line:#d9d5ce;--fg:#1d1c1a;--dim:#5c5852;color-scheme:light dark}"
    "@media(prefers-color-scheme:dark){:root{--bg:#14161a;--card:#1c1f24;--line:#363b43;--fg:#e9e7e3;--dim:#a7a39c}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);overflow-wrap:anywhere;"
    'font:1rem/1.55 system-ui,-apple-system,"Segoe UI",sans-serif}'
    "pre{white-space:pre-wrap;background:var(--card);border:1px solid var(--line);border-radius:6px;"
    "padding:.4rem .7rem}a{color:inherit}li{max-width:60rem}"
    "main{max-width:83rem;margin:0 auto;padding:1rem}h1{font-size:1.55rem;line-height:1.25;margin:.4rem 0 .8rem}"
    "h2{font-size:1.12rem;margin:2rem 0 .6rem}p{max-width:60rem}.first{font-size:1.06rem;background:var(--card);"
    "border:1px solid var(--line);border-radius:10px;padding:.4rem 1rem}.plots{display:flex;flex-wrap:wrap;gap:.8rem}"
    ".plots svg{background:var(--card);border:1px solid var(--line);border-radius:10px;max-width:100%;height:auto}"
    ".wide{overflow-x:auto;margin:.8rem 0}table{border-collapse:collapse;font-size:.9rem;background:var(--card)}"
    "th,td{border:1px solid var(--line);padding:.25rem .6rem;text-align:left;vertical-align:top}"
    "th{color:var(--dim);font-weight:600}.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    "@media print{.plots svg,section{break-inside:avoid}}"
)
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever got into the file: nothing is loaded and nothing is run."""


def html_page(document: Document) -> str:
    """Return the whole file; text of others is escaped."""
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><title>{_said(document.title)}</title>'
        f"<style>{_STYLE}</style>"
    )
    body = "\n".join(part for section in document.sections for part in _section(section))
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><main><h1>{_said(document.title)}</h1>\n'
        f"{body}\n</main></body></html>\n"
    )


def _section(section: Section) -> Iterator[str]:
    yield "<section>" if section.title else '<section class="first">'
    if section.title:
        yield f"<h2>{_said(section.title)}</h2>"
    yield from (f"<p>{_said(paragraph)}</p>" for paragraph in section.paragraphs)
    if section.items:
        yield f"<ul>{''.join(f'<li>{_said(item)}</li>' for item in section.items)}</ul>"
    yield from (f"<pre><code>{_said(quote)}</code></pre>" for quote in section.quotes)
    if section.plots:
        yield f'<div class="plots">{"".join(plot.svg for plot in section.plots)}</div>'
    if section.table is not None:
        yield _table(section.table)
    if section.links:
        links = (f'<a rel="noreferrer" href="{escape(link.url)}">{_said(link.text)}</a>' for link in section.links)
        yield f"<p>{' · '.join(links)}</p>"
    yield "</section>"


def _table(table: Table) -> str:
    def cells(row: tuple[str, ...], tag: str) -> str:
        kinds = (' class="n"' if number >= table.numbers else "" for number, _ in enumerate(row))
        return "".join(f"<{tag}{kind}>{_said(text)}</{tag}>" for kind, text in zip(kinds, row, strict=True))

    head = f"<thead><tr>{cells(table.columns, 'th')}</tr></thead>" if any(table.columns) else ""
    rows = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in table.rows)
    return f'<div class="wide"><table>{head}<tbody>{rows}</tbody></table></div>'


def _said(text: str) -> str:
    return escape(shortened(plain(text).replace("\n", " "), _LONGEST))
