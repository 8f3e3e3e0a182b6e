"""The audit command: show the record of decisions and effects, or check that nobody changed it."""

import argparse
import json

from agent.core.decision.audit import AuditRow, Soundness, verify
from agent.entrypoints.cli.output import for_programs, print_table, without_secrets
from agent.presentation.audit_text import row_text, soundness_text
from agent.presentation.report.document import Table

ALL = 10**9
SAID_CHARS = 200
_COLUMNS = ("ROW", "AT (UTC)", "WHAT", "INCIDENT", "BY", "DETAIL")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's words."""
    parser.add_argument("what", choices=["show", "verify"], help="list the rows, or verify the hash chain over them")
    parser.add_argument("--limit", type=int, default=50, help="number of newest rows to show (default 50)")
    parser.add_argument("--chain", metavar="HEX", help="with verify: the last hash of an earlier check")
    parser.add_argument("--json", action="store_true", help="print JSON Lines")


def run(args: argparse.Namespace) -> int:
    """Show or check the record; 1 where it is not sound.

    Raises:
        SettingsRejected: The settings do not make an installation.
        DependencyFailed: The control store did not answer.
    """
    from agent.entrypoints.operator_client.local import open_operator_client

    client = open_operator_client()
    if args.what == "verify":
        return _verify(client.audit(ALL), args.chain, apart=client.databases_apart(), as_json=args.json)
    rows = client.audit(max(args.limit, 1))
    if args.json:
        for row in rows:
            print(for_programs(row.model_dump(mode="json")))
    elif rows:
        print_table(Table(columns=_COLUMNS, rows=tuple(map(_cells, rows)), numbers=len(_COLUMNS)))
    else:
        print("the record has no rows yet; nothing was decided or changed")
    return 0


def _verify(rows: tuple[AuditRow, ...], noted: str | None, *, apart: str, as_json: bool) -> int:
    found = verify(rows, last_chain=noted)
    last = rows[-1].chain if rows else ""
    if apart and found.soundness is Soundness.SOUND:
        found = found.with_(soundness=Soundness.TAIL_MISSING)
    if as_json:
        shown = {"soundness": found.soundness, "number": found.number, "last_chain": last}
        print(json.dumps(shown | ({"databases": apart} if apart else {})))
    else:
        print(f"not sound: {apart}" if apart else soundness_text(found.soundness, found.number))
        if last:
            print(f"last hash: {last}")
            print("keep it elsewhere: `sre-agent audit verify --chain HASH` then detects a rewritten record")
    return 0 if found.soundness is Soundness.SOUND else 1


def _cells(row: AuditRow) -> tuple[str, ...]:
    said = without_secrets(row_text(row))[:SAID_CHARS]
    return str(row.number), f"{row.at:%Y-%m-%d %H:%M:%S}", row.kind, row.incident or "-", row.who, said
