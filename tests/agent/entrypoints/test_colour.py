"""Colours follow NO_COLOR and FORCE_COLOR before the terminal."""

import io

import pytest

from agent.entrypoints.colour import wants_colour


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environ", "terminal", "pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": "0"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
    ids=str,
)
def test_the_environment_decides_before_the_stream(environ, terminal, pipe):
    assert wants_colour(Terminal(), environ) is terminal
    assert wants_colour(io.StringIO(), environ) is pipe
