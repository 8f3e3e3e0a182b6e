"""What is said of stored sweeps on the command line: one shown, its report written anew, or two compared."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from agent.entrypoints.cli.output import without_secrets
from agent.errors import InputRejected

if TYPE_CHECKING:
    from agent.core.sweep.target import Target

SEED = 21
"""Of the resamples: the same two sweeps give the same intervals."""


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of show, report and compare."""
    parser.add_argument(
        "--slo", metavar="TARGET", help="target of the best setting, such as ttft_p99<1s,itl_p99<50ms (quote it)"
    )
    parser.add_argument(
        "--anyway", action="store_true", help="with compare: compare different setups too, and list what differs"
    )


def show(folders: list[str], *, slo: str | None, as_json: bool) -> int:
    """Print what a sweep found; with JSON the findings and the cells without their provenance."""
    from agent.app.sweep_reports import read_sweep
    from agent.presentation.report.plain_text import plain_text

    stored, target = read_sweep(_folders("show", folders, 1)[0]), target_of(slo)
    if as_json:
        found = stored.find(target).model_dump(mode="json")
        cells = [cell.model_dump(mode="json", exclude={"provenance"}) for cell in stored.cells]
        print(json.dumps({**found, "cells": cells}))
    else:
        print(without_secrets(plain_text(stored.report(target))))
    return 0


def report(folders: list[str], *, slo: str | None, as_json: bool) -> int:
    """Write the report and its plots into the sweep's folder, and say where."""
    from agent.app.sweep_reports import write_report

    written = write_report(_folders("report", folders, 1)[0], target_of(slo))
    print(json.dumps({"written": [str(path) for path in written]}) if as_json else "\n".join(map(str, written)))
    return 0


def compare(folders: list[str], *, anyway: bool, as_json: bool) -> int:
    """Print the differences of two sweeps with their intervals; unlike sweeps are refused without ``--anyway``."""
    import random  # noqa: TID251 - the seeded source of the resamples

    from agent.app.sweep_reports import read_sweep
    from agent.core.sweep.comparison import compare as compared
    from agent.presentation.report.plain_text import plain_text
    from agent.presentation.sweep.comparison_text import comparison_report

    before, after = (read_sweep(folder) for folder in _folders("compare", folders, 2))
    chance = random.Random(SEED)  # noqa: S311 - resamples are no secret
    found = compared(before.cells, after.cells, (before.rows, after.rows), chance=chance, anyway=anyway)
    print(found.model_dump_json() if as_json else without_secrets(plain_text(comparison_report(found))))
    return 0


def _folders(what: str, folders: list[str], wanted: int) -> list[Path]:
    if len(folders) != wanted:
        names = "DIR" if wanted == 1 else "BEFORE AFTER"
        raise InputRejected(
            f"sweep {what} shows nothing",
            why=f"it takes {wanted} folder{'s' if wanted > 1 else ''} of stored sweeps, {len(folders)} were given",
            hint=f"sre-agent sweep {what} {names}",
        )
    return [Path(folder) for folder in folders]


def target_of(slo: str | None) -> "Target | None":
    """Return the target of ``--slo``; errors as in `agent.core.sweep.target.read_target`."""
    if slo is None:
        return None
    from agent.core.sweep.target import read_target

    return read_target(slo)
