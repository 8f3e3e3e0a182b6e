"""The audit command: show the record of decisions and effects, or check that nobody changed it."""

import argparse
import json

from agent.core.decision.audit import AuditRow, Soundness, verify
from agent.core.text.safe_text import terminal
from agent.entrypoints.cli.output import for_programs, without_secrets
from agent.presentation.audit_text import row_text, soundness_text

ALL = 10**9


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's words."""
    parser.add_argument("what", choices=["show", "verify"], help="list the rows, or verify the hash chain over them")
    parser.add_argument("--limit", type=int, default=50, help="number of newest rows to show (default 50)")
    parser.add_argument("--chain", metavar="HEX", help="last chain value that you stored elsewhere; verify compares it")
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
    for row in client.audit(max(args.limit, 1)):
        print(for_programs(row.model_dump(mode="json")) if args.json else without_secrets(_line(row)))
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
            print(f"last chain: {last}; note it elsewhere, then a record written anew is found out")
    return 0 if found.soundness is Soundness.SOUND else 1


def _line(row: AuditRow) -> str:
    said = " ".join(terminal(word, lines=False) for word in (row.kind, row.incident, f"by {row.who}"))
    return f"{row.number:>6}  {row.at:%Y-%m-%d %H:%M:%S}  {said}  {terminal(row_text(row), limit=200, lines=False)}"
