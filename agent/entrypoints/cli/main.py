"""The command line: names the commands, imports one when it is called, turns errors into exit codes."""

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from agent.errors import SreError

COMMANDS = {
    "up": "the whole service in this process, with its console",
    "replay": "take recorded events through the whole path",
    "classify": "what broke, record by record",
    "fit": "does this model fit this accelerator with these flags",
    "advise": "ranked changes that fit, each with fit report and cost",
    "models": "model profiles: add one from its checkpoint, list, show",
    "incidents": "incidents: list, show, timeline",
    "approve": "approve a plan",
    "reject": "reject a plan, and say why",
    "eval": "accuracy by class against a labelled corpus",
    "watch": "supervise a local vLLM server",
    "stop": "the kill switch: stop every change, or let them go on",
    "audit": "the record of decisions and effects: show, verify",
    "doctor": "check every setting, permission and dependency",
}


class Command(Protocol):
    """A module in ``entrypoints/cli/commands``."""

    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:  # noqa: PLR0911 - one return for each way a command ends
    """Run one command.

    Args:
        argv: The words after the program's name; the process's own when None.

    Returns:
        The exit code of the contract: 0 done, 1 the check failed, 2 bad input, 3 a dependency failed.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in {"-h", "--help"}:
        print(usage())
        return 0 if words else 2
    if words[0] == "--version":
        from importlib.metadata import version

        print(f"sre-agent {version('sre-agent')}")
        return 0
    name = words[0]
    if name not in COMMANDS:
        print(f"sre-agent: no command {name!r}\n\n{usage()}", file=sys.stderr)
        return 2
    command = cast("Command", importlib.import_module(f"agent.entrypoints.cli.commands.{name}"))
    parser = argparse.ArgumentParser(prog=f"sre-agent {name}", description=COMMANDS[name])
    command.configure(parser)
    try:
        return command.run(parser.parse_args(words[1:]))
    except SreError as error:
        from agent.entrypoints.cli.output import message

        print(f"sre-agent {name}: {message(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our pipe has had enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def usage() -> str:
    """The help page: every command with one line."""
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {line}" for name, line in COMMANDS.items())
    return f"usage: sre-agent COMMAND [...]\n\n{rows}\n\nsre-agent COMMAND --help tells more."


if __name__ == "__main__":
    sys.exit(main())
