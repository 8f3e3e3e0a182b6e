"""The up command: the whole service in this process, with its console on this machine."""

import argparse
import signal
import socket
import sys
import threading
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.app import App
    from agent.entrypoints.console.server import ConsoleServer
    from agent.ports.cluster import Leadership
    from agent.settings import Settings

THREADS = 4
LOOPBACK = "127.0.0.1"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the contract's words."""
    parser.add_argument("--port", type=int, default=8080, help="port of the console (default 8080)")
    parser.add_argument(
        "--bind",
        metavar="ADDRESS",
        help="address of the console (default: BIND, else 127.0.0.1); elsewhere decisions need a verified identity",
    )
    parser.add_argument(
        "--lease",
        metavar="NAMESPACE/NAME",
        help="work only while this process holds this Kubernetes Lease; other replicas stand by (default: LEASE)",
    )
    parser.add_argument(
        "--example", metavar="NAME", help="rehearse a recorded incident: the name of a bundled one, or a folder"
    )
    parser.add_argument(
        "--pair-databases",
        action="store_true",
        help="after a database was lost: accept the two databases as they are; turns the kill switch on",
    )
    parser.add_argument(
        "--verbose", action="store_true", help="log each step as a line (the default when this is not a terminal)"
    )
    parser.add_argument("--rehearse-by-fit", action="store_true", help=argparse.SUPPRESS)  # is the default by now


def run(args: argparse.Namespace) -> int:
    """Start everything and go on until Ctrl-C or SIGTERM.

    Raises:
        InputRejected: The port or the example cannot be used, or the settings are of the cloud.
        StateConflict: Another process works on the state folder.
        PolicyRefused: The two databases do not belong together.
        DependencyFailed: The state cannot be opened.
    """
    from agent.app.operating_system import require_unix

    require_unix("the service was not started")
    from agent.app.required_extras import require_extras
    from agent.app.state_lock import state_lock
    from agent.entrypoints.cli.local_settings import require_local_settings
    from agent.entrypoints.console.serve import claim
    from agent.entrypoints.telemetry import configure_log
    from agent.settings import read_settings

    given = read_settings()
    require_local_settings(
        given,
        what="nothing was started",
        hint="unset them for a service on this machine; the cloud's is deployed with ./deploy.sh apply",
    )
    args.bind = args.bind or given.bind
    if args.example:
        args.example = _example(args.example)
    with claim(args.port, args.bind) as held:
        settings = read_settings(**_overrides(args, held.getsockname()[1]))
        require_extras(settings)
        configure_log(as_json=settings.log_json)
        stopping = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopping.set())
        with ExitStack() as stack:
            lease = settings.lease
            leadership = _lead(lease, settings, held, stopping, stack) if lease else None
            if lease is None:
                stack.enter_context(state_lock(settings))
            return 0 if stopping.is_set() else _serve(args, settings, held, stopping, leadership)


def _example(name: str) -> Path:
    from agent.entrypoints.cli.replay_source import found_example
    from agent.errors import InputRejected
    from agent.settings import EXAMPLES

    if folder := found_example(name):
        return folder
    names = ", ".join(sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir()))
    raise InputRejected(
        f"--example {name!r} was not rehearsed",
        why="it is no recorded incident: a folder with services.toml and events.jsonl",
        hint=f"name one of {names}",
    )


def _lead(
    lease: str, settings: "Settings", held: socket.socket, stopping: threading.Event, stack: ExitStack
) -> "Leadership":
    """Wait until this replica leads and its predecessor has left the state folder.

    Meanwhile the port says that it is well and waits. A predecessor that was only paused leaves when it notices.
    """
    from agent.app.cluster_access import open_leadership, own_api
    from agent.app.state_lock import state_lock
    from agent.app.stores import machine_clock
    from agent.entrypoints.console.serve import local_server, standby
    from agent.errors import StateConflict

    leadership = open_leadership(own_api(settings), lease, machine_clock())
    server = local_server(standby, at=held)
    threading.Thread(target=server.serve_forever, name="standby", daemon=True).start()
    print(f"waiting for the lease {lease}", file=sys.stderr)
    if leadership.hold(stopping):
        stack.callback(leadership.release)
        leadership.when_lost(stopping.set)
        with suppress(StateConflict):  # we were told to stop, or lost the Lease, while another process held the folder
            stack.enter_context(state_lock(settings, wait_until=stopping))
    server.shutdown()
    return leadership


