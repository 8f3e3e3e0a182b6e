"""sre-agent classify: what broke, record by record, nothing joined and nothing stored."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from agent.entrypoints.cli.classified_records import ROW_LIMIT, TEXT_LIMIT, ClassifyInput, finding_of, inputs_of
from agent.entrypoints.cli.output import for_people, for_programs, without_secrets
from agent.entrypoints.cli.records import Record, SourceFile, files_of, progress_on, records_of_file
from agent.failures.finding import Finding

USAGE = """examples:
  sre-agent classify server.log
  sre-agent classify --json logs/ 'old/*.log.gz'
  journalctl -u vllm | sre-agent classify -
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Name the arguments of the contract."""
    parser.epilog, parser.formatter_class = USAGE, argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "sources",
        metavar="SOURCE",
        nargs="+",
        help="files, folders, globs, or - for standard input: JSON lines, a JSON array, or a plain log; gzip is read",
    )
    parser.add_argument("--json", action="store_true", help="print JSON Lines")


def run(args: argparse.Namespace) -> int:
    """Classify every record of the sources, in order.

    Returns:
        0 when every record was answered, error rows too; 2 when a whole file, or no row at all, could be read.

    Raises:
        InputRejected: A source does not exist.
    """
    from agent.catalogue.load_failures import load_failures
    from agent.failures.match.matcher import compile_catalogue

    files = [file for source in args.sources for file in files_of(source)]
    catalogue = load_failures()
    matcher = compile_catalogue(catalogue.signatures, catalogue.words)
    unread, answered, refused = False, 0, 0
    for found in inputs_of(_records(files), matcher=matcher):
        unread = unread or found.unread
        if found.error:
            row: dict[str, Any] = {"id": found.id, "error": found.error}
            refused += 1
        else:
            row = answer(found, finding_of(found, matcher))
            answered += 1
        print(for_programs(row) if args.json else _for_people(row, found.place), flush=True)
    return 2 if unread or (refused and not answered) else 0


def _records(files: list[SourceFile]) -> Iterator[Record]:
    show = progress_on(sys.stderr)
    for file in files:
        yield from records_of_file(
            file, stdin=sys.stdin.buffer, text_limit=TEXT_LIMIT, record_limit=ROW_LIMIT, progress=show
        )


def answer(record: ClassifyInput, finding: Finding) -> dict[str, Any]:
    """The JSON object of the contract for one record."""
    return {
        "id": record.id,
        "class": str(finding.class_),
        "signature": finding.signature,
        "confidence": round(finding.confidence, 3),
        "certain": finding.certain,
        "benign": finding.benign,
        "fields": dict(finding.fields),
        "evidence": _evidence(record.log, finding),
        "fix_actions": list(finding.fix_actions),
    }


def _evidence(log: str, finding: Finding) -> list[str]:
    """Return the evidence without secrets: each line is redacted whole, beside its neighbours, before it is cut."""
    from agent.app.redaction import redactor

    lines = log.split("\n")
    shown: list[str] = []
    for found in finding.evidence:
        low = max(found.index - 1, 0)
        clean = redactor().redact_lines(lines[low : found.index + 2]).lines
        same = found.index < len(lines) and lines[found.index].strip().startswith(found.text)
        shown.append(clean[found.index - low].strip()[: len(found.text)] if same else without_secrets(found.text))
    return shown


def _for_people(row: dict[str, Any], place: str) -> str:
    name = place if row["id"] is None else row["id"]
    if "error" in row:
        return for_people(f"{name}: not read: {row['error']}")
    sure = "certain" if row["certain"] else "provisional"
    lines = [f"{name}: {row['class']} ({row['signature'] or 'not recognised'}, {row['confidence']:.2f}, {sure})"]
    lines += [f"    | {text}" for text in row["evidence"][:3]]
    if row["fields"]:
        lines.append("    " + ", ".join(f"{key}={value}" for key, value in row["fields"].items()))
    if not row["benign"]:
        lines.append("    do: " + "; ".join(row["fix_actions"][:3]))
    return for_people("\n".join(lines))
