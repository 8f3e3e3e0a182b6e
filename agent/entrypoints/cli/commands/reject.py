"""The reject command: say no to exactly one plan, and why."""

import argparse

from agent.core.decision.decision import Choice


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's words."""
    parser.add_argument("plan", metavar="PLAN", help="id of the plan, as shown by: sre-agent incidents")
    parser.add_argument("--why", metavar="TEXT", required=True, help="the reason; the next plan takes it into account")
    parser.add_argument("--by", metavar="NAME", help="your name (local mode only; shown as not verified)")


def run(args: argparse.Namespace) -> int:
    """Reject the plan."""
    from agent.entrypoints.cli.decide import decide
    from agent.entrypoints.operator_client.protocol import OperatorDecision

    return decide(OperatorDecision(plan=args.plan, answer=Choice.REJECT, by=args.by, why=args.why))