def _serve(
    args: argparse.Namespace,
    settings: "Settings",
    held: socket.socket,
    stopping: threading.Event,
    leadership: "Leadership | None",
) -> int:
    from agent.app import Role, build_app
    from agent.app.console_address import note_console
    from agent.app.leading_platform import leading
    from agent.app.tracing import open_tracer
    from agent.entrypoints.monitor.cluster_monitor import ClusterMonitor
    from agent.entrypoints.service import Ticker, handlers, read_example

    app = build_app(settings, tracer=open_tracer(settings, Role.SERVICE))
    if sys.stderr.isatty() and not args.verbose and not settings.log_json:
        _tell_the_story(app)
    if leadership is not None:
        environment = replace(app.environment, platform_of=leading(app.environment.platform_of, leadership.leads))
        app = replace(app, environment=environment)
    _check_databases(app, anew=args.pair_databases)
    server = console_server(app, held)
    pool = app.worker(handlers(app), threads=THREADS)
    ticker = Ticker(app, every_s=max(app.rules.times.poll_s / 2, 0.2))
    monitors = [
        ClusterMonitor(app, at.follower, at.services, folder=settings.state, logs=at.logs)
        for at in app.environment.clusters
    ]
    threading.Thread(target=server.serve_forever, name="console", daemon=True).start()
    note_console(settings)
    _greet(held.getsockname()[:2], app)  # before the workers, whose log would run into its lines
    if args.example:
        read_example(app, args.example)
    pool.start()
    ticker.tick()
    ticker.start()
    for monitor in monitors:
        monitor.start()
    stopping.wait()
    print("stopping after the current step", file=sys.stderr)
    for monitor in monitors:
        monitor.stop()
    server.shutdown()
    ticker.stop()
    ended = pool.stop(timeout_s=20)
    led = leadership is None or leadership.leads()
    return 0 if ended and led else 3


def _tell_the_story(app: "App") -> None:
    from agent.entrypoints.cli.story import Story
    from agent.entrypoints.telemetry import configure_log

    configure_log(as_json=False, renderer=Story(app.store.load, app.clock))


def _check_databases(app: "App", *, anew: bool) -> None:
    """Refuse to start on databases that do not belong together; stamp them first where that was asked for.

    Raises:
        PolicyRefused: One is missing, emptied, older than the other, or of another installation.
    """
    from agent.entrypoints.operator_client.protocol import now
    from agent.errors import PolicyRefused
    from agent.ports.stage_context import Owner
    from agent.stages.shared.database_pair import pair_again, pairing_fault

    context = app.contexts[Owner.DECIDE]
    apart = pairing_fault(context)
    if apart and anew:
        from agent.app.operating_system import user_name

        pair_again(context, by=user_name(), why=apart, at=now())
        print("the databases are paired; the kill switch is on: sre-agent stop --off", file=sys.stderr)
        return
    if apart:
        back = f"put sre.sqlite and control.sqlite of one moment back into {str(app.settings.state)!r}"
        anyway = "or go on with what is there: sre-agent up --pair-databases (it turns the kill switch on)"
        raise PolicyRefused("nothing was started", why=apart, hint=f"{back}; {anyway}")


def _overrides(args: argparse.Namespace, port: int) -> dict[str, Any]:
    found: dict[str, Any] = {"bind": args.bind}
    if args.bind == LOOPBACK:  # elsewhere people reach it under an address that only the operator knows
        found["public_url"] = f"http://{LOOPBACK}:{port}"
    if args.example:
        found["platform"] = f"rehearsal:{args.example}"
    if args.rehearse_by_fit:
        found["rehearse_by_fit"] = True
    if args.lease:
        found["lease"] = args.lease
    return found


def console_server(app: "App", held: socket.socket) -> "ConsoleServer":
    """Return the console of an installation, on a port that was claimed."""
    from agent.entrypoints.console.app import make_app
    from agent.entrypoints.console.identity import name_of
    from agent.entrypoints.console.pages.queue import queue_view
    from agent.entrypoints.console.serve import local_server
    from agent.entrypoints.http.authenticator import TOKEN_HEADER
    from agent.entrypoints.http.decide import beside
    from agent.entrypoints.http.decide_service import open_decide_service
    from agent.entrypoints.http.ingest import SENT_LIMIT, beside_console
    from agent.entrypoints.http.operators import operators
    from agent.entrypoints.http.slack_request import BODY_LIMIT
    from agent.ports.stage_context import Owner

    review = app.environment.token_review
    service = open_decide_service(app.settings, app.contexts[Owner.DECIDE], review=review)
    pages = make_app(
        app.contexts[Owner.DECIDE],
        settings=app.settings,
        queue_age_s=app.queue.oldest_s,
        queue=queue_view(app),
        metrics=True,
        wait_factor=app.environment.wait_factor,
        name_of=name_of(service) if review is not None else None,
    )
    server = local_server(pages, at=held, limit=SENT_LIMIT if app.settings.ingest_secrets else BODY_LIMIT)
    if app.settings.trusts_this_machine:
        server.app = beside(pages, service)
    else:
        server.app = beside(pages, service, operators(service), by_header=TOKEN_HEADER)
    if app.settings.ingest_secrets:
        server.app = beside_console(server.app, app)
    return server


def _greet(at: tuple[str, int], app: "App") -> None:
    address, port = at
    host = f"[{address}]" if ":" in address else address
    print(f"console:  http://{host}:{port}/", file=sys.stderr)
    print(f"watching: {', '.join(s.name for s in app.services.services) or 'nothing'}", file=sys.stderr)
    if app.tracer.target:
        print(f"traces:   {app.tracer.target}", file=sys.stderr)
    if app.environment.wait_factor > 1:
        faster = f"{app.environment.wait_factor:g} times faster"
        print(f"rehearsal: a recorded incident, {faster}; no real service is changed", file=sys.stderr)
    if not app.settings.trusts_this_machine:
        print("bound outside this machine: the console reads, a decision needs a proof of identity", file=sys.stderr)
    else:
        print(
            "decide in the console, or run: sre-agent approve PLAN | reject PLAN --why TEXT   (Ctrl-C stops)",
            file=sys.stderr,
        )
