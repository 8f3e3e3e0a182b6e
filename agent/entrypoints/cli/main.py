"""The command line: names the commands, imports one when it is called, turns errors into exit codes."""

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from io import TextIOWrapper
from typing import Final

from agent.entrypoints.cli.command_table import COMMANDS, EXIT_CODES, did_you_mean, load_command, parser_of
from agent.entrypoints.cold_start import loading
from agent.errors import DISTRIBUTION, SreError

_HELP = frozenset({"-h", "--help", "help"})
_GC_THRESHOLDS: Final = (10_000, 20, 50)
"""When the garbage collector runs in a command's process; Python's defaults cost a twelfth of reading a long log."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The arguments after the program's name; those of the process when None.

    Returns:
        The exit code of the contract: 0 success, 1 the check failed, 2 bad input, 3 a dependency failed.
    """
    _print_what_can_be_printed()
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"] and len(words) > 1:
        words = [words[1], "--help"]
    if not words or words[0] in _HELP:
        print(usage())
        return 0 if words else 2
    if words[0] in {"-V", "--version"}:
        from importlib.metadata import version

        print(f"sre-agent {version(DISTRIBUTION)}")
        return 0
    return _run(words[0], words[1:], own_process=argv is None) if words[0] in COMMANDS else _unknown(words[0])


def _unknown(name: str) -> int:
    from agent.entrypoints.cli.output import message

    near = did_you_mean(name, tuple(COMMANDS))
    more = "" if near else f"\n\n{usage()}"
    hint = near or "name one of these commands"
    print(f"sre-agent: nothing was done: unknown command: {message(name)}. Hint: {hint}{more}", file=sys.stderr)
    return 2


def _run(name: str, words: Sequence[str], *, own_process: bool) -> int:
    """Run a command, in a process of its own or within another program."""
    with loading() if own_process else nullcontext():
        command, parser = load_command(name), parser_of(name)
    if own_process:
        gc.set_threshold(*_GC_THRESHOLDS)
    try:
        return command.run(parser.parse_args(words))
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


def _print_what_can_be_printed() -> None:
    """A terminal without our letters shows question marks; it ends no command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def usage() -> str:
    """The help page: every command with one line."""
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {line}" for name, line in COMMANDS.items())
    more = "Run 'sre-agent help COMMAND' for the arguments and the examples of a command."
    return f"usage: sre-agent COMMAND [ARGUMENT ...]\n\ncommands:\n{rows}\n\n{EXIT_CODES}\n\n{more}"


if __name__ == "__main__":
    sys.exit(main())
