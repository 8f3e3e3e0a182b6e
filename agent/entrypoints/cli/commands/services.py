"""The services command: what is watched, how it stands now, and what differs from what was declared."""

import argparse
import sys
from typing import TYPE_CHECKING

from agent.entrypoints.cli.output import for_programs, print_table, with_guides, without_secrets
from agent.errors import InputRejected
from agent.presentation.report.document import Table
from agent.presentation.service_view import (
    SERVICE_COLUMNS,
    ServiceView,
    drift_lines,
    drift_row,
    service_cells,
    service_lines,
)
from agent.presentation.service_view import service_row as as_row

if TYPE_CHECKING:
    from agent.entrypoints.cli.service_reader import ServiceReader

DRIFTS, NOT_KNOWN = 1, 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's words."""
    parser.add_argument(
        "what", nargs="?", choices=["list", "show", "drift"], default="list", help="what to print (default: list)"
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a service of services.toml, for show and drift")
    parser.add_argument("--json", action="store_true", help="print JSON Lines")
    parser.epilog = "Nothing is changed, and no service is woken: it is described, never sent a request."


def run(args: argparse.Namespace) -> int:
    """Show what was asked for; drift ends with 1 where there is any, with 3 where nobody can tell.

    Raises:
        InputRejected: No service of that name is watched, or none was named.
    """
    from agent.entrypoints.cli.service_reader import open_service_reader

    if args.what == "show" and not args.name:
        raise InputRejected(
            "services show shows nothing", why="the service's name is missing", hint="see: sre-agent services list"
        )
    if args.what == "list" and args.name:
        raise InputRejected(
            "services list takes no name",
            why=f"{args.name!r} stands behind it",
            hint=f"use: sre-agent services show {args.name}",
        )
    reader = open_service_reader()
    if args.what == "drift":
        return _drift(reader, args.name, as_json=args.json)
    views = tuple(reader.views(args.name))
    if args.json:
        for view in views:
            print(for_programs(as_row(view)))
    elif args.what == "show":
        for view in views:
            print(without_secrets("\n".join(service_lines(view))))
    elif views:
        _list(views)
    else:
        print(with_guides("no service is watched; name one in services.toml, see docs/services.md"))
    return 0


def _list(views: tuple[ServiceView, ...]) -> None:
    """Print the table, and to stderr why a service in it is unknown."""
    rows = tuple(service_cells(view) for view in views)
    print_table(Table(columns=SERVICE_COLUMNS, rows=rows, numbers=len(SERVICE_COLUMNS)), own=True)
    for view in views:
        if view.live is None:
            print(without_secrets(_said(view)), file=sys.stderr)


def _drift(reader: "ServiceReader", name: str | None, *, as_json: bool) -> int:
    views = reader.views(name)
    for view in views:
        if as_json:
            print(for_programs(_drift_json(view)))
        else:
            print(without_secrets("\n".join([_said(view), *drift_lines(view)])))
    if any(view.drift for view in views):
        return DRIFTS
    return NOT_KNOWN if any(view.live is None for view in views) else 0


def _said(view: ServiceView) -> str:
    if view.live is None:
        return f"{view.service.name}: not described ({view.not_described})"
    said = [f"{view.service.name}: {'drift' if view.drift else view.baseline}"]
    said += [f"  warning    {view.unpinned}"] if view.unpinned else []
    said += [f"  changed    {view.last_change}"] if view.drift and view.last_change else []
    return "\n".join(said)


def _drift_json(view: ServiceView) -> dict[str, object]:
    since = view.record.drift_since if view.record is not None and view.drift else None
    return {
        "name": view.service.name,
        "drift": [drift_row(row) for row in view.drift],
        "since": since.isoformat() if since is not None else None,
        "changed_by": view.live.changed_by or None if view.live is not None else None,
        "unpinned": view.unpinned or None,
        "make_as_declared": list(view.way_back),
        "described": view.live is not None,
    }
