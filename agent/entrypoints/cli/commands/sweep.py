"""The sweep command: measure a server under load, and say what stored measurements say."""

import argparse

from agent.entrypoints.cli import sweep_reports
from agent.entrypoints.cli.sweep_arguments import add_run_arguments

EXAMPLES = """examples:
  sre-agent sweep --service gemma --concurrency 1,4,16 --context 1k,8k
  sre-agent sweep --url http://127.0.0.1:8000 --model google/gemma-3-270m --accelerator cpu --flags '--max-num-seqs 8'
  sre-agent sweep approve DIR                  allow a sweep that loads a service
  sre-agent sweep show DIR --slo 'ttft_p99<1s,itl_p99<50ms'
  sre-agent sweep report DIR                   write report.md, report.html and plots/ into DIR
  sre-agent sweep compare BEFORE AFTER         differences with their intervals"""
STORED = ("approve", "show", "report", "compare")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's words."""
    parser.epilog = EXAMPLES
    parser.add_argument("what", nargs="?", choices=STORED, help="what to do with a stored sweep (default: measure one)")
    parser.add_argument("folders", nargs="*", metavar="DIR", help="folder of a sweep, as --out named it")
    sweep_reports.add_report_arguments(parser)
    add_run_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print JSON only")


def run(args: argparse.Namespace) -> int:
    """Measure, approve, show, report or compare.

    Returns:
        0; of a measurement see :func:`agent.entrypoints.cli.sweep_run.run`.

    Raises:
        InputRejected: A folder holds no sweep, or what was asked cannot be read.
        PolicyRefused: The sweeps to compare are unlike, or no load may be sent.
        DependencyFailed: The server, the load generator or the disk failed.
    """
    if args.what is None or args.what == "approve":
        from agent.entrypoints.cli import sweep_approval, sweep_run

        if args.what is None:
            return sweep_run.run(args)
        return sweep_approval.approve(
            sweep_run.open_app(), args.folders, by=args.by, shown_id=args.id, as_json=args.json
        )
    if args.what == "compare":
        return sweep_reports.compare(args.folders, anyway=args.anyway, as_json=args.json)
    act = sweep_reports.show if args.what == "show" else sweep_reports.report
    return act(args.folders, slo=args.slo, as_json=args.json)
