"""What an ExecStart means: variables that env sets, what serves (program or container), and the server's words."""

from itertools import pairwise
from typing import Final

from pydantic import Field

from agent.adapters.platform.host.describe import HIDDEN, program_words
from agent.core.service.serving import EnvVar
from agent.core.value import Value
from agent.errors import InputRejected

ENV: Final = "/usr/bin/env"
KEPT_IN: Final = "environment of the unit"  # where a value is that stays on the instance
_ENGINES: Final = frozenset({"docker", "podman", "nerdctl"})
_SWITCHES: Final = frozenset(
    {"-d", "-i", "-t", "-it", "-ti", "-P", "-q", "--detach", "--rm", "--interactive", "--tty", "--init", "--privileged"}
    | {"--read-only", "--no-healthcheck", "--publish-all", "--oom-kill-disable", "--quiet", "--replace"}
)
"""Options of docker run without a value: https://docs.docker.com/reference/cli/docker/container/run (2026-11-22)."""


class CommandLine(Value):
    """An ExecStart, taken apart.

    Attributes:
        sets: What ``/usr/bin/env`` in front of it sets.
        removes: What that removes.
        front: Program, or container engine with its options and the image.
        args: The server's own words.
        image: Of the container; empty where a program serves.
    """

    sets: dict[str, str] = Field(default_factory=dict)
    removes: tuple[str, ...] = ()
    front: tuple[str, ...]
    args: tuple[str, ...]
    image: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The whole again."""
        changed = [w for name in self.removes for w in ("-u", name)] + [f"{n}={v}" for n, v in self.sets.items()]
        return (*((ENV, *changed) if changed else ()), *self.front, *self.args)


def parsed(words: tuple[str, ...]) -> CommandLine:
    """Take an ExecStart apart.

    Raises:
        InputRejected: It starts no server that we know.
    """
    sets, removes, rest = _variables(words)
    if not rest:
        raise _unread("it starts nothing")
    if rest[0].rsplit("/", 1)[-1] in _ENGINES:
        split = _image(rest)
        return CommandLine(sets=sets, removes=removes, front=rest[:split], args=rest[split:], image=rest[split - 1])
    if len(rest) < 2:
        raise _unread(f"{rest[0]!r} alone starts a server whose flags nobody knows")
    split = program_words(rest)
    return CommandLine(sets=sets, removes=removes, front=rest[:split], args=rest[split:])


def environment(line: CommandLine, reported: list[list[str | None]]) -> tuple[EnvVar, ...]:
    """Return the server's variables: of the unit and of env, or of a container its own.

    Args:
        line: The command.
        reported: Name and value of the unit's variables; None for a secret.
    """
    if line.image:
        return tuple(_variable(n, v) for n, v in _container_variables(line.front))
    found = {str(name): _variable(str(name), value) for name, value in reported if name not in line.removes}
    found |= {name: EnvVar(name=name, value=value) for name, value in line.sets.items()}
    return tuple(found.values())


def with_environment(line: CommandLine, reported: list[list[str | None]], wanted: tuple[EnvVar, ...]) -> CommandLine:
    """Return the command under which the server has those variables.

    Raises:
        InputRejected: A container's variables are options of its engine, and a secret cannot be set.
    """
    if wanted == environment(line, reported):
        return line
    if line.image:
        raise InputRejected(
            "the change was refused",
            why="the variables of a container are options of its engine",
            hint="set them in the unit by hand (--env NAME=VALUE)",
        )
    own = {str(name): value for name, value in reported}
    names = {e.name for e in wanted}
    sets = {e.name: e.value for e in wanted if e.value is not None and own.get(e.name) != e.value}
    return line.with_(sets=sets, removes=tuple(name for name in own if name not in names))


def _variables(words: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...], tuple[str, ...]]:
    if words[:1] not in {(ENV,), ("env",)}:
        return {}, (), words
    sets: dict[str, str] = {}
    removes: list[str] = []
    at = 1
    while at < len(words):
        name, equals, value = words[at].partition("=")
        if words[at] == "-u" and at + 1 < len(words):
            removes.append(words[at + 1])
            at += 2
        elif equals and name.isidentifier():
            sets[name] = value
            at += 1
        else:
            break
    return sets, tuple(removes), words[at:]


def _image(words: tuple[str, ...]) -> int:
    """How many words run the container: engine, ``run``, options, image."""
    if words[1:2] == ("run",):
        at = 2
    elif words[1:3] == ("container", "run"):
        at = 3
    else:
        raise _unread(f"{' '.join(words[:3])!r} does not say what the container runs: want docker run ... IMAGE FLAGS")
    while at < len(words) and words[at].startswith("-"):
        at += 1 if "=" in words[at] or words[at] in _SWITCHES else 2
    if at >= len(words):
        raise _unread("no image stands in it")
    return at + 1


def _container_variables(front: tuple[str, ...]) -> list[tuple[str, str | None]]:
    given = [b for a, b in pairwise(front) if a in {"-e", "--env"}]
    given += [w.partition("=")[2] for w in front if w.startswith("--env=")]
    rows = [word.partition("=") for word in given]
    return [(n, None if not equals or any(h in n.upper() for h in HIDDEN) else value) for n, equals, value in rows]


def _variable(name: str, value: str | None) -> EnvVar:
    return EnvVar(name=name, secret=KEPT_IN) if value is None else EnvVar(name=name, value=value)


def _unread(why: str) -> InputRejected:
    return InputRejected(
        "the unit's ExecStart was not read", why=why, hint="let it start vllm serve with its flags as words"
    )
