"""One run of the watch command: what is said, what is asked, and how it ends."""

import contextlib
import errno
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agent.app.operating_system import user_name
from agent.errors import SreError

if TYPE_CHECKING:
    import socket

    from agent.app import App
    from agent.core.incident.incident import Incident
    from agent.core.service.services import Service
    from agent.core.service.serving import ServingConfig
    from agent.entrypoints.cli.watch_view import View
    from agent.ports.host import HostCheck, HostServers

THREADS = 2
GONE = frozenset({errno.EIO, errno.EPIPE, errno.ENXIO})  # what a terminal or a pipe answers that nobody holds any more


def _changes(incident: "Incident") -> bool:
    """Whether a change of ours is offered, approved or under way; what a person does by hand is none.

    A plan that needs approval is for the state that it was made for: a start by hand would make it worthless.
    """
    from agent.core.incident.phase import CHANGED, Phase

    by_us = incident.plan is not None and not incident.plan.by_person
    return by_us and incident.phase in {Phase.PLANNED, Phase.ASKED, Phase.APPROVED, *CHANGED}


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """How a run passes on, ends and speaks.

    Attributes:
        ours: Whether the server is started here, so that it may be stopped here.
        stop_on_exit: Whether SIGTERM, a closed terminal, and Ctrl-C where nobody can be asked stop the server too.
        once: Whether the run ends with the server, and with its exit code.
        quiet_server: Whether the server's output is not passed on.
        as_json: Whether progress is JSON, one object a line.
    """

    ours: bool = True
    stop_on_exit: bool = False
    once: bool = False
    quiet_server: bool = False
    as_json: bool = False


