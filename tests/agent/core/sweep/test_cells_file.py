"""cells.jsonl: what is written is read, and nothing else is."""

import json

import pytest

from agent.core.sweep.cells_file import cells_from, line_of, requests_from, requests_text
from agent.errors import InputRejected
from tests.agent.core.sweep.values import cell, provenance, rows


def test_what_is_written_is_read() -> None:
    """In order; of two of one id the later counts."""
    first, second = cell(1), cell(8)
    again = first.with_(why="measured again")
    text = line_of(first) + line_of(second) + line_of(again)
    assert cells_from(text) == (again, second)
    assert requests_from(requests_text(rows()), name="r") == tuple(rows())
    assert cells_from(b"") == ()


def test_a_line_that_was_cut_off_is_left_out() -> None:
    """At every byte: the whole lines before it are read."""
    text, whole = line_of(cell(1)), line_of(cell(8))
    for cut in range(0, len(whole), 97):
        assert cells_from(text + whole[:cut]) == (cell(1),)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"[]", "not an object"),
        (b'{"a":1,"a":2}', "stands twice"),
        (line_of(cell(1)).strip().replace(b'"succeeded":10', b'"succeeded":-10'), "measured.succeeded"),
        (line_of(cell(1)).strip().replace(b"sre-agent.cell/1", b"sre-agent.cell/9"), "format"),
        (json.dumps({"unknown": 1}).encode(), "Field required"),
    ],
)
def test_a_line_that_is_no_cell_is_refused(line: bytes, why: str) -> None:
    """Typed, with the number of the line."""
    with pytest.raises(InputRejected, match=f"line 2 of cells.jsonl.*{why}"):
        cells_from(line_of(cell(1)) + line + b"\n")


def test_cells_of_two_sweeps_are_refused() -> None:
    """They are compared, never mixed."""
    other = cell(8).with_(provenance=provenance(sweep="sweep-2"))
    with pytest.raises(InputRejected, match="more than one sweep"):
        cells_from(line_of(cell(1)) + line_of(other))
