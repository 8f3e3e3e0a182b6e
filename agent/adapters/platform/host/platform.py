"""A host runs one server for each service: started, changed by a restart, and taken over after a crash of ours."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from agent.adapters.platform.host.lifecycle import (
    POSSIBLE,
    deletes,
    free,
    report,
    require_deployed,
    resumed,
    to_create,
)
from agent.adapters.platform.host.measure import measurements, running_server
from agent.adapters.platform.host.probe import Address, address_of, healthy
from agent.adapters.platform.host.server import HostServer, last_line
from agent.adapters.platform.host.state_file import StateFile, Transaction
from agent.adapters.platform.refusals import no_shift, no_such_revision, require_kinds, unknown_operation
from agent.adapters.platform.rehearsal.template import bare, stamped, template_of
from agent.adapters.platform.traffic import LATEST, parsed_traffic
from agent.core.change.verification import Measurement
from agent.core.plan.action import LifecycleOperation
from agent.core.plan.lifecycle import ends_service, lifecycle_of
from agent.core.service.serving import Live, ServingConfig
from agent.core.value import digest
from agent.errors import InputRejected, StateConflict
from agent.ports.clock import Clock
from agent.ports.control import LeaseEnd
from agent.ports.host import Stage, Start, State
from agent.ports.model_server import ModelServer
from agent.ports.platform import Operation, Order, Restore, seconds_to_send

GRACE_S = 10.0  # a server that was asked to end gets so long; vLLM takes one to five seconds


class HostPlatform:
    """Servers of this machine, each in a folder with its record, its logs and what its supervisors wrote down.

    Nothing here waits: every call first lets happen what is due (end what is to end, start what is to start, see what
    has ended or come up), so that any process that knows the folder can go on where another one was killed.

    Args:
        folder: One folder below it for each service.
        clock: When things were seen.
        environ: Our own environment; a server inherits it.
        grace_s: How long a server may take to end before it is ended by force.
        server: Makes what starts and ends a service's processes, of its folder and the environment.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        environ: Mapping[str, str],
        *,
        grace_s: float = GRACE_S,
        server: Callable[[Path, Mapping[str, str]], HostServer] = HostServer,
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._environ = dict(environ)
        self._make = server
        self._grace = timedelta(seconds=grace_s)

    def knows(self, service: str) -> bool:
        """Whether a server of that name was ever started here."""
        return self._state_file(service).exists

    def describe(self, service: str) -> Live:
        """Return the server as it is now."""
        state = require_deployed(self.settled(service))
        newest = state.newest
        ending = newest is not None and bool(newest.ended_by) and newest.stage is not Stage.ENDED
        config = template_of(state.template).config
        up = newest is not None and newest.stage is Stage.READY and not newest.sick
        pending = newest is not None and newest.stage in {Stage.WAITING, Stage.STARTING}
        return Live(
            service=service,
            platform="host",
            config=config,
            uid=state.uid,
            generation=state.generation,
            etag=state.etag,
            template=state.template,
            traffic=LATEST,
            latest_ready_revision=state.latest_ready,
            latest_created_revision=newest.revision if newest is not None else None,
            stamps={s.revision: s.effect_key for s in state.starts if s.effect_key is not None},
            ready=None if pending else up and not ending,
            reconciling=pending or ending,
            message=newest.sick or newest.ending if newest is not None else "",
            spare_accelerator=False,
            resumes_with=(0, 1) if config.max_instances == 0 else None,
            log_path=str(self.log_path(service, newest).absolute()) if newest is not None else None,
        )

    def validate(self, order: Order) -> None:
        """Check a change without making it: on one machine there is no other hardware and no second instance."""
        require_kinds(order.actions, POSSIBLE, place="one machine", staged=order.staged)
        if lifecycle_of(order.actions) is not LifecycleOperation.CREATE:
            require_deployed(self._state(order.service))

    def apply(self, order: Order) -> Operation:
        """Begin a restart with the changed words, or return what this effect began before."""
        with self._state_file(order.service).writing() as transaction:
            require_kinds(order.actions, POSSIBLE, place="one machine", staged=order.staged)
            transaction.state = to_create(transaction.state, order, self._folder, self._clock.now())
            state = self._settle(transaction, order.service)
            before = state.effect(order.effect_key)
            if before is not None:
                return report(state, before, order.effect_key)
            free(require_deployed(state), order)
            template = stamped(state.template, order.revision, order.effect_key, order.incident, actions=order.actions)
            if any(map(ends_service, order.actions)):
                return self._end(transaction, state, order, template)
            return self._begin(transaction, state, order, template)

    def restore(self, order: Restore) -> Operation:
        """Begin a restart with a prior configuration, or return what this effect began before."""
        with self._state_file(order.service).writing() as transaction:
            state = self._settle(transaction, order.service)
            before = state.effect(order.effect_key)
            if before is not None:
                return report(state, before, order.effect_key)
            free(require_deployed(state), order)
            if not order.template:
                return self._end(transaction, state, order, state.template)
            template = stamped(order.template, order.revision, order.effect_key, order.incident)
            if template_of(template).config.max_instances == 0:
                return self._end(transaction, state, order, template)
            return self._begin(transaction, state, order, template)

    def shift(self, service: str, *, revision: str, etag: str, effect_key: str, lease_end: LeaseEnd) -> Operation:  # noqa: ARG002 - there is one server, whoever asks
        """Refuse: there is one server, and it has all the traffic."""
        why = f"a host runs one server, and nothing was brought up beside it ({effect_key} at {etag})"
        raise no_shift(service, revision, why)

    def find(self, service: str, effect_key: str) -> Operation | None:
        """Return the operation of an effect, or None where there is no trace of it."""
        state = self.settled(service)
        start = state.effect(effect_key)
        if start is None:
            require_deployed(state)
        return report(state, start, effect_key) if start is not None else None

    def operation(self, name: str) -> Operation:
        """Return how far an operation has come."""
        words = name.split("/")
        found = self.find(words[1], words[3]) if len(words) == 4 and words[0] == "host" else None
        if found is None:
            raise unknown_operation(name, "no start here has its stamp")
        return found

    def restored(self, service: str, *, template: str, traffic: str) -> bool:
        """Whether template and traffic equal the prior ones, but for revision name and stamp."""
        state = self._state(service)
        if state.gone or not template:
            return state.gone and not template
        return bare(state.template) == bare(template) and parsed_traffic(traffic) == LATEST

    def measure(self, service: str, revision: str) -> tuple[Measurement, ...]:
        """Measure a start: ready, one real completion, token counters, speed."""
        state = self.settled(service)
        start = state.start(revision)
        if start is None:
            raise no_such_revision(revision, f"server {service!r} had no start of that name")
        return measurements(service, start, self.address(start), self._clock)

    def server(self, service: str) -> ModelServer:
        """Return the server of the newest start, where it serves."""
        start = self.settled(service).newest
        return running_server(service, start, self.address(start) if start is not None else None)

    def open(self, service: str, config: ServingConfig, *, running: bool = False, changing: bool = False) -> bool:
        """Start a server for a person, or take over the one that is on record.

        Args:
            service: Its name.
            config: What to run.
            running: Whether it was started by somebody else already.
            changing: Whether an approved change of it is under way. A server that has ended is then started by the
                change: a start by hand would be another state than the one that was approved.

        Returns:
            True where the server on record was taken over, as when the watcher before us was killed.

        Raises:
            StateConflict: A server of this name runs with other words.
        """
        with self._state_file(service).writing() as transaction:
            wanted = stamped(config, "", None, None)
            if transaction.state is None:
                uid = digest([service, str(self._folder), self._clock.now().isoformat()])[:32]
                transaction.state = State(service=service, uid=uid, template=wanted)
            state = self._settle(transaction, service)
            newest = state.newest
            same = newest is not None and _words(wanted) in {_words(t) for t in (state.by_hand, state.template) if t}
            runs = newest is not None and newest.stage is not Stage.ENDED and not newest.on_purpose
            if runs and not same:
                raise StateConflict(
                    f"the server {service!r} was not started",
                    why=f"one of that name runs with other words: {' '.join(_words(state.template))}",
                    hint="stop that one first, or choose another name: sre-agent watch --name NAME -- ...",
                )
            if runs or (changing and same):
                return True
            self._by_hand(transaction, state.with_(template=wanted, by_hand=wanted), running=running)
            return False

    def again(self, service: str) -> None:
        """Start the present configuration again for a person; nothing happens where it runs."""
        with self._state_file(service).writing() as transaction:
            state = self._settle(transaction, service)
            if state.newest is None or state.newest.stage is Stage.ENDED:
                self._by_hand(transaction, state)

    def stop(self, service: str) -> None:
        """Ask the server to end, for a person; ``settled`` goes on with it."""
        with self._state_file(service).writing() as transaction:
            state = self._settle(transaction, service)
            if state.newest is not None and state.newest.stage is not Stage.ENDED:
                transaction.state = self._ending(state, state.newest)

    def judge(self, service: str, mark: str, sick: str) -> None:
        """Note that the newest start does not serve though it runs, or (an empty word) that it does."""
        with self._state_file(service).writing() as transaction:
            state = transaction.state
            newest = state.newest if state is not None else None
            if state is not None and newest is not None and newest.mark == mark and newest.sick != sick:
                transaction.state = state.put(newest.with_(sick=sick))

    def settled(self, service: str) -> State:
        """Let happen what is due and return the record.

        Raises:
            InputRejected: No server of that name was started here.
        """
        with self._state_file(service).writing() as transaction:
            return self._settle(transaction, service)

    def log_path(self, service: str, start: Start) -> Path:
        """Return the file with the output of a start."""
        return self._server(service).log(start)

    def address(self, start: Start) -> Address:
        """Return where a start's server is asked."""
        return address_of(template_of(start.template).config, self._environ)

    def first_byte(self, service: str, start: Start) -> int:
        """Return where a start's output begins in that file."""
        return self._server(service).first_byte(start)

    def recordings(self, service: str) -> tuple[Start, ...]:
        """Return the starts on record, the newest last; nothing for a service that is not ours."""
        state = self._state_file(service).read()
        return state.starts if state is not None else ()

    def _settle(self, transaction: Transaction, service: str) -> State:
        state = self._held(transaction.state, service)
        for start in state.starts:
            if start.stage is not Stage.ENDED:
                state = self._onward(state, start)
        newest = state.newest
        if newest is not None and newest.stage is Stage.WAITING and self._cleared(state):
            self._server(service).launch(newest, template_of(newest.template).config)
            state = state.put(newest.with_(stage=Stage.STARTING, began_at=self._clock.now()))
        transaction.state = state
        return state

    def _cleared(self, state: State) -> bool:
        """Whether nothing of the start before the newest is left: not its port, not its memory."""
        if any(s.stage is not Stage.ENDED for s in state.starts[:-1]):
            return False
        if len(state.starts) < 2:
            return True
        server, before = self._server(state.service), state.starts[-2]
        if server.gone(before):
            return True
        if not server.record_of(before).held:
            server.end_by_force(before)  # its supervisor, who would have done it, was ended by force
        return False

    def _onward(self, state: State, start: Start) -> State:
        """Look at one start that has not ended."""
        if start.on_purpose:
            return self._ending(state, start)
        if start.stage is Stage.WAITING:
            return state
        server = self._server(state.service)
        kept = server.record_of(start)
        if kept.ended or (not kept.held and not kept.process):
            if not kept.held:
                server.end_by_force(start)  # nobody else would: an engine without its server holds the memory
            said = kept.says or "nobody saw how"
            says = f"the server ended with {said}" + ("" if start.ready_at else " before it served")
            return state.put(
                start.with_(
                    stage=Stage.ENDED,
                    ended_at=self._clock.now(),
                    exit_code=kept.code,
                    says=says,
                    last_line=last_line(server.log(start)),
                )
            )
        if start.stage is Stage.STARTING and self._serves(state.service, start):
            ready = start.with_(stage=Stage.READY, ready_at=self._clock.now(), says="")
            return state.put(ready).with_(latest_ready=start.revision, good_template=start.template)
        return state

    def _serves(self, service: str, start: Start) -> bool:
        """Whether one of this start's own processes listens on its port and says that it is well."""
        address = self.address(start)
        if not healthy(address).good:
            return False
        return self._server(service).serves_on(start, address.port)

    def _ending(self, state: State, start: Start) -> State:
        """Ask a start to end, end it by force after the grace, and note when nothing of it is left."""
        server = self._server(state.service)
        now = self._clock.now()
        if start.stage is Stage.WAITING:
            return state.put(start.with_(stage=Stage.ENDED, asked_at=now, ended_at=now, says="it was never begun"))
        if start.asked_at is None:
            server.ask_to_end(start)
            return state.put(start.with_(asked_at=now))
        if server.gone(start):
            kept = server.record_of(start)
            said = f"it was asked to end: {kept.says or 'ended by force'}"
            return state.put(start.with_(stage=Stage.ENDED, ended_at=now, exit_code=kept.code, says=said))
        if now - start.asked_at >= self._grace:
            server.end_by_force(start)
        return state

    def _begin(self, transaction: Transaction, state: State, order: Order | Restore, template: str) -> Operation:
        made = self._made(state, order.revision, order.effect_key, template)
        newest = state.newest
        before = None
        if newest is not None and newest.stage is not Stage.ENDED:
            before = newest.with_(ended_by=order.effect_key)
            state = state.put(before)
        state = state.put(made).with_(template=template, generation=state.generation + 1, writes=state.writes + 1)
        seconds_to_send(order.lease_end, order.service)
        self._state_file(state.service).write(state)  # the intent first: a successor goes on, whatever becomes of us
        transaction.state = state if before is None else self._ending(state, before)
        return report(transaction.state, made, order.effect_key)

    def _end(self, transaction: Transaction, state: State, order: Order | Restore, template: str) -> Operation:
        """Ask the server to end; where none runs, the start that ended last carries the stamp."""
        newest = state.newest
        assert newest is not None, "a service on record was started at least once"
        ended = newest.with_(ended_by=order.effect_key)
        state = state.put(ended).with_(template=template, generation=state.generation + 1, writes=state.writes + 1)
        state = state.with_(deleted=deletes(order))
        seconds_to_send(order.lease_end, order.service)
        self._state_file(state.service).write(state)  # the intent first, as for a start
        transaction.state = state if ended.stage is Stage.ENDED else self._ending(state, ended)
        return report(transaction.state, transaction.state.effect(order.effect_key) or ended, order.effect_key)

    def _by_hand(self, transaction: Transaction, state: State, *, running: bool = False) -> None:
        state = state.with_(generation=state.generation + 1, writes=state.writes + 1)
        revision = f"{state.service}-{state.generation}"
        template = stamped(state.template, revision, None, None, actions=resumed(state))
        made = self._made(state, revision, None, template)
        state = state.with_(template=template).put(made.with_(stage=Stage.STARTING) if running else made)
        self._state_file(state.service).write(state)
        transaction.state = state
        self._settle(transaction, state.service)

    def _made(self, state: State, revision: str, effect_key: str | None, template: str) -> Start:
        mark = digest([state.uid, revision, state.writes])[:20]
        return Start(revision=revision, effect_key=effect_key, mark=mark, template=template, began_at=self._clock.now())

    def _state(self, service: str) -> State:
        return self._held(self._state_file(service).read(), service)

    def _held(self, state: State | None, service: str) -> State:
        if state is None:
            have = sorted(p.parent.name for p in self._folder.glob("*/server.json"))
            raise InputRejected(
                f"there is no server {service!r} on this host",
                why=f"started were: {', '.join(have) or 'none'}",
                hint="start it: sre-agent watch -- vllm serve MODEL",
            )
        return state

    def _state_file(self, service: str) -> StateFile:
        return StateFile(self._folder / service)

    def _server(self, service: str) -> HostServer:
        return self._make(self._folder / service, self._environ)


def _words(template: str) -> tuple[str, ...]:
    config = template_of(template).config
    return (*config.command, *config.args)
