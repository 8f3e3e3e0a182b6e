"""The approve command: say yes to exactly one plan."""

import argparse
import re

from agent.core.decision.decision import Choice
from agent.core.plan.plan import DIGEST_GIVEN, DIGEST_SHOWN


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's words."""
    parser.add_argument("plan", metavar="PLAN", help="id of the plan, as shown by: sre-agent incidents")
    parser.add_argument(
        "--digest",
        metavar="HEX",
        type=_digest,
        help="digest shown with the plan: refuse if the plan has changed since",
    )
    parser.add_argument("--by", metavar="NAME", help="your name (local mode only; shown as not verified)")


def run(args: argparse.Namespace) -> int:
    """Approve the plan."""
    from agent.entrypoints.cli.decide import decide

    return decide(args.plan, Choice.APPROVE, by=args.by, plan_digest=args.digest)


def _digest(text: str) -> str:
    if re.fullmatch(DIGEST_GIVEN, text) is None:
        raise argparse.ArgumentTypeError(f"want {DIGEST_SHOWN} to 64 characters of 0-9 and a-f, as shown with the plan")
    return text
