"""Stored sweeps and their reports: cells and raw rows read without secrets, report and plots written beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.adapters.load.sweep_folder import read_cells, read_requests, store_files
from agent.app.catalogues import hide
from agent.core.sweep.cell import Cell, RequestRow
from agent.core.sweep.cells_file import CELLS_FILE
from agent.core.sweep.findings import Findings, find
from agent.core.sweep.target import Target
from agent.errors import InputRejected
from agent.presentation.report.document import Document
from agent.presentation.report.html_page import html_page
from agent.presentation.report.markdown import PLOTS, markdown
from agent.presentation.sweep.report import sweep_report
from agent.settings import Settings

SWEEPS: Final = "sweeps"
"""The folder of sweeps, beside the store and where a command runs."""


@dataclass(frozen=True, kw_only=True)
class StoredSweep:
    """What one folder holds.

    Attributes:
        cells: In the order of the file, texts of others without secrets.
        rows: Raw rows by the id of their cell.
    """

    cells: tuple[Cell, ...]
    rows: Mapping[str, Sequence[RequestRow]]

    def find(self, target: Target | None = None) -> Findings:
        """Say what was measured."""
        return find(self.cells, self.rows, target)

    def report(self, target: Target | None = None) -> Document:
        """Return the report."""
        return sweep_report(self.find(target), self.cells)


def read_sweep(folder: Path) -> StoredSweep:
    """Read a sweep, finished or not.

    Raises:
        InputRejected: There is no such folder or no cell in it, or a file is damaged or missing.
    """
    cells = read_cells(folder)
    if not cells:
        raise InputRejected(
            f"the sweep {str(folder)!r} was not read",
            why="no cell is stored there yet",
            hint="name the --out of a sweep that has measured something",
        )
    rows = {cell.id: read_requests(folder, cell) for cell in cells}
    return StoredSweep(cells=tuple(Cell.model_validate_json(hide(cell.model_dump_json())) for cell in cells), rows=rows)


def sweep_folders(settings: Settings) -> dict[str, Path]:
    """Return the folders of stored sweeps by name: of this installation, and of the folder where the command runs."""
    found: dict[str, Path] = {}
    for place in (settings.state / SWEEPS, Path(SWEEPS)):
        if place.is_dir():
            found |= {path.name: path for path in sorted(place.iterdir()) if (path / CELLS_FILE).is_file()}
    return found


def write_report(folder: Path, target: Target | None = None) -> tuple[Path, ...]:
    """Write ``report.md``, ``report.html`` and the plots of a sweep into its folder, anew if they are there.

    Returns:
        The report in Markdown and the report in HTML.

    Raises:
        InputRejected: The folder holds no sweep, or a damaged one.
        DependencyFailed: The folder cannot be written; what was stored is untouched.
    """
    report = read_sweep(folder).report(target)
    files = {"report.md": markdown(report), "report.html": html_page(report)}
    store_files(folder, files | {f"{PLOTS}/{plot.name}.svg": plot.svg for plot in report.plots})
    return folder / "report.md", folder / "report.html"
