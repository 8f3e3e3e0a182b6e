"""The approve command: say yes to exactly one plan."""

import argparse

from agent.core.decision.decision import Answer


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's words."""
    parser.add_argument("plan", metavar="PLAN", help="the plan's id, as shown by: sre-agent incidents")
    parser.add_argument("--by", metavar="NAME", help="who decides (local mode only; shown as not verified)")


def run(args: argparse.Namespace) -> int:
    """Approve the plan."""
    from agent.entrypoints.cli.deciding import decide

    return decide(args.plan, Answer.APPROVE, by=args.by)
