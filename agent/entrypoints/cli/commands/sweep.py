"""The sweep command: what stored load measurements say."""

import argparse

from agent.entrypoints.cli import sweep_reports

EXAMPLES = """examples:
  sre-agent sweep show DIR --slo 'ttft_p99<1s,itl_p99<50ms'
  sre-agent sweep report DIR                   write report.md, report.html and plots/ into DIR
  sre-agent sweep compare BEFORE AFTER         differences with their intervals"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's words."""
    parser.epilog = EXAMPLES
    parser.add_argument("what", choices=["show", "report", "compare"], help="what to do with stored sweeps")
    parser.add_argument("folders", nargs="*", metavar="DIR", help="folder of a sweep, as --out named it")
    sweep_reports.add_report_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON only")


def run(args: argparse.Namespace) -> int:
    """Show, report or compare.

    Returns:
        0.

    Raises:
        InputRejected: A folder holds no sweep, or the target is none.
        PolicyRefused: The sweeps to compare are unlike.
    """
    if args.what == "compare":
        return sweep_reports.compare(args.folders, anyway=args.anyway, as_json=args.json)
    act = sweep_reports.show if args.what == "show" else sweep_reports.report
    return act(args.folders, slo=args.slo, as_json=args.json)
