"""The completion command: a script for a shell, made from the parsers of the commands."""

import argparse

SHELLS = ("bash", "zsh", "fish")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's words."""
    parser.add_argument("shell", choices=SHELLS, help="shell to print the script for")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from agent.entrypoints.cli.completion_script import completion_script

    print(completion_script(args.shell), end="")
    return 0
