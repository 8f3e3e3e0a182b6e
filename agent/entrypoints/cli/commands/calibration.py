"""The calibration command: what was measured here, which ranges rest on it, and how to take it back."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent.errors import InputRejected

if TYPE_CHECKING:
    from agent.fit.speed.calibration import Measurement

_INCIDENT = "incident:"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list | show | add | remove")
    every = verbs.add_parser("list", help="list the groups, each with its range or why it has none")
    show = verbs.add_parser("show", help="list the measurements of all groups, with their sources")
    add = verbs.add_parser("add", help="measure from a sweep's folder, a start-up log, or a verified incident")
    add.add_argument("source", metavar="SOURCE", help="a folder of sre-agent sweep, a log file, or incident:ID")
    add.add_argument("--model", metavar="M", help="of a log: the model")
    add.add_argument("--accelerator", metavar="A", help="of a log: the accelerator")
    add.add_argument("--vllm", metavar="V", help="of a log: the version, where the log does not print it")
    add.add_argument("--storage", metavar="S", default="", help="of a log: where the checkpoint lay, such as gcs-fuse")
    remove = verbs.add_parser("remove", help="remove a measurement; ranges are computed from the rest")
    remove.add_argument("id", metavar="ID", help="as show prints it")
    for verb in (every, show, add, remove):
        verb.add_argument("--json", action="store_true", help="print JSON Lines")


def run(args: argparse.Namespace) -> int:
    """List, show, add or remove.

    Returns:
        0; 1 where the measurement to remove is not there, or nothing new was measured.

    Raises:
        InputRejected: A source cannot be read, or names something unknown.
        DependencyFailed: The state cannot be read or written.
    """
    from agent.app.measurements import measurement_store
    from agent.settings import read_settings

    store = measurement_store(read_settings())
    if args.verb == "remove":
        return _remove(args, removed=store.remove(args.id))
    if args.verb == "add":
        found = _read(args)
        new = store.add(found)
        print(f"{new} of {len(found)} measurements are new", file=sys.stderr)
        _show(found, as_json=args.json)
        return 0 if new else 1
    return _list(store.list(), groups_only=args.verb == "list", as_json=args.json)


def _list(stored: tuple[Measurement, ...], *, groups_only: bool, as_json: bool) -> int:
    from agent.entrypoints.cli.output import print_table
    from agent.fit.speed.calibration import calibrations
    from agent.presentation.calibration_text import GROUP_COLUMNS, group_cells, group_row
    from agent.presentation.report.document import Table

    groups = calibrations(stored)
    if groups_only and groups and not as_json:
        rows = tuple(map(group_cells, groups))
        print_table(Table(columns=GROUP_COLUMNS, rows=rows, numbers=len(GROUP_COLUMNS)), own=True)
        return 0
    for group in groups:
        if groups_only:
            print(json.dumps(group_row(group)))
        else:
            _show(group.measurements, as_json=as_json)
    if not stored and not as_json:
        print("nothing was measured here: the bundled ranges hold (docs/fit.md)")
    return 0


def _show(measurements: tuple[Measurement, ...] | list[Measurement], *, as_json: bool) -> None:
    from agent.presentation.calibration_text import measurement_line, measurement_row

    for each in measurements:
        print(json.dumps(measurement_row(each)) if as_json else measurement_line(each))


def _remove(args: argparse.Namespace, *, removed: bool) -> int:
    if args.json:
        print(json.dumps({"id": args.id, "removed": removed}))
    else:
        print(f"{args.id} was removed" if removed else f"{args.id} is not there; see: sre-agent calibration show")
    return 0 if removed else 1


def _read(args: argparse.Namespace) -> list[Measurement]:
    from agent.app.calibration import Started, from_incident, log_measurements, sweep_measurements
    from agent.app.fit_answers import FitAnswers
    from agent.entrypoints.operator_client.protocol import now

    answers = FitAnswers.open()
    if args.source.startswith(_INCIDENT):
        from agent.entrypoints.operator_client.local import open_operator_client

        incident = open_operator_client().incident(args.source.removeprefix(_INCIDENT))
        return list(from_incident(incident, answers))
    path = Path(args.source)
    if path.is_dir():
        return sweep_measurements(path, answers)
    if not (args.model and args.accelerator):
        raise InputRejected(
            f"log {args.source!r} was not read",
            why="a log does not say which model and accelerator it is of",
            hint="give --model and --accelerator",
        )
    of = Started(model=args.model, accelerator=args.accelerator, vllm=args.vllm, storage=args.storage)
    return log_measurements(path, of, answers, at=now().isoformat())
