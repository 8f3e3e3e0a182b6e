"""The Markdown report: tables stay tables and others' text stays text."""

import re

from markdown_it import MarkdownIt

from agent.presentation.report.markdown import PLOTS, markdown
from tests.agent.presentation.sweep import scenes


def parsed(text):
    return MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)


def test_the_plots_stand_beside_it_and_are_all_named():
    report = scenes.report_of_everything()
    named = re.findall(rf"\]\({PLOTS}/([\w-]+)\.svg\)", markdown(report))
    assert named == [plot.name for plot in report.plots]


def test_text_of_others_makes_no_markup_no_link_and_no_html():
    tokens = parsed(markdown(scenes.report_of_everything()))
    inline = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in (*tokens, *inline)}
    assert kinds & {"html_block", "html_inline", "link_open", "code_inline", "em_open", "strong_open"} == set()
    assert {token.attrs["src"].partition("/")[0] for token in inline if token.type == "image"} == {PLOTS}
    assert "\x1b" not in markdown(scenes.report_of_everything())


def test_every_table_is_a_table():
    report = scenes.report_of_everything()
    tokens = parsed(markdown(report))
    assert sum(token.type == "table_open" for token in tokens) == sum(s.table is not None for s in report.sections)
    rows = sum(len(s.table.rows) + 1 for s in report.sections if s.table is not None)
    assert sum(token.type == "tr_open" for token in tokens) == rows
