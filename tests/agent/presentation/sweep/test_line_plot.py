"""A line plot shows every value where it belongs, the two knees, gaps and failures, with units."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.presentation.sweep.line_plot import HEIGHT, WIDTH, Knee, LinePlot, Series, line_plot

NAMES = {"s": "http://www.w3.org/2000/svg"}


def drawn(*series, **more):
    return ET.fromstring(line_plot(LinePlot(title="Throughput", unit="tokens/s", series=series, **more)))


def texts(root):
    return [node.text for node in root.findall(".//s:text", NAMES)]


def circles(root):
    return [(float(c.get("cx")), float(c.get("cy"))) for c in root.findall(".//s:circle", NAMES)]


def test_higher_values_lie_higher_and_more_load_lies_further_right():
    points = circles(drawn(Series(name="", points=((1, 10.0), (2, 20.0), (4, 40.0)))))
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0], abs=0.2)  # log scale


def test_axes_say_what_and_in_which_unit():
    said = texts(drawn(Series(name="", points=((1, 10.0), (64, 700.0)))))
    assert "Throughput (tokens/s)" in said
    assert any(text.startswith("concurrent requests (log scale); tokens/s") for text in said)
    assert {"1", "64"} <= set(said)


def test_values_far_apart_get_a_log_axis_unless_it_must_begin_at_zero():
    far = Series(name="p50", points=((1, 0.02), (64, 2.0)))
    assert any("tokens/s, log scale" in text for text in texts(drawn(far)))
    assert any("tokens/s, from 0" in text for text in texts(drawn(far, from_zero=True)))


def test_both_knees_are_drawn_where_they_are_and_one_outside_is_not():
    series = Series(name="", points=((1, 1.0), (8, 8.0), (64, 8.0)))
    knees = (Knee(at=8, label="8 measured", measured=True), Knee(at=200, label="200 predicted", measured=False))
    root = drawn(series, knees=knees)
    (at,) = [n for n in root.findall("s:line", NAMES) if n.get("class") == "k" and float(n.get("y2")) > 100]
    assert float(at.get("x1")) == pytest.approx(circles(root)[1][0] + 1.5, abs=0.1)
    assert not [n for n in root.findall("s:line", NAMES) if n.get("class") == "q" and float(n.get("y2")) > 100]
    assert {"8 measured", "200 predicted"} <= set(texts(root))  # the legend has both


def test_a_gap_stays_a_gap_and_failures_are_counted_at_their_load():
    root = drawn(Series(name="", points=((1, 1.0), (2, 2.0), (4, None), (8, 8.0), (16, 8.0))), failed=((4, 16), (8, 0)))
    assert [len(n.get("points").split()) for n in root.findall("s:polyline", NAMES)] == [2, 2]
    assert "16 failed" in texts(root)
    assert "0 failed" not in texts(root)


def test_a_plot_without_a_value_says_so():
    assert "nothing was measured" in texts(drawn(Series(name="p50", points=((1, None),))))
    assert "nothing was measured" in texts(drawn())


values = st.none() | st.floats(0, 1e7)


@given(st.dictionaries(st.integers(1, 100_000), st.tuples(values, values), min_size=1, max_size=12), st.booleans())
def test_whatever_is_measured_lies_inside_the_drawing(points, from_zero):
    loads = sorted(points)
    root = drawn(
        Series(name="p50", points=tuple((load, points[load][0]) for load in loads)),
        Series(name="p99", points=tuple((load, points[load][1]) for load in loads)),
        knees=(Knee(at=7, label="7 predicted", measured=False),),
        from_zero=from_zero,
    )
    for x, y in circles(root):
        assert 0 <= x <= WIDTH
        assert 0 <= y <= HEIGHT
