"""The cost command: USD per hour, month and million tokens, per platform, at a given load."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.entrypoints.cli.question_arguments import add_question, positive
from agent.errors import InputRejected

if TYPE_CHECKING:
    from agent.app.cost_answers import OwnHardware
    from agent.fit.cost.answer import CostAnswer
    from agent.fit.cost.load import Load

_OWN = ("own_price", "own_watts", "own_usd_per_kwh")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's flags."""
    parser.add_argument("--service", metavar="S", help="a service of services.toml, as it runs now")
    add_question(parser, required=False)
    number: dict[str, Any] = {"type": float, "metavar": "X"}
    parser.add_argument("--need-tokens-per-s", help="lowest acceptable decode rate of one request", **number)
    parser.add_argument("--platform", metavar="P", help="one platform alone, such as cloud_run, gke or ec2")
    load = parser.add_argument_group("load")
    load.add_argument("--busy", help="share of the time it spends generating (default: 0.3)", default=0.3, **number)
    load.add_argument("--requests", type=int, metavar="N", default=1, help="concurrent requests (default: 1)")
    load.add_argument("--min-instances", type=int, metavar="N", default=0, help="minimum number of instances")
    load.add_argument("--wakes-per-day", help="starts from zero per day (default: 0)", default=0.0, **number)
    load.add_argument(
        "--measured",
        metavar="DIR",
        action="append",
        default=[],
        help="folder of a sweep whose speeds replace computed ones; may be given more than once",
    )
    own = parser.add_argument_group("your own machine, with --accelerator")
    own.add_argument("--own-price", help="purchase price, USD", **number)
    own.add_argument("--own-years", help="depreciation period in years (default: 3)", default=3.0, **number)
    own.add_argument("--own-watts", help="power draw of the whole machine under load", **number)
    own.add_argument("--own-idle-watts", help="power draw when idle (default: as under load)", **number)
    own.add_argument("--own-usd-per-kwh", help="price of electricity", **number)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.epilog = (
        "examples:\n"
        "  sre-agent cost --model google/gemma-4-12B-it-qat-w4a16-ct --need-context 8192\n"
        "  sre-agent cost --service gemma --busy 0.05 --wakes-per-day 6\n"
        "Each price has a date and a source: docs/cost.md. No service is woken: none is sent a request."
    )


def run(args: argparse.Namespace) -> int:
    """Price what was asked for.

    Returns:
        0: the answer stands on standard output, also where nothing meets the needs.

    Raises:
        InputRejected: A name, number or flag cannot be read, or nothing was asked.
        DependencyFailed: A checkpoint, the profiles or the state cannot be read.
    """
    from agent.fit.cost.load import Load
    from agent.presentation.cost_text import cost_text

    if bool(args.service) == bool(args.model):
        raise InputRejected(
            "cost priced nothing",
            why="it takes either --service or --model",
            hint="use: sre-agent cost --model M [--accelerator A] [--flags TEXT]",
        )
    load = Load(
        busy=args.busy, requests=args.requests, min_instances=args.min_instances, wakes_per_day=args.wakes_per_day
    )
    answer = _of_service(args, load) if args.service else _of_model(args, load)
    print(json.dumps(answer.to_json()) if args.json else cost_text(answer))
    return 0


def _of_model(args: argparse.Namespace, load: Load) -> CostAnswer:
    from agent.app.cost_answers import CostAnswers
    from agent.entrypoints.operator_client.protocol import now
    from agent.fit.question import KEYS, question_from

    row = {key: getattr(args, key, None) for key in KEYS}
    question = question_from({**row, "accelerator": args.accelerator or "any"})
    return CostAnswers.open(now().date(), sweeps=_sweeps(args)).answer(
        question,
        load,
        accelerator=args.accelerator,
        platform=args.platform,
        tokens_per_s=positive("--need-tokens-per-s", args.need_tokens_per_s),
        own=_own(args),
    )


def _of_service(args: argparse.Namespace, load: Load) -> CostAnswer:
    from agent.entrypoints.cli.service_cost import service_cost
    from agent.entrypoints.operator_client.protocol import now

    for name in ("accelerator", "flags", "count", "vllm", "need_context", "need_users", "platform", "own_price"):
        if getattr(args, name):
            raise InputRejected(
                f"--{name.replace('_', '-')} was refused",
                why="the service says it: what it runs, and what its owner needs",
                hint="ask with --model instead, or change services.toml",
            )
    return service_cost(
        args.service,
        load,
        now().date(),
        sweeps=_sweeps(args),
        tokens_per_s=positive("--need-tokens-per-s", args.need_tokens_per_s),
    )


def _sweeps(args: argparse.Namespace) -> list[Path]:
    return [Path(folder) for folder in args.measured]


def _own(args: argparse.Namespace) -> OwnHardware | None:
    from agent.app.cost_answers import OwnHardware

    if all(getattr(args, name) is None for name in _OWN):
        return None
    missing = [f"--{name.replace('_', '-')}" for name in _OWN if getattr(args, name) is None]
    missing += [] if args.accelerator else ["--accelerator"]
    if missing:
        raise InputRejected(
            "your own machine was not priced", why=f"{', '.join(missing)} is missing", hint="give all of them"
        )
    return OwnHardware(
        price_usd=_at_least_0("--own-price", args.own_price),
        years=positive("--own-years", args.own_years) or 3.0,
        watts=_at_least_0("--own-watts", args.own_watts),
        usd_per_kwh=_at_least_0("--own-usd-per-kwh", args.own_usd_per_kwh),
        idle_watts=None if args.own_idle_watts is None else _at_least_0("--own-idle-watts", args.own_idle_watts),
    )


def _at_least_0(name: str, value: float) -> float:
    if not 0 <= value < float("inf"):
        raise InputRejected(f"{name} {value!r} was refused", why="it must be 0 or more", hint="correct it")
    return value
