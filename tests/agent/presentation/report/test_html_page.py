"""The HTML report is one file that loads nothing, runs nothing and escapes everything."""

import re
from html.parser import HTMLParser

from agent.presentation.report.html_page import html_page
from tests.agent.presentation.sweep import scenes

VOID = {"meta"}


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    assert reader.open == []  # every tag is closed, in order
    return reader


def test_it_needs_no_script_and_fetches_nothing():
    reader = read(html_page(scenes.report_of_everything()))
    assert not {"script", "link", "img", "iframe", "object", "a", "form", "base"} & set(reader.tags)
    assert not [name for name, _ in reader.attributes if name in {"src", "href", "xlink:href"} or name.startswith("on")]
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in reader.attributes


def test_text_of_others_is_shown_as_text():
    reader = read(html_page(scenes.report_of_everything()))
    assert any("<script>alert(1)</script>" in text for text in reader.text)


def test_every_plot_and_every_table_is_in_the_file():
    report = scenes.report_of_everything()
    reader = read(html_page(report))
    assert reader.tags.count("svg") == len(report.plots)
    assert reader.tags.count("table") == sum(section.table is not None for section in report.sections)


def test_both_colour_schemes_are_styled():
    html = html_page(scenes.report_of_a_known_server())
    assert "color-scheme:light dark" in html
    assert len(re.findall(r"prefers-color-scheme:dark", html)) == 4  # the page and its three plots
