"""A completion script from the parsers of the commands: commands, their flags, and the values of both."""

import argparse
from collections.abc import Mapping
from typing import NamedTuple

from agent.entrypoints.cli.command_table import COMMANDS, parser_of


class Words(NamedTuple):
    """What may follow a command.

    Attributes:
        flags: With the help of each.
        values: By flag, the values that it takes, where they are a closed list; empty where it takes any.
        first: The values of the first argument, where they are a closed list.
    """

    flags: Mapping[str, str]
    values: Mapping[str, tuple[str, ...]]
    first: tuple[str, ...]


def words_of(name: str) -> Words:
    """Return what may follow a command, as its parser has it."""
    if name == "help":
        return Words(flags={}, values={}, first=tuple(COMMANDS))
    flags: dict[str, str] = {}
    values: dict[str, tuple[str, ...]] = {}
    first: tuple[str, ...] | None = None
    for action in parser_of(name)._actions:  # noqa: SLF001 - argparse has no public way to read them
        if not action.option_strings:
            first = _choices(action) if first is None else first
            continue
        if action.help == argparse.SUPPRESS:
            continue
        for flag in (flag for flag in action.option_strings if flag.startswith("--")):
            flags[flag] = (action.help or "").partition(";")[0].partition(" (")[0].replace("%%", "%")
            if action.nargs != 0:
                values[flag] = _choices(action)
    return Words(flags=flags, values=values, first=first or ())


def completion_script(shell: str) -> str:
    """Return the script; it runs nothing of ours while it completes.

    Args:
        shell: ``bash``, ``zsh`` or ``fish``.
    """
    table = {name: words_of(name) for name in (*COMMANDS, "help")}
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](table)


def _choices(action: argparse.Action) -> tuple[str, ...]:
    return tuple(map(str, action.choices)) if action.choices is not None else ()


def _bash(table: Mapping[str, Words]) -> str:
    cases = []
    for name, words in table.items():
        values = "".join(
            f"        {name},{flag}) words='{' '.join(choices)}'; {'files=1' if not choices else 'files='} ;;\n"
            for flag, choices in words.values.items()
        )
        cases.append(f"{values}        {name},*) words='{' '.join((*words.first, *words.flags))}'; files=1 ;;\n")
    return f"""# bash completion of sre-agent
_sre_agent() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words= files=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words='{" ".join((*table, "--help", "--version"))}'
    else
        case "${{COMP_WORDS[1]}},$before" in
{"".join(cases)}        esac
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [ -n "$files" ] && [ "${{current#-}}" = "$current" ]; then
        COMPREPLY+=($(compgen -f -- "$current"))
    fi
}}
complete -o filenames -F _sre_agent sre-agent
"""


def _zsh(table: Mapping[str, Words]) -> str:
    commands = "\n".join(f"        {_quoted(f'{name}:{_about(name)}')}" for name in table)
    cases = []
    for name, words in table.items():
        flags = [
            f"{flag}[{_plain(text)}]" + (f":value:({' '.join(words.values[flag])})" if words.values.get(flag) else "")
            + (":value:_files" if flag in words.values and not words.values[flag] else "")
            for flag, text in words.flags.items()
        ]  # fmt: skip
        rest = f"1:what:({' '.join(words.first)})" if words.first else "*:file:_files"
        cases.append(f"        {name}) _arguments {' '.join(map(_quoted, [*flags, rest]))} ;;")
    return f"""#compdef sre-agent
_sre_agent() {{
    local -a commands
    commands=(
{commands}
    )
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local name=$words[2]
    shift words
    (( CURRENT-- ))
    case $name in
{chr(10).join(cases)}
    esac
}}
if [ "$funcstack[1]" = _sre-agent ]; then _sre_agent "$@"; else compdef _sre_agent sre-agent; fi
"""


def _fish(table: Mapping[str, Words]) -> str:
    lines = ["# fish completion of sre-agent"]
    for name, words in table.items():
        lines.append(f"complete -c sre-agent -n __fish_use_subcommand -f -a {_quoted(name)} -d {_quoted(_about(name))}")
        seen = f"complete -c sre-agent -n {_quoted(f'__fish_seen_subcommand_from {name}')}"
        if words.first:
            lines.append(f"{seen} -f -a {_quoted(' '.join(words.first))}")
        for flag, text in words.flags.items():
            takes = " -r" if flag in words.values else ""
            values = f" -f -a {_quoted(' '.join(words.values[flag]))}" if words.values.get(flag) else ""
            lines.append(f"{seen} -l {flag[2:]}{takes}{values} -d {_quoted(text)}")
    return "\n".join(lines) + "\n"


def _about(name: str) -> str:
    return COMMANDS.get(name, "Show the help of a command.")


def _plain(text: str) -> str:
    """Take out what zsh reads in a description."""
    return "".join(" " if sign in "[]:\\'\"`$" else sign for sign in text)


def _quoted(text: str) -> str:
    """Return a word in single quotes, as all three shells read it."""
    return "'" + text.replace("'", " ") + "'"