class Watch:
    """One run of the command."""

    def __init__(
        self,
        app: "App",
        platform: "HostServers",
        check: "HostCheck",
        *,
        service: "Service",
        config: "ServingConfig",
        options: WatchOptions,
        serve: Callable[["App", "socket.socket"], Any],
    ) -> None:
        from agent.app.catalogues import host_folder
        from agent.entrypoints.cli.watch_view import view
        from agent.entrypoints.monitor.host_monitor import HostMonitor

        self._app = app
        self._platform = platform
        self._service = service.name
        self._config = config
        self._options = options
        self._serve = serve
        self._ours = options.ours
        self._exit_code = 0
        self._stopping = threading.Event()
        self._asked: set[str] = set()
        self._interrupt = False
        self._ended_by = ""
        self._shown_events: dict[str, int] = {}
        self._said: dict[str, str] = {}
        self._began = app.clock.now()
        self._view: View = view(as_json=options.as_json)
        self._monitor: HostMonitor = HostMonitor(
            app,
            service.name,
            platform=platform,
            doctor=check,
            folder=host_folder(app.settings) / service.name,
            ours=options.ours,
        )

    def go(self, console: "socket.socket | None") -> int:
        """Start or take over the server, and watch until somebody ends it; ``console`` is its port, claimed already."""
        running: list[Callable[[], object]] = []  # what is to be ended, in order
        with self._interrupts():
            try:
                self._watch(console, running)
                self._stop_as_asked()
            finally:
                for end in running:
                    end()
                self._part()
        return self._exit_code

    def _watch(self, console: "socket.socket | None", running: list[Callable[[], object]]) -> None:
        """Begin, note in ``running`` what is to be ended, and look until somebody ends it or the terminal is gone."""
        from agent.entrypoints.service import Ticker, handlers

        pool = self._app.worker(handlers(self._app), threads=THREADS)
        ticker = Ticker(self._app, every_s=max(self._app.rules.times.poll_s / 4, 0.2))
        try:
            took_over = self._open()
            running.append(self._relay(took_over=took_over))
            if (server := self._console(console)) is not None:
                running.append(server.shutdown)
            self._greet(console, took_over=took_over)
            pool.start()
            running.insert(0, lambda: pool.stop(timeout_s=20))
            ticker.start()
            running.insert(0, ticker.stop)
            self._monitor.start()
            running.insert(0, self._monitor.stop)
            while not self._stopping.wait(0.3):
                self._turn()
        except OSError as error:  # the terminal is gone, and its signal has not come yet
            if error.errno not in GONE:
                raise
            self._ended_by = self._ended_by or "the terminal was closed"

    def _relay(self, *, took_over: bool) -> Callable[[], None]:
        """Begin to pass on what the server prints; return what ends it."""
        if self._options.quiet_server or not self._ours:
            return lambda: None
        from agent.entrypoints.monitor.output_relay import OutputRelay

        relay = OutputRelay(
            lambda: self._monitor.state,
            lambda start: self._platform.log_path(self._service, start),
            self._view.output,
            left_out=lambda count, log: self._view.say(
                f"up to {count:,} bytes of the server's output were left out: nobody took them in time; see {log}",
                event="left_out",
                bytes=count,
                log=str(log),
            ),
            ready=lambda: self._view.takes_output,
        )
        relay.skip(self._platform.settled(self._service), newest_too=took_over)
        relay.start()
        return relay.finish

    def _open(self) -> bool:
        """Start the server, or take over the one on record; whether somebody else's server runs is not ours to know."""
        changing = self._ours and any(_changes(incident) for incident in self._incidents())
        return self._platform.open(self._service, self._config, running=not self._ours, changing=changing)

    def _part(self) -> None:
        """Say why the watching ends and what becomes of the server, as far as anybody can read it."""
        try:
            self._view.close()
            if self._ended_by and not (self._ours and self._options.stop_on_exit):
                again = f"to watch it again, run the same command with --name {self._service}"
                self._view.say(f"{self._ended_by}: watching stops, the server keeps running; {again}")
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        except (OSError, ValueError):  # what is printed at the end of the process would fail once more
            nowhere = os.open(os.devnull, os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(nowhere, stream)

    def _turn(self) -> None:
        from agent.entrypoints.cli.output import message
        from agent.entrypoints.cli.watch_view import state_line

        if self._interrupt:
            self._leave()
            return
        monitor = self._monitor
        now = self._app.clock.now()
        self._view.show(state_line(self._service, monitor.state, monitor.last_check, now=now, last=monitor.last_line))
        try:
            for incident in self._incidents():
                self._tell(incident)
                if not self._options.once:
                    self._ask(incident)
            if self._options.once:
                self._end_with_server()
        except SreError as error:
            self._view.say(f"! {message(str(error))}", event="error")

    def _end_with_server(self) -> None:
        """End with the server's exit code once it has ended, was told of, and nothing of ours changes it."""
        from agent.entrypoints.cli.watch_end import is_over, shell_code

        state = self._monitor.state
        newest = state.newest if state is not None else None
        if newest is None or not is_over(
            newest, self._incidents(), now=self._app.clock.now(), automatic=self._is_automatic
        ):
            return
        self._exit_code = shell_code(newest.exit_code)
        self._view.say(
            f"{self._service}: {newest.says or 'the server has ended'}; watching ends (--once)",
            event="end",
            exit_code=self._exit_code,
        )
        self._stopping.set()

    def _is_automatic(self, incident: "Incident") -> bool:
        """Whether policy is to approve the plan that an incident asks about."""
        from agent.ports.stage_context import Owner
        from agent.stages.shared.approval import is_automatic

        plan = incident.plan
        return plan is not None and is_automatic(self._app.contexts[Owner.DECIDE], incident, plan)

    def _incidents(self) -> tuple["Incident", ...]:
        from agent.core.intake.signal import LIVE
        from agent.ports.store import Query

        found = self._app.store.incidents(Query(run=LIVE, service=self._service, limit=20))
        fresh = (i for i in found if not i.ended or i.phase_at >= self._began)
        return tuple(sorted(fresh, key=lambda i: (i.opened_at, i.id)))

    def _tell(self, incident: "Incident") -> None:
        """Say what is new: a sentence for each step, and none twice in a row."""
        from agent.entrypoints.cli.output import for_people
        from agent.presentation.event_text import event_text

        events = self._app.store.timeline(incident.id)
        for event in events[self._shown_events.get(incident.id, 0) :]:
            plan = self._app.store.plan(event.plan) if event.plan is not None else None
            says = for_people(event_text(event, incident, plan), lines=False)
            if says != self._said.get(incident.id):
                row = {"incident": incident.id, "phase": event.phase.value, "says": says, "plan": event.plan}
                self._view.say(f"{event.at:%H:%M:%S}  {event.phase:<13} {says}", event="step", **row)
            self._said[incident.id] = says
        self._shown_events[incident.id] = len(events)

    def _ask(self, incident: "Incident") -> None:
        """Show a plan, and ask for a word where somebody can give one."""
        from agent.core.decision.decision import Choice
        from agent.core.incident.phase import Phase
        from agent.entrypoints.cli.output import without_secrets
        from agent.entrypoints.cli.watch_view import memory_lines
        from agent.presentation.terminal_text import lines

        plan = incident.plan
        if incident.phase is not Phase.ASKED or plan is None or plan.id in self._asked:
            return
        self._asked.add(plan.id)
        self._view.say(without_secrets("\n".join(lines(incident, now=self._app.clock.now()))))
        for text in memory_lines(self._app.rules.fits, incident, self._platform.describe(self._service).config):
            self._view.say(text)
        if plan.by_person:
            self._view.say("  this is a task for you; answer yes when it is done, and the server is restarted")
        question = f"{'is it done' if plan.by_person else 'apply'} ({plan.id})? [y]es [n]o [l]ater"
        word = self._view.ask(question, "ynl", lambda: self._still(incident.id, plan.id))
        if word is None and self._interrupt:
            self._asked.discard(plan.id)  # Ctrl-C is answered first; who goes on is asked again
        if word in {"y", "n"}:
            self._decide(plan.id, plan.digest, Choice.APPROVE if word == "y" else Choice.REJECT)

    def _still(self, incident: str, plan: str) -> bool:
        from agent.core.incident.phase import Phase

        if self._interrupt or self._stopping.is_set():
            return False
        now = self._app.store.load(incident)
        return now.phase is Phase.ASKED and now.plan is not None and now.plan.id == plan

    def _decide(self, plan: str, digest: str, answer: Any) -> None:
        from agent.core.decision.decision import Channel, Person
        from agent.ports.stage_context import Owner
        from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision

        decision_request = DecisionRequest(
            plan=plan,
            answer=answer,
            by=Person(who=user_name(), channel=Channel.COMMAND_LINE, verified=False),
            why="said at the prompt of the watcher",
            plan_digest=digest,
        )
        plan_to_decision(self._app.contexts[Owner.DECIDE], decision_request)

    def _greet(self, console: "socket.socket | None", *, took_over: bool) -> None:
        from agent.entrypoints.cli.watch_view import not_started

        did = "follows the log of" if not self._ours else "took over" if took_over else "started"
        self._view.say(f"sre-agent {did} {self._service}: {shlex.join((*self._config.command, *self._config.args))}")
        if took_over and (plan := self._offered()) is not None:
            self._view.say(not_started(plan))
        if console is not None:
            self._view.say(f"console: http://127.0.0.1:{console.getsockname()[1]}/")
        self._view.say("plans can be answered here, or with: sre-agent approve PLAN | reject PLAN --why TEXT")

    def _offered(self) -> str | None:
        """Return the plan that has still to be answered before a server that has ended is started."""
        from agent.core.incident.phase import Phase
        from agent.ports.host import Stage

        newest = self._platform.settled(self._service).newest
        if newest is None or newest.stage is not Stage.ENDED:
            return None
        waiting = (i for i in self._incidents() if _changes(i) and i.phase in {Phase.PLANNED, Phase.ASKED})
        return next((i.plan.id for i in waiting if i.plan is not None), None)

    def _console(self, held: "socket.socket | None") -> Any:
        if held is None:
            return None
        from agent.app.console_address import note_console

        server = self._serve(self._app, held)
        note_console(self._app.settings)
        threading.Thread(target=server.serve_forever, name="console", daemon=True).start()
        return server

    @contextlib.contextmanager
    def _interrupts(self) -> Iterator[None]:
        """SIGTERM and a closed terminal stop the watching, as does Ctrl-C; where somebody can answer, it asks first.

        Whoever started us with SIGHUP ignored (nohup) wants us to go on.
        """
        ends = {signal.SIGTERM: "SIGTERM", signal.SIGHUP: "SIGHUP, the terminal was closed"}
        before = {n: signal.getsignal(n) for n in (*ends, signal.SIGINT)}
        for number, says in ends.items():
            if number is signal.SIGTERM or before[number] is not signal.SIG_IGN:
                signal.signal(number, partial(self._end, says))
        signal.signal(signal.SIGINT, lambda *_: self._interrupted())
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, says: str, *_: object) -> None:
        self._ended_by = self._ended_by or says
        self._stopping.set()

    def _interrupted(self) -> None:
        if self._stopping.is_set():
            return
        if self._options.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            self._end("SIGINT")
            return
        self._interrupt = True  # the handler only notes it; the loop asks

    def _leave(self) -> None:
        """Ask what to stop."""
        if not self._ours:
            self._stopping.set()
            return
        self._interrupt = False
        question = "stop the [s]erver too, stop only [w]atching, or [g]o on?"
        word = self._view.ask(question, "swg", lambda: not self._stopping.is_set() and not self._interrupt)
        if word == "g" or (word is None and self._ended_by):
            return
        if word == "s":
            self._stop_server()
        else:
            self._view.say(
                f"the server keeps running; to watch it again, run the same command with --name {self._service}"
            )
        self._stopping.set()

    def _stop_as_asked(self) -> None:
        """Stop the server too where that was wanted and something from outside ended the watching."""
        if self._ended_by and self._ours and self._options.stop_on_exit:
            self._stop_server(f"{self._ended_by}: the server is stopped too (--on-exit stop)")

    def _stop_server(self, *why: str) -> None:
        """Stop the server, whether or not anybody can read what is said of it."""
        from agent.entrypoints.cli.watch_end import stopped

        self._platform.stop(self._service)
        for text in why:
            self._say_if_read(text)
        self._say_if_read("stopping the server", event="stopping")
        if stopped(self._platform, self._service):
            self._say_if_read("the server has stopped", event="stopped")
        else:
            self._say_if_read("the server has not stopped yet; run the command again to keep watching it")

    def _say_if_read(self, text: str, **about: object) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._view.say(text, **about)
