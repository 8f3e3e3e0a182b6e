"""Quantities are read as the API servers write them, and what is none is refused by its words."""

import pytest

from agent.adapters.platform.quantities import mebibytes, mib, quantity
from agent.errors import InputRejected


@pytest.mark.parametrize(
    ("text", "number"), [("4", 4.0), ("500m", 0.5), ("1.5", 1.5), (".5", 0.5), ("2k", 2000.0), ("1e3", 1000.0)]
)
def test_a_quantity_is_a_number(text: str, number: float) -> None:
    assert quantity(text) == number


@pytest.mark.parametrize("memory_mib", [512, 1024, 24_576, 24_577])
def test_memory_is_the_same_after_it_was_written(memory_mib: int) -> None:
    assert mib(mebibytes(memory_mib)) == memory_mib


@pytest.mark.parametrize("text", ["", "a lot", "1..2", "4 Gi", "-1", "4Gb"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(InputRejected, match="a resource quantity was not read"):
        quantity(text)
