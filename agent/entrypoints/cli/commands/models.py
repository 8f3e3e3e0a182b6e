"""sre-agent models: profiles of models, read from their checkpoints; add one, list all, show one."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from agent.entrypoints.cli.output import print_table
from agent.presentation.report.document import Table

if TYPE_CHECKING:
    from agent.app.model_profiles import KnownModels
    from agent.fit.model_and_hardware import ModelFacts


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the three verbs."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="add | list | show")
    add = verbs.add_parser(
        "add", help="read config.json and the safetensors headers of a checkpoint, never its tensors"
    )
    add.add_argument("source", help="a folder, gs://bucket/folder, hf:owner/name[@revision], an https address, a mount")
    add.add_argument("--name", metavar="NAME", help="name of the profile (default: repository or folder)")
    every = verbs.add_parser("list", help="list bundled models and added profiles")
    show = verbs.add_parser("show", help="show the profile of one model")
    show.add_argument("model", help="a name, a path or an address")
    for verb in (add, every, show):
        verb.add_argument("--json", action="store_true", help="print JSON only")


def run(args: argparse.Namespace) -> int:
    """Add, list or show.

    Returns:
        0.

    Raises:
        InputRejected: No such model or place, or its files are hostile or incomplete.
        DependencyFailed: The place or the store does not answer.
    """
    from agent.app.model_profiles import described, known_models
    from agent.catalogue.load_fit import load_fit_catalogue
    from agent.settings import read_settings

    bundled = load_fit_catalogue().models
    known = known_models(bundled, read_settings())
    if args.verb == "add":
        from agent.app.model_profiles import name_of

        profile = known.add(args.source, as_name=args.name or name_of(args.source))
        _say(described(profile.facts, profile), as_json=args.json)
        for line in profile.contradictions:
            print(f"differs from the bundled entry: {line}", file=sys.stderr)
    elif args.verb == "show":
        _say(described(known.find(args.model), known.profile(args.model)), as_json=args.json)
    else:
        _list(known, [bundled.find(name) for name in bundled.names], as_json=args.json)
    return 0


def _list(known: KnownModels, bundled: list[ModelFacts], *, as_json: bool) -> None:
    from agent.app.model_profiles import summary_row

    rows = [summary_row(profile.facts, profile.source) for profile in known.added()]
    added = {row["name"] for row in rows}
    rows += [summary_row(facts, "bundled") for facts in bundled if facts.name not in added]
    if as_json:
        for row in rows:
            print(json.dumps(row))
        return
    columns = ("name", "size", "scheme", "source")
    cells = tuple(tuple(str(row[column]) for column in columns) for row in rows)
    print_table(Table(columns=tuple(map(str.upper, columns)), rows=cells, numbers=len(columns)), own=True)


def _say(model: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(model))
        return
    for key, value in model.items():
        if value not in (None, [], {}):
            print(f"{key:<18} {_value(key, value)}")


def _value(key: str, value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value('bytes', size)}" for name, size in value.items())
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return f"{value:,}" if "bytes" in key and isinstance(value, int) else str(value)
