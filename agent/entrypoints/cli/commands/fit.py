"""The fit command: does this model fit this accelerator with these flags, one question or a file of them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from agent.entrypoints.cli.question_arguments import add_question
from agent.errors import InputRejected, SreError
from agent.fit.question import KEYS, question_from
from agent.strict_json import read_json

_LONGEST_ROW = 1_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's flags."""
    add_question(parser, required=False)
    parser.add_argument(
        "--batch", metavar="ROWS.jsonl", help="check every row of a JSON Lines file (- for standard input)"
    )
    parser.add_argument("--svg", metavar="FILE", help="write the memory bar as SVG")
    parser.add_argument("--json", action="store_true", help="print JSON only")


def run(args: argparse.Namespace) -> int:
    """Answer one question or a file of them; a file's answers are always JSON Lines.

    Returns:
        One question: 0 if it fits, 1 if not or unknown. A file: 0 when every row was answered, error rows too.

    Raises:
        InputRejected: If a name, number or flag cannot be read (one question), or the file cannot be read.
    """
    if args.batch is not None:
        return _run_batch(args.batch)
    if not args.model or not args.accelerator:
        raise InputRejected(
            "fit checked nothing",
            why="--model and --accelerator are missing",
            hint="give both, or give --batch ROWS.jsonl",
        )
    from agent.app.fit_answers import FitAnswers
    from agent.entrypoints.colour import wants_colour
    from agent.presentation.fit_text import text_report
    from agent.presentation.memory_bar import svg_bar

    report = FitAnswers.open().fit(question_from({key: getattr(args, key, None) for key in KEYS}))
    if args.svg:
        _write(args.svg, svg_bar(report))
    if args.json:
        print(json.dumps(report.to_contract()))
    people = sys.stderr if args.json else sys.stdout
    print(text_report(report, model=args.model, accelerator=args.accelerator, colour=wants_colour(people)), file=people)
    return 0 if report.fits else 1


def _run_batch(source: str) -> int:
    from agent.app.fit_answers import FitAnswers

    answers = FitAnswers.open()
    for number, line in _lines(source):
        row: object = None
        try:
            row = read_json(line.encode(), what=f"row {number}", limit=None, hint="give one JSON object per line")
            if not isinstance(row, dict):
                raise InputRejected(f"row {number} was not read", why="it is no JSON object", hint=f"Keys: {KEYS}")
            found = answers.fit(question_from(cast("Mapping[str, Any]", row))).to_contract()
        except SreError as error:
            found = {"error": str(error)}
        except ValueError as error:  # half a character: the line is no text
            found = {"error": f"row {number} was not read: {error}. Give one JSON object a line."}
        name = row.get("id", number) if isinstance(row, dict) else number
        print(json.dumps({"id": name, **found}))
    return 0


def _lines(source: str) -> Iterator[tuple[int, str]]:
    try:
        raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
    except (OSError, ValueError) as error:
        raise InputRejected(f"rows {source!r} were not read", why=str(error), hint="give a JSON Lines file") from error
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")  # a byte that is no UTF-8 spoils its own row at most
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line[:_LONGEST_ROW]


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputRejected(
            f"the SVG file {path!r} was not written", why=str(error), hint="give another path"
        ) from error
