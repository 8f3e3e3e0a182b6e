"""A rehearsal stands in for Cloud Run: revisions boot or fail as it was recorded, and nothing real is touched."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agent.adapters.platform.refusals import no_such_revision, state_changed, unknown_operation
from agent.adapters.platform.rehearsal.cloud_run_limits import complaints
from agent.adapters.platform.rehearsal.lifecycle import (
    deployed,
    end,
    etag_of,
    found,
    operation_name,
    require_etag,
    standing,
)
from agent.adapters.platform.rehearsal.outcome import Compute, crashed, fate_of, fate_of_live, measurements, rehearsed
from agent.adapters.platform.rehearsal.replay import entries_of, log_of, persons_entries
from agent.adapters.platform.rehearsal.scenario import Result, Scenario
from agent.adapters.platform.rehearsal.state_file import OperationRow, RevisionRow, ServiceRow, State, StateFile
from agent.adapters.platform.rehearsal.template import bare, stamped, template_of, wanted
from agent.adapters.platform.traffic import LATEST, parsed_traffic
from agent.core.change.verification import Measurement
from agent.core.plan.action import NO_SERVICE
from agent.core.plan.lifecycle import ends_service
from agent.core.service.serving import Live, Traffic
from agent.core.value import Value, digest
from agent.errors import InputRejected
from agent.ports.clock import Clock
from agent.ports.control import LeaseEnd
from agent.ports.logs import InstanceLog
from agent.ports.model_server import ModelServer, NotRunning
from agent.ports.platform import HINTS, Operation, Order, Restore, seconds_to_send


class SinkEntry(Value):
    """A log entry that a sink lets through, and when it can be read."""

    at: datetime
    entry: dict[str, Any]


class RehearsalPlatform:
    """Plays the outside world from scenarios; its file outlives the agent, its writes are its own transactions.

    Args:
        path: The SQLite file; made where it is missing, gone on with where it stands.
        scenarios: By service.
        clock: The rehearsal has no time of its own: what is due has happened by the next call.
        compression: Divides every wait; None takes each scenario's own.
        compute: Asked for starts that nobody recorded; None lets them end "not recorded".
    """

    def __init__(
        self,
        path: Path,
        scenarios: Mapping[str, Scenario],
        clock: Clock,
        *,
        compression: float | None = None,
        compute: Compute | None = None,
    ) -> None:
        self._file = StateFile(path)
        self._scenarios = dict(scenarios)
        self._clock = clock
        self._compression = compression
        self._compute = compute
        with self._file.writing() as state:
            for scenario in self._scenarios.values():
                if state.service(scenario.service) is None:
                    self._open(state, scenario)

    def takes_changes(self, service: str) -> bool:
        """Whether the rehearsal stands in for this service's platform; elsewhere a person makes the changes."""
        scenario = self._scenarios.get(service)
        return scenario is not None and scenario.takes_changes

    def describe(self, service: str) -> Live:
        """Return the service as it is now."""
        scenario = self._scenario(service)
        with self._file.writing() as state:
            self._settle(state)
            row = deployed(state, service)
            revisions = state.revisions(service)
            running = any(o.service == service for o in state.running())
        factor = self._factor(scenario)
        newest = next(r for r in revisions if r.name == row.latest_created)
        if row.ready and crashed(newest, self._clock.now(), factor):
            row = row.with_(ready=False, message=newest.fate.message)
        note = rehearsed(factor)
        return Live(
            service=service,
            platform=scenario.platform,
            config=template_of(row.template).config,
            uid=row.uid,
            generation=row.generation,
            etag=etag_of(row),
            template=row.template,
            traffic=row.traffic,
            latest_ready_revision=row.latest_ready,
            latest_created_revision=row.latest_created,
            stamps={r.name: r.effect_key for r in revisions if r.effect_key is not None},
            ready=row.ready,
            reconciling=running,
            message=f"{row.message} ({note})" if row.message else f"({note})",
            spare_accelerator=scenario.live.spare_accelerator,
            resumes_with=row.resumes_with,
        )

    def validate(self, order: Order) -> None:
        """Check a change as Cloud Run would, without making it."""
        scenario = self._scenario(order.service)
        with self._file.writing() as state:
            row = standing(state, order)
        config = wanted(row.template, order.actions)
        wrong = complaints(config) if scenario.platform == "cloud_run" and config != NO_SERVICE else ()
        if wrong:
            raise InputRejected(
                f"the change of {order.service!r} was refused",
                why="; ".join(wrong),
                hint=HINTS[InputRejected],
            )

    def apply(self, order: Order) -> Operation:
        """Start the change, or return what this effect started before."""
        self._scenario(order.service)
        with self._file.writing() as state:
            self._settle(state)
            before = state.effect(order.service, order.effect_key)
            if before is not None:
                return self._operation(before)
            row = standing(state, order)
            self._free(state, row, order.revision, order.etag)
            seconds_to_send(order.lease_end, order.service)
            template = stamped(row.template, order.revision, order.effect_key, order.incident, actions=order.actions)
            if any(map(ends_service, order.actions)):
                return self._operation(end(state, row, order, template, now=self._clock.now()))
            pinned = row
            if order.staged:
                pinned = row.with_(traffic=_pinned(row), follow=row.traffic)
            return self._operation(self._begin(state, pinned, order, template))

    def restore(self, order: Restore) -> Operation:
        """Start putting a prior template and traffic back, or return what this effect started before."""
        self._scenario(order.service)
        with self._file.writing() as state:
            self._settle(state)
            before = state.effect(order.service, order.effect_key)
            if before is not None:
                return self._operation(before)
            row = deployed(state, order.service)
            self._free(state, row, order.revision, order.etag)
            seconds_to_send(order.lease_end, order.service)
            if not order.template:
                return self._operation(end(state, row.with_(deleted=True), order, row.template, now=self._clock.now()))
            template = stamped(order.template, order.revision, order.effect_key, order.incident)
            row = row.with_(traffic=parsed_traffic(order.traffic), follow=None)
            if template_of(template).config.max_instances == 0:
                return self._operation(end(state, row, order, template, now=self._clock.now()))
            return self._operation(self._begin(state, row, order, template))

    def shift(self, service: str, *, revision: str, etag: str, effect_key: str, lease_end: LeaseEnd) -> Operation:
        """Give all traffic to a revision; where the policy before it was staged followed the latest, so again."""
        self._scenario(service)
        with self._file.writing() as state:
            self._settle(state)
            before = state.effect(service, effect_key)
            if before is not None:
                return self._operation(before)
            row = self._unchanged(state, service, etag)
            target = state.revision(revision)
            if target is None or target.service != service or target.fate.result == Result.FAILED:
                raise InputRejected(
                    f"traffic was not shifted to {revision!r}",
                    why="it is no revision of this service that serves",
                    hint="look at the service and its revisions",
                )
            seconds_to_send(lease_end, service)
            follows = row.follow == LATEST and revision == row.latest_ready
            traffic = LATEST if follows else (Traffic(revision=revision, percent=100),)
            state.keep_service(
                row.with_(traffic=traffic, follow=None, writes=row.writes + 1, generation=row.generation + 1)
            )
            done = OperationRow(
                name=operation_name(service, effect_key),
                service=service,
                effect_key=effect_key,
                revision=revision,
                ends_at=self._clock.now(),
                done=True,
                ok=True,
                says=f"all traffic goes to {revision}",
            )
            state.keep_operation(done)
            return self._operation(done)

    def find(self, service: str, effect_key: str) -> Operation | None:
        """Return the operation of an effect, or None where there is no trace of it."""
        self._scenario(service)
        with self._file.writing() as state:
            self._settle(state)
            row = state.effect(service, effect_key)
            if row is None:
                deployed(state, service)
        return self._operation(row) if row is not None else None

    def operation(self, name: str) -> Operation:
        """Return how far an operation has come."""
        with self._file.writing() as state:
            self._settle(state)
            row = state.operation(name)
        if row is None:
            raise unknown_operation(name, "the rehearsal never began it")
        return self._operation(row)

    def restored(self, service: str, *, template: str, traffic: str) -> bool:
        """Whether template and traffic equal the prior ones, but for revision name and stamp."""
        self._scenario(service)
        with self._file.writing() as state:
            row = found(state.service(service))
        if row.deleted or not template:
            return row.deleted and not template
        return bare(row.template) == bare(template) and row.traffic == parsed_traffic(traffic)

    def measure(self, service: str, revision: str) -> tuple[Measurement, ...]:
        """Measure a revision by the record; what is not on record is not measured."""
        scenario = self._scenario(service)
        with self._file.writing() as state:
            self._settle(state)
            row = state.revision(revision)
        if row is None or row.service != service:
            raise no_such_revision(revision, f"service {service!r} has none of that name")
        factor, by_arithmetic = self._factor(scenario), self._compute is not None
        return measurements(scenario, row, self._clock, factor, by_arithmetic=by_arithmetic)

    def server(self, service: str) -> ModelServer:
        """Refuse: a rehearsal has a record of a server, and no server."""
        raise NotRunning(
            f"nothing was sent to {service!r}",
            why=f"{self._scenario(service).platform} is simulated here, and no server stands behind it",
            hint="verify_model_health shows what is on record; set PLATFORM to where the service really runs",
        )

    def recordings(self, service: str) -> tuple[InstanceLog, ...]:
        """Return the logs of the service's revisions as far as they have been written by now."""
        scenario = self._scenarios.get(service)
        if scenario is None:
            return ()
        with self._file.writing() as state:
            revisions = state.revisions(service)
        now, factor = self._clock.now(), self._factor(scenario)
        return tuple(log for r in revisions if (log := log_of(scenario, r, now=now, compression=factor)) is not None)

    def new_log_entries(self, since: datetime | None) -> tuple[SinkEntry, ...]:
        """Return what a log sink let through after ``since``, oldest first; pass the last ``at`` the next time."""
        return tuple(
            SinkEntry(at=at, entry=json.loads(body))  # not strict: a row of ours
            for at, body in self._file.entries(since, self._clock.now())
        )

    def take_on(self, service: str, task: str, *, at: datetime) -> None:
        """Let a simulated person begin a task, where the record tells what a person did; once for each task."""
        scenario = self._scenarios.get(service)
        if scenario is None:
            return
        with self._file.writing() as state:
            entries = persons_entries(scenario, task, taken_at=at, compression=self._factor(scenario))
            for entry_id, printed_at, body in entries:
                state.add_entry(entry_id, service, printed_at, body)

    def _open(self, state: State, scenario: Scenario) -> None:
        live = scenario.live
        now = self._clock.now()
        state.keep_service(
            ServiceRow(
                name=scenario.service,
                uid=digest(["uid", scenario.service])[:32],
                generation=live.generation,
                template=stamped(live.config, "", None, None),
                traffic=live.traffic,
                latest_ready=live.latest_ready_revision or (live.revision if live.ready else None),
                latest_created=live.revision,
                ready=live.ready,
                message=live.message,
            )
        )
        state.add_revision(
            RevisionRow(
                name=live.revision,
                service=scenario.service,
                effect_key=None,
                fate=fate_of_live(scenario),
                began_at=live.recording.began_at if live.recording is not None else now,
                ends_at=now,
                initial=True,
            )
        )

    def _begin(self, state: State, row: ServiceRow, order: Order | Restore, template: str) -> OperationRow:
        """Write the new specification, the revision, its log entries to come and the operation."""
        scenario = self._scenario(row.name)
        now, factor = self._clock.now(), self._factor(scenario)
        fate = fate_of(scenario, template_of(template).config, self._compute)
        made = RevisionRow(
            name=order.revision,
            service=row.name,
            effect_key=order.effect_key,
            fate=fate,
            began_at=now,
            ends_at=now + timedelta(seconds=fate.after_s / factor),
        )
        operation = OperationRow(
            name=operation_name(row.name, order.effect_key),
            service=row.name,
            effect_key=order.effect_key,
            revision=order.revision,
            ends_at=made.ends_at,
            says=f"{order.revision} is starting",
        )
        state.keep_service(
            row.with_(
                template=template,
                generation=row.generation + 1,
                writes=row.writes + 1,
                latest_created=order.revision,
                ready=None,
                message="",
                resumes_with=None,
            )
        )
        state.add_revision(made)
        for entry_id, at, body in entries_of(scenario, made, compression=factor):
            state.add_entry(entry_id, row.name, at, body)
        state.keep_operation(operation)
        return operation

    def _settle(self, state: State) -> None:
        """Let happen what is due: a start that ended becomes ready, or leaves the traffic where it was."""
        now = self._clock.now()
        for operation in state.running():
            made = state.revision(operation.revision)
            row = state.service(operation.service)
            if operation.ends_at > now or made is None or row is None:
                continue
            fate = made.fate
            ok = {Result.CAME_UP: True, Result.FAILED: False}.get(Result(fate.result))
            state.keep_operation(operation.with_(done=True, ok=ok, says=fate.message if ok is False else fate.word))
            if ok:
                row = row.with_(latest_ready=made.name)
            if made.name == row.latest_created:
                row = row.with_(ready=ok, message=fate.word if ok is None else fate.message)
            state.keep_service(row)

    def _free(self, state: State, row: ServiceRow, revision: str, etag: str) -> None:
        require_etag(row, etag)
        if state.revision(revision) is not None:
            raise state_changed(
                f"revision {revision!r} was not made", "one of that name stands already, without this effect's stamp"
            )

    def _unchanged(self, state: State, service: str, etag: str) -> ServiceRow:
        row = deployed(state, service)
        require_etag(row, etag)
        return row

    def _scenario(self, service: str) -> Scenario:
        if not self.takes_changes(service):
            have = sorted(name for name, s in self._scenarios.items() if s.takes_changes)
            raise InputRejected(
                f"the rehearsal has no service {service!r}",
                why=f"it has scenarios for {', '.join(have) or 'nothing'}",
                hint="name a scenario for it in services.toml",
            )
        return self._scenarios[service]

    def _factor(self, scenario: Scenario) -> float:
        return self._compression if self._compression is not None else scenario.compression

    def _operation(self, row: OperationRow) -> Operation:
        note = rehearsed(self._factor(self._scenarios[row.service]))
        return Operation(name=row.name, done=row.done, ok=row.ok, says=f"{row.says} ({note})")


def _pinned(row: ServiceRow) -> tuple[Traffic, ...]:
    """A staged revision gets no traffic: a share of the latest one becomes a share of the one that serves now."""
    if row.latest_ready is None:
        return row.traffic
    return tuple(t.with_(revision=row.latest_ready) if t.revision is None else t for t in row.traffic)
