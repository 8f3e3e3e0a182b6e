"""The command line: names the commands, imports one when it is called, turns errors into exit codes."""

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol, cast

from agent.errors import SreError

COMMANDS = {
    "up": "Run the whole service in this process, with its console.",
    "replay": "Send recorded events through the whole pipeline.",
    "classify": "Classify log records: what broke, one result per record.",
    "fit": "Check whether a model fits an accelerator with the given vLLM flags.",
    "advise": "Rank the configuration changes that make a model fit, each with its cost.",
    "models": "Add, list and show model profiles.",
    "cost": "Price a model per platform: USD per hour, per month, per million tokens.",
    "calibration": "List, add or remove what was measured here, and see which ranges rest on it.",
    "services": "List the watched services, show one, or show what differs from what was declared.",
    "incidents": "List, show and report incidents; acknowledge, assign, comment, close, roll back.",
    "change": "Ask for a change of a service; people approve it like any other plan.",
    "approve": "Approve a plan.",
    "reject": "Reject a plan and give the reason.",
    "policy": "Explain row by row why the policy allows a change or not.",
    "eval": "Measure accuracy by failure class against a labelled corpus.",
    "watch": "Start or attach to a vLLM server on this machine and watch it.",
    "sweep": "Measure a server under load; show, report or compare what was measured.",
    "stop": "Show, turn on or turn off the kill switch, which stops every change.",
    "audit": "Show or verify the record of decisions and effects.",
    "notify": "List who is told of incidents, or send one of them a test.",
    "mcp": "Serve operator tools to AI clients; they read, and propose what a person decides.",
    "doctor": "Check every setting, permission and dependency.",
}
EXIT_CODES = """exit codes:
  0  success
  1  the check failed, such as: the model does not fit, or an incident is still open
  2  invalid input or settings, or the policy refuses the action
  3  a dependency failed"""


class Command(Protocol):
    """A module in ``entrypoints/cli/commands``."""

    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in the arguments in our words."""

    def error(self, message: str) -> NoReturn:
        super().error(message.replace("unrecognized arguments:", "unknown argument:"))


def main(argv: Sequence[str] | None = None) -> int:  # noqa: PLR0911 - one return for each way a command ends
    """Run one command.

    Args:
        argv: The arguments after the program's name; those of the process when None.

    Returns:
        The exit code of the contract: 0 success, 1 the check failed, 2 bad input, 3 a dependency failed.
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
        print(f"sre-agent: unknown command: {name}\n\n{usage()}", file=sys.stderr)
        return 2
    command = cast("Command", importlib.import_module(f"agent.entrypoints.cli.commands.{name}"))
    parser = _Parser(prog=f"sre-agent {name}", description=COMMANDS[name])
    command.configure(parser)
    _add_exit_codes(parser)
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


def _add_exit_codes(parser: argparse.ArgumentParser) -> None:
    """Put the exit codes below the command's own examples."""
    parser.epilog = f"{parser.epilog}\n\n{EXIT_CODES}" if parser.epilog else EXIT_CODES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def usage() -> str:
    """The help page: every command with one line."""
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {line}" for name, line in COMMANDS.items())
    more = "Run 'sre-agent COMMAND --help' for the arguments of a command."
    return f"usage: sre-agent COMMAND [ARGUMENT ...]\n\ncommands:\n{rows}\n\n{EXIT_CODES}\n\n{more}"


if __name__ == "__main__":
    sys.exit(main())
