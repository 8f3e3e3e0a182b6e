"""The stop command: turn the kill switch on or off, or say how it stands."""

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the words."""
    parser.add_argument(
        "--why", metavar="TEXT", help="turn the kill switch on, with the reason: no change is made, roll-backs included"
    )
    parser.add_argument("--off", action="store_true", help="turn the kill switch off: allow changes again")
    parser.add_argument("--by", metavar="NAME", help="your name (local mode only; shown as not verified)")


def run(args: argparse.Namespace) -> int:
    """Turn the switch in the control store; without words only say how it stands.

    Raises:
        InputRejected: On and off at once.
        DependencyFailed: The store did not answer; the switch stands as it was.
    """
    from agent.entrypoints.operator_client.local import open_operator_client
    from agent.errors import InputRejected

    if args.off and args.why is not None:
        raise InputRejected(
            "the kill switch was not changed", why="--off and --why contradict each other", hint="give one of them"
        )
    client = open_operator_client()
    turned = args.off or args.why is not None  # whoever gives an empty reason means to stop
    stands = client.turn(on=not args.off, by=args.by, why=args.why or "") if turned else client.kill_switch()
    off = "the kill switch is off: approved plans are applied"
    hint = "" if turned else "; to stop every change: sre-agent stop --why TEXT"
    print(_said(stands.says) if stands.on else off + hint)
    return 0


def _said(stopped: str) -> str:
    from agent.core.text.safe_text import terminal

    more = "no change is made, roll-backs included; to allow changes again: sre-agent stop --off"
    return terminal(f"{stopped}: {more}", lines=False)
