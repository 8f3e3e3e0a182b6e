"""Stored sweeps and their reports: cells and raw rows read without secrets, report and plots written beside them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent.adapters.load.sweep_folder import read_cells, read_requests, store_files
from agent.app.redaction import hide
from agent.core.sweep.cell import Cell, RequestRow
from agent.core.sweep.cells_file import CELLS_FILE
from agent.core.sweep.findings import Findings, find
from agent.core.sweep.target import Target
from agent.core.value import digest
from agent.errors import DependencyFailed, InputRejected
from agent.presentation.report.document import Document
from agent.presentation.report.html_page import html_page
from agent.presentation.report.markdown import PLOTS, markdown
from agent.presentation.sweep.report import sweep_report
from agent.settings import Settings
from agent.strict_json import read_object

SWEEPS: Final = "sweeps"
"""The folder of sweeps, beside the store and where a command runs."""

REGISTER: Final = "sweeps.jsonl"
"""Where the sweeps of this installation lie, beside the store: one line for each."""

LINE_BYTES: Final = 10_000


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
    """Return the folders of stored sweeps by name: those of this installation, wherever they lie, and ./sweeps."""
    found: dict[str, Path] = {}
    for place in (settings.state / SWEEPS, Path(SWEEPS)):
        if place.is_dir():
            found |= {path.name: path for path in sorted(place.iterdir()) if (path / CELLS_FILE).is_file()}
    known = {path.resolve() for path in found.values()}
    for path in _registered(settings):
        if path not in known and (path / CELLS_FILE).is_file():
            known.add(path)
            found[path.name if path.name not in found else f"{path.name}-{digest(str(path))[:6]}"] = path
    return found


def register_sweep(settings: Settings, folder: Path) -> None:
    """Note where a sweep lies, so that it is found by its name; one that is noted already is not noted again.

    Raises:
        DependencyFailed: The state folder cannot be written.
    """
    path = folder.resolve()
    if path in _registered(settings):
        return
    try:
        settings.state.mkdir(parents=True, exist_ok=True)
        with (settings.state / REGISTER).open("a") as file:
            file.write(json.dumps({"folder": str(path)}) + "\n")
    except OSError as error:
        raise DependencyFailed(
            f"the sweep in {str(folder)!r} was not noted",
            why=str(error.strerror or error),
            hint="make room in the state folder",
        ) from error


def _registered(settings: Settings) -> list[Path]:
    """Return the noted folders, the newest last; a line that was cut off names none."""
    try:
        lines = (settings.state / REGISTER).read_bytes().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(Path(str(read_object(line, what=REGISTER, limit=LINE_BYTES)["folder"])))
        except (InputRejected, KeyError):
            continue
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
