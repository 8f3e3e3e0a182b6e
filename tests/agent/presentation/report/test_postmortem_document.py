"""A postmortem as a file: one page that loads nothing, quotes what others wrote as text, and links absolutely."""

import re

import pytest
from markdown_it import MarkdownIt

from agent.core.diagnosis.diagnosis import Evidence
from agent.presentation.report.from_record import Record, postmortem
from agent.presentation.report.html_page import html_page
from agent.presentation.report.markdown import markdown
from agent.presentation.report.postmortem import SummaryBy
from agent.presentation.report.postmortem_document import postmortem_document

HOSTILE = "</code><script>alert(1)</script> ``` [x](http://evil.example) | <@U1> \x1b[31m"
URL = "https://sre.example.com"


@pytest.fixture
def draft(stage, scenes):
    asked = stage.waiting("s-doc", make=scenes.memory_plan, diagnosis=scenes.memory_diagnosis(stage.clock.now()))
    evidence = (Evidence(signal="s1", line=HOSTILE, decisive=True), Evidence(signal="s2", line=HOSTILE))
    hostile = asked.with_(diagnosis=asked.diagnosis.with_(evidence=evidence, unknown=(HOSTILE,)))
    timeline = stage.world.store.timeline(asked.id)
    return postmortem(Record(incident=hostile, timeline=timeline, now=stage.clock.now(), console_url=URL))


def test_the_page_is_one_file_whose_links_are_absolute(draft):
    page = html_page(postmortem_document(draft))
    assert re.findall(r'(?:href|src)="([^"]*)"', page) == [f"{URL}/incidents/{draft.incident}"]
    assert page.count("<svg") == 2  # the memory before and after, inside the file
    assert "<script" not in page
    assert "\x1b" not in page


def test_markdown_makes_no_markup_of_what_others_wrote(draft):
    text = markdown(postmortem_document(draft))
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    assert {t.type for t in (*tokens, *inline)} & {"html_block", "html_inline", "code_inline", "fence"} == set()
    assert [t.attrs["href"] for t in inline if t.type == "link_open"] == [f"{URL}/incidents/{draft.incident}"]
    assert "\x1b" not in text


def test_a_summary_of_a_model_is_marked(draft):
    by_model = draft.with_(summary=("It broke.",), summary_by=SummaryBy.MODEL)
    text = markdown(postmortem_document(by_model))
    assert "Summary worded by a model:" in text
    assert "Summary worded by a model:" not in markdown(postmortem_document(draft))
