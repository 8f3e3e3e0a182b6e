"""The incidents command: list them, show one, tell its timeline, draft its postmortem, or do something about it."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from agent.core.incident.incident import Incident
from agent.entrypoints.cli.incident_report import FORMATS, report
from agent.entrypoints.cli.incident_verbs import VERBS, act, act_text, add_arguments
from agent.entrypoints.cli.output import for_programs, without_secrets
from agent.errors import InputRejected
from agent.ports.store import MOST_LISTED
from agent.presentation.terminal_text import lines

if TYPE_CHECKING:
    from agent.entrypoints.operator_client.protocol import OperatorClient


LISTED = 50


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's words."""
    parser.add_argument(
        "what",
        nargs="?",
        choices=["list", "show", "timeline", "report", *VERBS],
        default="list",
        help="what to print or to do (default: list)",
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="id of the incident, for all but list")
    add_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, help="with report: output format (default: md)")
    parser.add_argument("--out", metavar="FILE", type=Path, help="with report: write it into this file")
    parser.add_argument(
        "--reword",
        action="store_true",
        help="with report: let the model of MODEL_ENDPOINTS word the summary anew, and mark it; kept only if it "
        "states no figure, name or time of its own",
    )
    parser.add_argument(
        "--follow", action="store_true", help="with show: print each step until the incident ends or needs a person"
    )
    parser.add_argument("--open", action="store_true", help="only open incidents")
    parser.add_argument("--service", metavar="NAME", help="only incidents of this service")
    parser.add_argument("--run", metavar="RUN", help="only incidents of this run: live, or the id of a replay")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=int,
        help=f"with list: show at most N, newest first (1 to {MOST_LISTED}; default: {LISTED})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON Lines")


def run(args: argparse.Namespace) -> int:
    """Show what was asked for.

    Returns:
        0; with ``--follow`` 1 where the incident ended otherwise than well, or needs a person.

    Raises:
        InputRejected: There is no incident with that id, or none was named.
    """
    from agent.entrypoints.operator_client.local import open_operator_client

    _refuse_contradictions(args)
    if args.what in VERBS:
        incident = act(args)
        if args.json:
            return _one(incident, as_json=True)
        print(act_text(incident, args.what))
        return 0
    return _read(open_operator_client(), args)


def _refuse_contradictions(args: argparse.Namespace) -> None:
    if args.what != "list" and not args.id:
        raise InputRejected(
            f"incidents {args.what} {'did' if args.what in VERBS else 'shows'} nothing",
            why="the incident's id is missing",
            hint="see: sre-agent incidents list",
        )
    if args.what not in VERBS and args.words:
        raise InputRejected(
            f"incidents {args.what} shows nothing",
            why=f"{args.words[0]!r} does not belong to it",
            hint="name one incident; see: sre-agent incidents --help",
        )
    if args.follow and args.what != "show":
        raise InputRejected(
            f"incidents {args.what} follows nothing",
            why="--follow belongs to show",
            hint="sre-agent incidents show ID --follow",
        )
    if args.what != "list" and args.limit is not None:
        raise InputRejected(
            f"incidents {args.what} lists nothing",
            why="--limit belongs to list",
            hint="sre-agent incidents list --limit N",
        )
    if args.limit is not None and not 1 <= args.limit <= MOST_LISTED:
        raise InputRejected("no incidents were listed", why=f"--limit is {args.limit}", hint=f"want 1 to {MOST_LISTED}")
    if args.what != "report" and (args.format or args.out or args.reword):
        raise InputRejected(
            f"incidents {args.what} writes no report",
            why="--format, --out and --reword belong to report",
            hint="sre-agent incidents report ID --format html --out report.html",
        )


def _read(client: "OperatorClient", args: argparse.Namespace) -> int:
    match args.what:
        case "report":
            return report(
                client, args.id, form=args.format or ("json" if args.json else "md"), out=args.out, reword=args.reword
            )
        case "timeline":
            return _timeline(client, args.id, as_json=args.json)
        case "show" if args.follow:
            from agent.entrypoints.cli.follow import follow

            return follow(client, args.id, as_json=args.json)
        case "show":
            return _one(client.incident(args.id), as_json=args.json)
        case _:
            return _list(client, args)


def _list(client: "OperatorClient", args: argparse.Namespace) -> int:
    from agent.entrypoints.operator_client.protocol import now
    from agent.ports.store import Query

    limit = args.limit or LISTED
    asked = min(limit + 1, MOST_LISTED)  # the one more says whether there are others
    found = client.incidents(Query(run=args.run, service=args.service, open_only=args.open, limit=asked))
    cut, found = len(found) > limit or len(found) == MOST_LISTED, found[:limit]
    if args.json:
        for incident in found:
            print(for_programs(_row(incident)))
    elif found:
        from agent.entrypoints.cli.incident_table import incident_table
        from agent.entrypoints.colour import wants_colour

        print("\n".join(incident_table(found, now=now(), colour=wants_colour(sys.stdout))))
    if cut:
        more = f"--limit {MOST_LISTED}" if limit < MOST_LISTED else "--service, --run or --open"
        print(f"the newest {limit} are listed; to see others: {more}", file=sys.stderr)
    if not found and not args.json:
        print("no incidents; `sre-agent replay SOURCE` looks at recorded events, `sre-agent up` watches")
    return 0


def _row(incident: Incident) -> dict[str, object]:
    return {
        "id": incident.id,
        "service": incident.service,
        "run": incident.run,
        "phase": incident.phase.value,
        "class": incident.cause,
        "opened_at": incident.opened_at.isoformat(),
        "plan": incident.plan.id if incident.plan else None,
    }


def _one(incident: Incident, *, as_json: bool) -> int:
    from agent.entrypoints.cli.commands.replay import incident_json
    from agent.entrypoints.operator_client.protocol import now

    if as_json:
        print(for_programs(incident_json(incident)))
    else:
        print(without_secrets("\n".join(lines(incident, now=now()))))
    return 0


def _timeline(client: "OperatorClient", incident_id: str, *, as_json: bool) -> int:
    from agent.entrypoints.cli.follow import step_lines

    timeline = client.timeline(incident_id)
    if as_json:
        for event in timeline:
            print(for_programs(event.model_dump(mode="json")))
        return 0
    for line in step_lines(timeline, client.incident(incident_id)):
        print(line)
    return 0
