"""The fit command: does this model fit this accelerator with these flags, one question or a file of them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from agent.catalogue.load_fit import FitCatalogue, load_fit_catalogue
from agent.errors import InputRejected, SreError
from agent.fit.memory.predict import predict
from agent.fit.model_and_hardware import ModelFacts, VersionRules
from agent.fit.question import KEYS, Question, question_from
from agent.fit.report import FitReport
from agent.fit.speed.price import Shape, find_shapes
from agent.fit.speed.speed import decode_speed
from agent.fit.versions import over_versions
from agent.strict_json import read_json

_LONGEST_ROW = 1_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's flags."""
    parser.add_argument(
        "--model", metavar="M", help="Hugging Face id, path, or a name added with `sre-agent models add`"
    )
    parser.add_argument("--accelerator", metavar="A", help="accelerator, such as nvidia-l4, tpu-v6e or cpu")
    parser.add_argument("--count", metavar="N", help="number of devices (default: as many as the flags need)")
    parser.add_argument("--flags", metavar="TEXT", default="", help="vLLM flags as one shell-quoted string")
    parser.add_argument("--vllm", metavar="V", help="vLLM version (default: the newest known)")
    parser.add_argument("--need-context", metavar="N", help="context length in tokens that one request needs")
    parser.add_argument("--need-users", metavar="N", help="concurrent requests of that context")
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
    from agent.presentation.memory_bar import svg_bar, text_report

    report = Desk.open().answer(question_from({key: getattr(args, key, None) for key in KEYS}))
    if args.svg:
        _write(args.svg, svg_bar(report))
    if args.json:
        print(json.dumps(report.to_contract()))
    people = sys.stderr if args.json else sys.stdout
    print(text_report(report, model=args.model, accelerator=args.accelerator, colour=people.isatty()), file=people)
    return 0 if report.fits else 1


@dataclass(frozen=True, kw_only=True)
class Desk:
    """Everything an answer looks up.

    Attributes:
        catalogue: Bundled models, accelerators and versions.
        find_model: Which model a name means; added profiles win over bundled entries.
        shapes: What is rented where, for the price.
    """

    catalogue: FitCatalogue
    find_model: Callable[[str], ModelFacts]
    shapes: Sequence[Shape]

    @classmethod
    def open(cls) -> Desk:
        """Read the bundled data and find the installation's profiles; a store in the cloud keeps none."""
        from agent.app.model_profiles import known_models
        from agent.catalogue.load_platforms import load_platform_catalogue
        from agent.settings import read_settings

        catalogue, settings = load_fit_catalogue(), read_settings()
        find = known_models(catalogue.models, settings).find if settings.embedded else catalogue.models.find
        return cls(catalogue=catalogue, find_model=find, shapes=load_platform_catalogue().shapes)

    def answer(self, question: Question) -> FitReport:
        """Look the names up, predict, and add speed and price.

        Raises:
            InputRejected: If model, accelerator or version is not known, or the configuration is impossible.
        """
        model, rules = self.find_model(question.model), self.catalogue.rules(question.vllm)
        accelerator = self.catalogue.accelerator(question.accelerator)
        self.catalogue.refuse_typing_errors(question.flags)
        asked = question.flags.speculative_config
        draft = self.catalogue.models.find_draft(asked.model if asked else "")

        def by(rules: VersionRules) -> FitReport:
            return predict(model, accelerator, question.count, question.flags, rules, draft=draft, needs=question.needs)

        report = by(rules)
        if question.vllm is None:
            meant = [each for each in self.catalogue.versions if not each.is_dated]
            report = over_versions(report, [(each.version, by(each)) for each in meant])
        speed = decode_speed(model, accelerator, question.flags, rules)
        rented = find_shapes(self.shapes, accelerator.name, question.count)
        return replace(
            report,
            assumptions=(*question.notes, *report.assumptions),
            decode_tokens_per_s=speed.bounds if speed is not None else None,
            cost_usd_per_h=next((shape.usd_per_h for shape in rented if shape.usd_per_h is not None), None),
        )


def _run_batch(source: str) -> int:
    desk = Desk.open()
    for number, line in _lines(source):
        row: object = None
        try:
            row = read_json(line.encode(), what=f"row {number}", limit=None, hint="give one JSON object per line")
            if not isinstance(row, dict):
                raise InputRejected(f"row {number} was not read", why="it is no JSON object", hint=f"Keys: {KEYS}")
            found = desk.answer(question_from(cast("Mapping[str, Any]", row))).to_contract()
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
