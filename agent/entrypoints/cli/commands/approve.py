"""The approve command: say yes to exactly one plan, or take the yes back."""

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
    parser.add_argument(
        "--withdraw", action="store_true", help="withdraw your approval while the plan still needs another person's"
    )
    parser.add_argument(
        "--break-glass",
        action="store_true",
        help="approve despite a freeze window that allows your group to; requires --why",
    )
    parser.add_argument("--why", metavar="TEXT", default="", help="the reason, kept with the approval")
    parser.add_argument(
        "--wait", action="store_true", help="print each step until the incident ends; exit 0 if it is resolved, else 1"
    )
    parser.add_argument("--by", metavar="NAME", help="your name (local mode only; shown as not verified)")


def run(args: argparse.Namespace) -> int:
    """Approve the plan, or take the approval back.

    Raises:
        InputRejected: The arguments contradict each other.
        SreError: See :class:`agent.entrypoints.operator_client.protocol.OperatorClient`.
    """
    from agent.entrypoints.cli.decide import decide
    from agent.entrypoints.operator_client.protocol import OperatorDecision
    from agent.errors import InputRejected

    if args.withdraw and (args.break_glass or args.digest or args.wait):
        raise InputRejected(
            "nothing was sent",
            why="--withdraw takes back what was said, and says nothing new",
            hint="remove the other arguments",
        )
    if args.break_glass and not args.why.strip():
        raise InputRejected("nothing was sent", why="--break-glass needs a reason", hint="give it: --why TEXT")
    asked = OperatorDecision(
        plan=args.plan,
        answer=Choice.REJECT if args.withdraw else Choice.APPROVE,
        by=args.by,
        why=args.why,
        plan_digest=args.digest,
        break_glass=args.break_glass,
        withdraw=args.withdraw,
    )
    return decide(asked, wait=args.wait)


def _digest(text: str) -> str:
    if re.fullmatch(DIGEST_GIVEN, text) is None:
        raise argparse.ArgumentTypeError(f"want {DIGEST_SHOWN} to 64 characters of 0-9 and a-f, as shown with the plan")
    return text
