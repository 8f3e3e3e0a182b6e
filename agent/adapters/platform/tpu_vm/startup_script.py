"""A startup script of somebody else: what its one ``docker run`` starts, read and never changed."""

import re
import shlex
from dataclasses import dataclass
from typing import Final

from agent.adapters.platform.host.describe import HIDDEN
from agent.core.service.serving import EnvVar, ServingConfig

TAKES_WORD: Final = frozenset(
    {
        "--name", "--network", "--net", "--shm-size", "--volume", "-v", "--mount", "--publish", "-p", "--restart",
        "--memory", "-m", "--ulimit", "--device", "--log-driver", "--log-opt", "--label", "-l", "--workdir", "-w",
        "--user", "-u", "--ipc", "--pull", "--hostname", "-h", "--env-file", "--cap-add", "--security-opt",
    }
)  # fmt: skip
ALONE: Final = frozenset({"--rm", "--privileged", "--detach", "--init", "--interactive", "--tty"})
SHORT: Final = re.compile(r"-[dit]+")
_RUN: Final = re.compile(r"(?<![\w-])docker[ \t]+(?:container[ \t]+)?run[ \t]")
_COMMENT: Final = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_SHELL: Final = re.compile(r"[$`*?~]|\\")


@dataclass(frozen=True, kw_only=True)
class DockerRun:
    """What a script starts.

    Attributes:
        config: Empty where it cannot be read surely.
        says: What that means for us.
    """

    config: ServingConfig
    says: str


class _Unread(Exception):
    """The script hides what it starts."""


def docker_run(script: str) -> DockerRun:
    """Return what a script starts, as far as its words stand there plainly."""
    if not script:
        return DockerRun(config=ServingConfig(), says="the node has no startup script, so nobody knows what it runs")
    try:
        config = _config(_words(script))
    except (_Unread, ValueError) as error:
        says = f"the startup script is not the agent's, and what it runs cannot be read: {error}"
        return DockerRun(config=ServingConfig(), says=says)
    says = "the startup script is not the agent's: its flags are read, changes of it are for a person"
    return DockerRun(config=config, says=says)


def _words(script: str) -> list[str]:
    joined = _COMMENT.sub("", script).replace("\\\n", " ")
    found = list(_RUN.finditer(joined))
    if len(found) != 1:
        raise _Unread(f"it says docker run {len(found)} times, want once")
    line = joined[found[0].end() :].split("\n", 1)[0]
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word[0] in "();<>|&":
            break
        words.append(word)
    return words


def _config(words: list[str]) -> ServingConfig:
    env: list[EnvVar] = []
    command: tuple[str, ...] = ()
    rest = list(words)
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        if name in {"-e", "--env", "--entrypoint", *TAKES_WORD} and not equals:
            value = rest.pop(0) if rest else ""
        elif name not in {"--env", "--entrypoint", *TAKES_WORD, *ALONE} and not SHORT.fullmatch(name):
            raise _Unread(f"docker run has an option {name!r} that is not known here")
        if name in {"-e", "--env"}:
            env.append(_variable(value))
        if name == "--entrypoint":
            command = (value,)
    if not rest:
        raise _Unread("docker run names no image")
    hidden = next((word for word in (*command, *rest) if _SHELL.search(word)), None)
    if hidden is not None:
        raise _Unread(f"the shell fills in {hidden[:60]!r}")
    return ServingConfig(image=rest[0], command=command, args=tuple(rest[1:]), env=tuple(env), max_instances=1)


def _variable(text: str) -> EnvVar:
    name, equals, value = text.partition("=")
    if not equals or _SHELL.search(value) or any(part in name.upper() for part in HIDDEN):
        return EnvVar(name=name, secret="startup script")  # noqa: S106 - says where it comes from
    return EnvVar(name=name, value=value)
