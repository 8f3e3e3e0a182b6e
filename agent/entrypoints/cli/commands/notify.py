"""The notify command: who is told of incidents, and one test message to one of them."""

import argparse
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent.entrypoints.cli.output import print_table, with_guides

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent.presentation.report.document import Table
    from agent.settings import Settings

EXAMPLES = """examples:
  sre-agent notify                     who is notified, by name
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
        if notifiers:
            print_table(_table(settings, notifiers), own=True)
        else:
            print(with_guides("nobody is notified; set up a target, see docs/notifications.md"))
        return 0
    if args.target not in notifiers:
        why = f"there is no target {args.target!r}" if args.target else "no target is named"
        hint = f"use one of: {', '.join(notifiers)}" if notifiers else "set one up: docs/notifications.md"
        raise InputRejected("no test was sent", why=why, hint=hint)
    notifiers[args.target].send_test()
    print(f"{args.target} took the test; look whether it has arrived")
    return 0


def _table(settings: "Settings", names: "Iterable[str]") -> "Table":
    """Where each goes and of what it is told; of an address its host alone, because the rest may be its secret."""
    from agent.app.channels import webhook_name
    from agent.presentation.report.document import Table

    where = {"pagerduty": ("PagerDuty", "all"), "slack": (f"Slack channel {settings.slack_channel}", "all")}
    where |= {webhook_name(url): (urlsplit(url).hostname or "-", "all") for url in settings.webhook_urls}
    where |= {f"notify-{each.name}": (each.service, ", ".join(sorted(each.events))) for each in settings.notify_targets}
    return Table(columns=("TARGET", "GOES TO", "EVENTS"), rows=tuple((name, *where[name]) for name in names), numbers=3)
