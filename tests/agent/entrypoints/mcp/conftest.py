"""What stands beside the tests: an installation on a real file with one incident that waits, and a stored sweep."""

import pytest

from agent.adapters.load.sweep_folder import store_cell
from tests.agent.core.sweep.served import sweep_of
from tests.agent.entrypoints.waiting_plan import asked

__all__ = ["asked"]


@pytest.fixture(autouse=True)
def stored_sweep(tmp_path):
    """The sweep ``chat`` beside the store of the installation."""
    cells, rows = sweep_of(8, grid=(4, 8, 16))
    for cell in cells:
        store_cell(tmp_path / "state" / "sweeps" / "chat", cell, rows[cell.id])
