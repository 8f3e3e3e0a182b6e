"""sre-agent advise: ranked changes that fit, each with its proof and its price."""

from __future__ import annotations

import argparse
import json
import sys

from agent.entrypoints.cli.question_arguments import add_question, positive
from agent.errors import InputRejected

_DETAILED = 4


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's flags."""
    add_question(parser, required=True)
    parser.add_argument("--need-tokens-per-s", type=float, metavar="X", help="lowest acceptable decode rate")
    parser.add_argument("--need-images", action="store_true", help="keep image input: do not propose text-only")
    parser.add_argument("--max-usd-per-h", type=float, metavar="X", help="highest acceptable cost per running hour")
    parser.add_argument("--platform", metavar="P", help="platform for the prices, such as cloud_run, gke or ec2")
    parser.add_argument(
        "--top",
        type=int,
        metavar="N",
        help=f"show only the best N proposals, each in full (default: all in the table, {_DETAILED} in full)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON only")


def run(args: argparse.Namespace) -> int:
    """Advise on one setup.

    Returns:
        0: the answer stands on standard output, also where nothing fits.

    Raises:
        InputRejected: A name, number or flag cannot be read, or the setup is impossible.
        DependencyFailed: A checkpoint or the profiles cannot be read.
    """
    from agent.app.fit_answers import FitAnswers
    from agent.fit.advice.advice import Demand
    from agent.fit.question import KEYS, question_from
    from agent.presentation.advice_text import advice_text

    question = question_from({key: getattr(args, key, None) for key in KEYS})
    demand = Demand(
        needs=question.needs,
        tokens_per_s=positive("--need-tokens-per-s", args.need_tokens_per_s),
        usd_per_h=positive("--max-usd-per-h", args.max_usd_per_h),
        images=True if args.need_images else None,
        platform=args.platform,
    )
    answer = FitAnswers.open().advise(question, demand).top(_top(args.top))
    print(json.dumps(answer.to_json()) if args.json else advice_text(answer, detailed=args.top or _DETAILED))
    sys.stdout.flush()
    return 0


def _top(most: int | None) -> int | None:
    if most is not None and most < 1:
        raise InputRejected(f"--top {most} was refused", why="it must be 1 or more", hint="leave it out for all")
    return most
