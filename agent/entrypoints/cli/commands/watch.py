"""The watch command: supervise one server on this machine, from its first line to a verified recovery."""

import argparse
import contextlib
import re
import shlex
import shutil
import socket
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.errors import DependencyFailed, InputRejected

if TYPE_CHECKING:
    from agent.core.service.serving import ServingConfig
    from agent.entrypoints.cli.watch_run import WatchOptions
    from agent.settings import Settings

NAME_CHARS = 63
NAME_FORM = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"  # as services.toml has it
FIRST_BYTES = 4 * 2**20  # of a log: vLLM prints its arguments among the first lines


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's words."""
    add = parser.add_argument
    add("--name", metavar="N", help="name of the service (default: the served model name)")
    add("--model", metavar="M", help="the model, if the command does not name it, such as a wrapper script")
    add("--log", metavar="FILE", type=Path, help="follow the log of a server that you start yourself")
    add("--auto", action="store_true", help="apply what policy.toml calls automatic without asking for approval")
    add("--console", metavar="PORT", type=int, help="also serve the console on this port of 127.0.0.1")
    add("--quiet-server", action="store_true", help="do not echo the server's output; it is in its log file")
    add("--json", action="store_true", help="print progress as JSON Lines; the server's output goes to stderr")
    add("--once", action="store_true", help="exit when the server exits, with its exit code; never prompt")
    add(
        "--on-exit",
        choices=["leave", "stop"],
        default="leave",
        help="what SIGTERM, a closed terminal, and Ctrl-C where nobody can be asked do to the server "
        "(default: leave it running)",
    )
    add("--stop", metavar="NAME", help="stop the server of that name, wait until it has ended, and exit")
    add("command", nargs=argparse.REMAINDER, metavar="-- vllm serve ...", help="the command that starts the server")
    parser.epilog = """examples:
  sre-agent watch -- vllm serve google/gemma-4-E4B-it --max-model-len 8192
  sre-agent watch --model google/gemma-4-E4B-it --name gemma -- ./serve.sh
  sre-agent watch --once --on-exit stop --json -- vllm serve google/gemma-4-E4B-it
  sre-agent watch --log /var/log/vllm.log -- vllm serve google/gemma-4-E4B-it
  sre-agent watch --stop gemma"""


def run(args: argparse.Namespace) -> int:
    """Start or take over the server, and go on until Ctrl-C, SIGTERM or SIGHUP; or stop one.

    Returns:
        0 when the watching ended as asked; with ``--once`` the server's exit code.

    Raises:
        InputRejected: The words are no server's, or contradict one another.
        StateConflict: Another watcher has it, or a server of that name runs with other words.
        DependencyFailed: A server that was to stop has not ended.
    """
    from agent.app.operating_system import require_linux

    require_linux("the server was not watched")
    from agent.app import build_app
    from agent.app.host_environment import (
        add_service,
        config_from_args,
        host_platform,
        only_watcher,
        open_check,
        wanted_name,
    )
    from agent.app.state_lock import state_lock
    from agent.entrypoints.cli.commands.up import console_server
    from agent.entrypoints.cli.watch_run import Watch
    from agent.entrypoints.telemetry import configure_log

    _refuse_contradictions(args)
    settings = _settings(args)
    configure_log(as_json=settings.log_json, quiet=True)
    if args.stop:
        return _stop(settings, args.stop, as_json=args.json)
    words = args.command[1:] if args.command[:1] == ["--"] else args.command
    config = config_from_args(words, model=args.model) if words else _from_log(args.log)
    if words and args.log is None:
        _require_program(settings, words[0], wanted_name(config, args.name, model=args.model))
    service = add_service(settings, config, args.name, model=args.model)
    config = config.with_(accelerator=service.accelerator, accelerator_count=service.accelerator_count)
    settings = settings.with_(services=None)  # what SERVICES says of this server was written down with the others
    with state_lock(settings, shared=True), only_watcher(settings, service.name), _claimed(args.console) as held:
        app = build_app(settings)
        platform = host_platform(settings, app.clock)
        check = open_check(platform, app.clock)
        options = _options(args)
        return Watch(app, platform, check, service=service, config=config, options=options, serve=console_server).go(
            held
        )


