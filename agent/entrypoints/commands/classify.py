"""sre-agent classify: what broke, record by record, nothing joined and nothing stored."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.core.safe_text import terminal
from agent.entrypoints.classified_records import Record, read_records, read_source
from agent.failures.finding import Finding


def configure(parser: argparse.ArgumentParser) -> None:
    """Name the arguments of the contract."""
    parser.add_argument("source", help="a file, or - for standard input: JSON lines, a JSON array, or plain log text")
    parser.add_argument("--json", action="store_true", help="JSON Lines on standard output")


def run(args: argparse.Namespace) -> int:
    """Classify every record of the source, in order.

    Returns:
        0 when every record was answered, error rows too.

    Raises:
        InputRejected: The source cannot be read.
    """
    from agent.catalogue.load_failures import load_failures
    from agent.failures.match import compile_catalogue

    text = read_source(args.source)
    matcher = compile_catalogue(load_failures().signatures)
    for row in _rows(text, name=_name(args.source), classify=matcher.classify):
        print(json.dumps(row) if args.json else _for_people(row))
    sys.stdout.flush()
    return 0


def _rows(text: str, *, name: str, classify: Any) -> Iterator[dict[str, Any]]:
    for record in read_records(text, name=name):
        if record.error:
            yield {"id": record.id, "error": record.error}
            continue
        finding = classify(record.log, whole_log=record.whole_log, platform=record.platform)
        yield answer(record, finding)


def answer(record: Record, finding: Finding) -> dict[str, Any]:
    """The JSON object of the contract for one record."""
    return {
        "id": record.id,
        "class": str(finding.class_),
        "signature": finding.signature,
        "confidence": round(finding.confidence, 3),
        "certain": finding.certain,
        "benign": finding.benign,
        "fields": dict(finding.fields),
        "evidence": [line.text for line in finding.evidence],
        "fix_actions": list(finding.fix_actions),
    }


def _for_people(row: dict[str, Any]) -> str:
    if "error" in row:
        return terminal(f"{row['id']}: not read: {row['error']}")
    sure = "certain" if row["certain"] else "provisional"
    lines = [f"{row['id']}: {row['class']} ({row['signature'] or 'not recognised'}, {row['confidence']:.2f}, {sure})"]
    lines += [f"    | {text}" for text in row["evidence"][:3]]
    if row["fields"]:
        lines.append("    " + ", ".join(f"{key}={value}" for key, value in row["fields"].items()))
    if not row["benign"]:
        lines.append("    do: " + "; ".join(row["fix_actions"][:3]))
    return terminal("\n".join(lines))


def _name(source: str) -> str:
    return "-" if source == "-" else Path(source).name
