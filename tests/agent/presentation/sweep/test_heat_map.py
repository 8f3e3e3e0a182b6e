"""The heat map: darker is faster, the lines stand between the columns where requests begin to wait."""

import xml.etree.ElementTree as ET

import pytest

from agent.presentation.sweep.heat_map import Row, Square, heat_map

NAMES = {"s": "http://www.w3.org/2000/svg"}


def square(value):
    return Square(value=value, text=f"{value}", tooltip="<b>")


def row(predicted, measured):
    squares = (square(10.0), square(40.0), Square(value=None, text="not sent", tooltip="why & how"), None)
    return Row(name="128 tokens", squares=squares, predicted=predicted, measured=measured)


def drawn(predicted=None, measured=None):
    return ET.fromstring(heat_map((1, 4, 8, 16), (row(predicted, measured),)))


def edges(root, kind):
    return [float(n.get("x1")) for n in root.findall("s:line", NAMES) if n.get("class") == kind][
        1:
    ]  # after the legend's


def test_the_faster_the_darker_and_what_was_not_measured_has_no_colour():
    shades = [float(n.get("fill-opacity")) for n in drawn().findall(".//s:rect", NAMES) if n.get("fill-opacity")]
    assert shades == [0.3, 0.9, 0.0]


def test_a_cell_that_was_not_sent_says_so_and_why():
    root = drawn()
    assert "not sent" in [n.text for n in root.findall(".//s:text", NAMES)]
    assert "why & how" in [n.text for n in root.findall(".//s:title", NAMES)]


def test_the_lines_stand_at_the_right_edge_of_the_last_column_that_does_not_wait():
    (at_one,), (at_four,) = edges(drawn(measured=1), "k"), edges(drawn(measured=4), "k")
    assert at_four - at_one == pytest.approx(66, abs=0.2)
    (between,) = edges(drawn(measured=6), "k")
    assert at_four < between < at_four + 66


@pytest.mark.parametrize("beyond", [0.5, 16, 100, None])
def test_a_level_outside_the_columns_is_not_drawn(beyond):
    assert edges(drawn(predicted=beyond), "q") == []