def _refuse_contradictions(args: argparse.Namespace) -> None:
    if args.name is not None and (len(args.name) > NAME_CHARS or re.fullmatch(NAME_FORM, args.name) is None):
        raise InputRejected(
            "nothing is watched",
            why=f"--name is {args.name!r}, want 1 to {NAME_CHARS} of a-z, 0-9, '.' and '-'",
            hint="take a name such as gemma-4-31b; it begins and ends with a letter or a digit",
        )
    if args.stop and (args.command or args.log):
        raise InputRejected(
            "nothing was stopped",
            why="--stop takes a name and starts nothing",
            hint=f"say it alone: sre-agent watch --stop {args.stop}",
        )
    if args.log is not None and (args.once or args.on_exit == "stop"):
        raise InputRejected(
            f"the log {str(args.log)!r} is not followed",
            why="--once and --on-exit stop are for a server that is started here, and --log follows one that is not",
            hint="leave them out, or leave --log out",
        )


def _options(args: argparse.Namespace) -> "WatchOptions":
    from agent.entrypoints.cli.watch_run import WatchOptions

    return WatchOptions(
        ours=args.log is None,
        stop_on_exit=args.on_exit == "stop",
        once=args.once,
        quiet_server=args.quiet_server,
        as_json=args.json,
    )


def _require_program(settings: "Settings", name: str, server: str) -> None:
    """A misspelt program is a mistake in the command, and no incident; a server that runs already is taken over.

    Raises:
        InputRejected: Nothing that can be run has that name, and no server of that name was begun.
    """
    from agent.app.host_environment import is_begun

    if shutil.which(name) is None and not is_begun(settings, server):
        there = Path(name).is_file()
        raise InputRejected(
            "nothing was started",
            why=f"{name!r} is not executable" if there else f"{name!r} was not found",
            hint=f"run: chmod +x {shlex.quote(name)}" if there and "/" in name else "check the name and PATH",
        )


def _stop(settings: "Settings", name: str, *, as_json: bool) -> int:
    """Stop a server that was started here, whoever watches it."""
    from agent.app.catalogues import host_services
    from agent.app.host_environment import host_platform, started_elsewhere
    from agent.app.stores import machine_clock
    from agent.entrypoints.cli.watch_end import STOP_S, stopped
    from agent.entrypoints.cli.watch_view import PlainView

    known = [service.name for service in host_services(settings).services]
    if name not in known:
        near = get_close_matches(name, known, n=1)
        raise InputRejected(
            "nothing was stopped",
            why=f"no server was started here by the name {name!r}",
            hint=f"did you mean {near[0]!r}?" if near else f"started here: {', '.join(known) or 'none'}",
        )
    if started_elsewhere(settings, name):
        raise InputRejected(
            "nothing was stopped",
            why=f"the server {name!r} was started by somebody else, and only its log is followed",
            hint="stop it where it was started; Ctrl-C ends the watching",
        )
    platform, say = host_platform(settings, machine_clock()), PlainView(as_json=as_json, lines=sys.stdout).say
    if not stopped(platform, name):
        raise DependencyFailed(
            f"the server {name!r} has not ended within {STOP_S:.0f} s",
            why="it was asked to end and still runs",
            hint=f"say it again: sre-agent watch --stop {name}",
        )
    say(f"{name}: the server has stopped", event="stopped")
    return 0


def _claimed(port: int | None) -> "contextlib.AbstractContextManager[socket.socket | None]":
    """Take the console's port before a server is started that would go on without us."""
    if port is None:
        return contextlib.nullcontext()
    from agent.entrypoints.console.serve import claim

    return claim(port)


def _settings(args: argparse.Namespace) -> "Settings":
    from agent.entrypoints.cli.local_settings import require_local_settings
    from agent.settings import read_settings

    if args.log is not None and not args.log.is_file():
        raise InputRejected(
            f"the log {str(args.log)!r} is not followed", why="there is no such file", hint="start the server first"
        )
    found: dict[str, Any] = {"platform": "host", "unattended": args.auto, "follow_log": args.log}
    if args.console is not None:
        found["public_url"] = f"http://127.0.0.1:{args.console}"
    settings = read_settings(**found)
    require_local_settings(settings, what="nothing is watched", hint="use STORE=sqlite:<folder> and BUS=embedded")
    return settings


def _from_log(log: Path | None) -> "ServingConfig":
    """Without a command, the server's own log says what it was started with."""
    from agent.app.host_environment import with_machine_memory
    from agent.core.service.logged_config import args_from_log

    if log is None:
        raise InputRejected(
            "nothing is watched",
            why="no server command follows --",
            hint="run: sre-agent watch -- vllm serve MODEL",
        )
    with log.open("rb") as file:
        logged = args_from_log(tuple(file.read(FIRST_BYTES).decode("utf-8", "replace").splitlines()))
    if logged is None:
        raise InputRejected(
            f"the log {str(log)!r} is not followed",
            why="it does not tell what the server was started with",
            hint="give the server's command as well: sre-agent watch --log FILE -- vllm serve MODEL ...",
        )
    return with_machine_memory(logged)
