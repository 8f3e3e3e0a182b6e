"""The stop command: turn the kill switch on or off, or say how it stands."""

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the words."""
    parser.add_argument("--why", metavar="TEXT", help="stop every change from now on, and say why")
    parser.add_argument("--off", action="store_true", help="allow changes again")
    parser.add_argument("--by", metavar="NAME", help="who does it (local mode only; shown as not verified)")


def run(args: argparse.Namespace) -> int:
    """Turn the switch in the control store; without words only say how it stands.

    Raises:
        InputRejected: On and off at once.
        DependencyFailed: The store did not answer; the switch stands as it was.
    """
    from agent.entrypoints.cli.local_client import open_operator_client
    from agent.errors import InputRejected

    if args.off and args.why is not None:
        raise InputRejected("the kill switch was not turned", why="--off and --why say both", hint="give one of them")
    client = open_operator_client()
    turned = args.off or args.why is not None  # whoever gives an empty reason means to stop
    stands = client.turn(on=not args.off, by=args.by, why=args.why or "") if turned else client.kill_switch()
    off = "the kill switch is off: what is approved is applied"
    hint = "" if turned else "; to stop every change: sre-agent stop --why TEXT"
    print(_said(stands.by, stands.why) if stands.on else off + hint)
    return 0


def _said(by: str, why: str) -> str:
    from agent.core.text.safe_text import terminal

    said = f"the kill switch is on (by {by or 'somebody'}: {why or 'no reason given'})"
    more = "nothing is changed, roll-backs included; to allow changes again: sre-agent stop --off"
    return terminal(f"{said}: {more}", lines=False)
