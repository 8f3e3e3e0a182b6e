"""The flags of one question "does it fit" and its numbers, for the commands that ask it."""

import argparse
from typing import Final

from agent.errors import InputRejected
from agent.fit.question import ARGUMENTS

_SHOWN: Final = {"model": "M", "accelerator": "A", "flags": "TEXT", "vllm": "V"}


def add_question(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add them.

    Args:
        parser: Of the command.
        required: Whether model and accelerator must be given, as where no file of questions can be.
    """
    for name, says in ARGUMENTS.items():
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            metavar=_SHOWN.get(name, "N"),
            help=says,
            default="" if name == "flags" else None,
            required=required and name in {"model", "accelerator"},
        )


def positive(name: str, value: float | None) -> float | None:
    """Return a number of an argument, or None where it was left out.

    Raises:
        InputRejected: It is 0 or less, or no finite number.
    """
    if value is not None and not 0 < value < float("inf"):
        raise InputRejected(f"{name} {value!r} was refused", why="it must be above 0", hint="leave it out or raise it")
    return value
