"""sre-agent doctor: every setting, permission and dependency, one line each: good, or what to do."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from datetime import UTC, datetime

from agent.entrypoints.cli.output import for_programs, message


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's flag."""
    parser.add_argument("--json", action="store_true", help="print JSON Lines only")


def run(args: argparse.Namespace) -> int:
    """Look at everything; nothing is changed, and nothing that sleeps is woken.

    Returns:
        0: nothing is wrong; 2: a setting or a file that one names is, whatever else is; 3: a dependency failed. What
        could not be looked at is told and changes none of this.
    """
    from agent.app.google_capacity import cloud_access_token
    from agent.entrypoints.cli.doctor.all_checks import findings
    from agent.entrypoints.cli.doctor.finding import State

    environ = dict(os.environ)  # noqa: TID251 - the doctor reads the settings again without those that are wrong
    found: Counter[tuple[State, bool]] = Counter()
    unseen: list[str] = []
    for finding in findings(environ, now=datetime.now(UTC), token=cloud_access_token):  # noqa: TID251 - a process of its own
        found[finding.state, finding.given] += 1
        unseen += [finding.check] if finding.state is State.UNKNOWN else []
        print(for_programs(finding.model_dump(mode="json")) if args.json else message(finding.line))
        sys.stdout.flush()
    given, failed = found[State.BAD, True], found[State.BAD, False]
    summary = f"{given + failed} to fix" if given + failed else "no problem found"
    print(f"{summary}; not checked: {', '.join(unseen)}" if unseen else summary, file=sys.stderr)
    return 2 if given else 3 if failed else 0
