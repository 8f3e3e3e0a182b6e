"""The notify command: who is told of incidents, and one test message to one of them."""

import argparse

EXAMPLES = """examples:
  sre-agent notify                     who is told, by name
  sre-agent notify test pagerduty      open an alert of severity info there and resolve it"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the words."""
    parser.add_argument("what", nargs="?", choices=["list", "test"], default="list", help="default: list")
    parser.add_argument("target", nargs="?", metavar="TARGET", help="the name that the list shows")
    parser.epilog = EXAMPLES


def run(args: argparse.Namespace) -> int:
    """List the targets, or send one of them a test; nobody is told of an incident.

    Raises:
        InputRejected: No such target, or none is named.
        DependencyFailed: The test was not taken.
    """
    from agent.app.catalogues import read_services
    from agent.app.channels import open_notifiers
    from agent.app.stores import machine_clock
    from agent.errors import InputRejected
    from agent.settings import read_settings

    settings = read_settings()
    notifiers = open_notifiers(settings, machine_clock(), lambda _: None, read_services(settings))
    if args.what == "list":
        print("\n".join(notifiers) or "nobody is told: see docs/notifications.md")
        return 0
    if args.target not in notifiers:
        why = f"there is no target {args.target!r}" if args.target else "no target is named"
        hint = f"use one of: {', '.join(notifiers)}" if notifiers else "set one up: docs/notifications.md"
        raise InputRejected("no test was sent", why=why, hint=hint)
    notifiers[args.target].send_test()
    print(f"{args.target} took the test; look whether it has arrived")
    return 0
