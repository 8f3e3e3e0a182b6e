"""Cloud Run's Admin API v2 on the real gRPC wire: services, revisions, operations, limits, and faults on demand.

    stand_in = StandIn(now=clock.now, fate=lambda template: Fate(up=True, after_s=300))
    stand_in.put(json.loads(recorded_service_body))
    stand_in.start()
    api = CloudRunApi(lambda: clients_over(stand_in.channel()))      # the real clients of google-cloud-run
    stand_in.fail("UpdateService", grpc.StatusCode.UNAVAILABLE, applied=True)
    stand_in.updates                                # every change that was made, as its request
    stand_in.stop()

Time is the caller's: what is due has happened by the next call. Bodies are checked against the recorded ones.
Sources: google-cloud-run 0.16.2 (messages), docs/facts.md 4 (states, limits, wordings of refusals).
"""

import hashlib
import threading
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import grpc
from google.cloud import run_v2
from google.longrunning import operations_pb2
from google.protobuf import json_format

from tests.contracts import cloud_run_limits as limits

NOT_LISTENING = (
    "Revision '{revision}' is not ready and cannot serve traffic. The user-provided container failed the configured "
    "startup probe checks. Logs for this revision might contain more information."
)
GPU_QUOTA = "Quota exceeded for total allowable count of GPUs per project per region."
PAGE = 2  # revisions a page: small, so that a reader of the first page alone is found out


@dataclass(frozen=True, kw_only=True)
class Fate:
    """What becomes of a revision.

    ``up`` None never ends. ``operation``: honest, says_good (lies), says_bad (lies), never_ends, lost (known no more).
    """

    up: bool | None = True
    after_s: float = 300.0
    message: str = NOT_LISTENING
    crashes_after_s: float | None = None
    operation: str = "honest"


@dataclass
class Made:
    """A revision and where it stands."""

    pb: Any
    fate: Fate
    ends_at: datetime | None
    operation: Any = None
    state: str = "PENDING"


@dataclass
class Kept:
    """A service, its revisions in the order of their making, and its operations."""

    pb: Any
    revisions: dict[str, Made] = field(default_factory=dict)
    operations: list[Any] = field(default_factory=list)
    writes: int = 0


class StandIn:
    """The server, and what tests do to it."""

    def __init__(self, *, now: Callable[[], datetime], fate: Callable[[Any], Fate], gpus_allowed: int = 1) -> None:
        self._now = now
        self._fate = fate
        self.gpus_allowed = gpus_allowed
        self._kept: dict[str, Kept] = {}
        self._faults: list[tuple[str, grpc.StatusCode, str, bool]] = []
        self._lock = threading.RLock()
        self._server: grpc.Server | None = None
        self.port = 0
        self.calls: list[tuple[str, Any]] = []
        self.updates: list[Any] = []
        self.creations: list[Any] = []
        self.deletions: list[Any] = []
        self.uri = ""  # of a service that is created
        self.denied: set[str] = set()  # methods this identity may not call
        self.waits_s: list[tuple[str, float]] = []  # how long the caller waits for an answer, by method

    def put(self, body: dict[str, Any]) -> str:
        """Stand a service there as it was recorded; returns its full name."""
        pb = json_format.ParseDict(body, run_v2.Service.pb(run_v2.Service()), ignore_unknown_fields=False)
        kept = Kept(pb=pb)
        for full in dict.fromkeys((pb.latest_ready_revision, pb.latest_created_revision)):
            if full:
                ready = full == pb.latest_ready_revision
                made = Made(pb=_revision(pb, full, self._now()), fate=Fate(up=ready), ends_at=None)
                kept.revisions[full.rsplit("/", 1)[-1]] = made
                _set(made, "SUCCEEDED" if ready else "FAILED", "" if ready else pb.terminal_condition.message)
        self._kept[pb.name] = kept
        return pb.name

    def start(self) -> None:
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        ops, u = operations_pb2, "google.cloud.run.v2."
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(
                    u + "Services",
                    {
                        "GetService": self._method("GetService", run_v2.GetServiceRequest, self._get),
                        "UpdateService": self._method("UpdateService", run_v2.UpdateServiceRequest, self._update),
                        "CreateService": self._method("CreateService", run_v2.CreateServiceRequest, self._create),
                        "DeleteService": self._method("DeleteService", run_v2.DeleteServiceRequest, self._delete),
                    },
                ),
                grpc.method_handlers_generic_handler(
                    u + "Revisions",
                    {
                        "GetRevision": self._method("GetRevision", run_v2.GetRevisionRequest, self._get_revision),
                        "ListRevisions": self._method("ListRevisions", run_v2.ListRevisionsRequest, self._list),
                    },
                ),
                grpc.method_handlers_generic_handler(
                    "google.longrunning.Operations",
                    {
                        "GetOperation": self._method("GetOperation", ops.GetOperationRequest, self._operation),
                        "ListOperations": self._method("ListOperations", ops.ListOperationsRequest, self._operations),
                    },
                ),
            )
        )
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(None).wait()

    def channel(self) -> grpc.Channel:
        return grpc.insecure_channel(f"127.0.0.1:{self.port}")

    def fail(self, method: str, code: grpc.StatusCode, says: str = "scripted", *, applied: bool = False) -> None:
        """Let the next call of ``method`` end in an error; ``applied``: it is made all the same, its answer is lost."""
        self._faults.append((method, code, says, applied))

    def edit(self, name: str, change: Callable[[Any], None]) -> None:
        """Somebody else changes the service by hand, in place and at once."""
        with self._lock:
            kept = self._kept[name]
            change(kept.pb)
            self._touch(kept, spec=True)

    def _method(self, name: str, request: Any, handle: Callable[[Any, Any], Any]) -> Any:
        """Wrap a handler of protobuf messages: settle what is due, count, fail where it was asked for."""

        def run(req: Any, context: grpc.ServicerContext) -> Any:
            with self._lock:
                self._settle()
                self.calls.append((name, req))
                self.waits_s.append((name, context.time_remaining()))
                fault = next((f for f in self._faults if f[0] == name), None)
                if name in self.denied:
                    context.abort(grpc.StatusCode.PERMISSION_DENIED, f"Permission denied to call {name}")
                if fault is not None and not getattr(req, "validate_only", False):
                    self._faults.remove(fault)
                    if fault[3]:
                        handle(req, context)
                    context.abort(fault[1], fault[2])
                return handle(req, context)

        message = request.pb(request()).__class__ if hasattr(request, "pb") else request
        return grpc.unary_unary_rpc_method_handler(run, message.FromString, lambda m: m.SerializeToString())

    def _get(self, req: Any, context: Any) -> Any:
        return self._find(req.name, context).pb

    def _find(self, name: str, context: Any) -> Kept:
        if name not in self._kept:
            context.abort(
                grpc.StatusCode.NOT_FOUND, f"Resource '{name.rsplit('/', 1)[-1]}' of kind 'SERVICE' was not found."
            )
        return self._kept[name]

    def _get_revision(self, req: Any, context: Any) -> Any:
        service, _, short = req.name.partition("/revisions/")
        made = self._find(service, context).revisions.get(short)
        if made is None:
            context.abort(grpc.StatusCode.NOT_FOUND, f"Resource '{short}' of kind 'REVISION' was not found.")
        return made.pb

    def _list(self, req: Any, context: Any) -> Any:
        every = [m.pb for m in reversed(self._find(req.parent, context).revisions.values())]
        begin = int(req.page_token or 0)
        answer = run_v2.ListRevisionsResponse.pb(run_v2.ListRevisionsResponse())
        answer.revisions.extend(every[begin : begin + PAGE])
        answer.next_page_token = str(begin + PAGE) if begin + PAGE < len(every) else ""
        return answer

    def _operation(self, req: Any, context: Any) -> Any:
        known = (o for k in self._kept.values() for o in k.operations if o.name == req.name)
        found = next(known, None)
        if found is None:
            context.abort(grpc.StatusCode.NOT_FOUND, f"Operation '{req.name}' was not found.")
        return found

    def _operations(self, req: Any, context: Any) -> Any:
        mine = (o for k in self._kept.values() for o in reversed(k.operations) if o.name.startswith(req.name + "/"))
        return operations_pb2.ListOperationsResponse(operations=mine)

    def _update(self, req: Any, context: Any) -> Any:
        kept = self._find(req.service.name, context)
        wanted = _merged(kept.pb, req)
        if req.service.etag and req.service.etag != kept.pb.etag:
            context.abort(
                grpc.StatusCode.ABORTED,
                f"Conflict for resource '{_short(kept.pb.name)}': version '{req.service.etag}' was specified but "
                f"current version is '{kept.pb.etag}'.",
            )
        wrong = limits.complaints(wanted, frozenset(kept.revisions), gpus_allowed=self.gpus_allowed)
        if wrong:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "\n".join(wrong))
        new = wanted.template != kept.pb.template
        if new and wanted.template.revision in kept.revisions:
            says = f"Revision named '{wanted.template.revision}' with different configuration already exists."
            context.abort(grpc.StatusCode.ALREADY_EXISTS, says)
        if req.validate_only:
            done = operations_pb2.Operation(name=f"{_location(kept.pb.name)}/operations/dry-run", done=True)
            done.response.Pack(wanted)
            return done
        self.updates.append(req)
        return self._write(kept, wanted, new=new)

    def _create(self, req: Any, context: Any) -> Any:
        name = f"{req.parent}/services/{req.service_id}"
        if name in self._kept:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, f"Resource '{req.service_id}' already exists.")
        made = run_v2.Service.pb(run_v2.Service())
        wanted = _merged(made, run_v2.UpdateServiceRequest.pb(run_v2.UpdateServiceRequest(service=req.service)))
        wanted.name, wanted.uri = name, self.uri
        wrong = limits.complaints(wanted, frozenset(), gpus_allowed=self.gpus_allowed)
        if wrong:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "\n".join(wrong))
        if req.validate_only:
            return operations_pb2.Operation(name=f"{req.parent}/operations/dry-run", done=True)
        made.name, made.uri = name, self.uri
        made.uid = hashlib.sha256(f"{name} {len(self.creations)}".encode()).hexdigest()[:32]
        self.creations.append(req)
        self._kept[name] = Kept(pb=made)
        return self._write(self._kept[name], wanted, new=True)

    def _delete(self, req: Any, context: Any) -> Any:
        """A deletion takes its time; until then the service is there, with the time of its deletion on it."""
        kept = self._find(req.name, context)
        if req.etag and req.etag != kept.pb.etag:
            context.abort(grpc.StatusCode.ABORTED, f"Conflict for resource '{_short(req.name)}': version {req.etag!r}")
        operation = operations_pb2.Operation(name=f"{_location(req.name)}/operations/delete-{kept.writes}")
        if req.validate_only:
            return operation
        if kept.pb.HasField("delete_time"):
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"Resource '{_short(req.name)}' is being deleted.")
        self.deletions.append(req)
        kept.pb.delete_time.FromDatetime(self._now() + _s(60))
        self._touch(kept, spec=False)
        operation.metadata.Pack(kept.pb)
        kept.operations.append(operation)
        return operation

    def _write(self, kept: Kept, wanted: Any, *, new: bool) -> Any:
        kept.pb.template.CopyFrom(wanted.template)
        kept.pb.scaling.CopyFrom(wanted.scaling)
        kept.pb.annotations.clear()
        kept.pb.annotations.update(wanted.annotations)
        del kept.pb.traffic[:]
        kept.pb.traffic.extend(wanted.traffic)
        self._touch(kept, spec=True)
        number = hashlib.sha256(f"{kept.pb.name} {kept.writes}".encode()).hexdigest()
        name = f"{_location(kept.pb.name)}/operations/{number[:8]}-{number[8:12]}-{number[12:16]}-{number[16:20]}"
        operation = operations_pb2.Operation(name=name)
        operation.metadata.Pack(kept.pb)
        kept.operations.append(operation)
        if not new:
            _route(kept.pb)
            operation.done = True
            operation.response.Pack(kept.pb)
            return operation
        revision = kept.pb.template.revision or f"{_short(kept.pb.name)}-{kept.pb.generation:05d}-{number[:3]}"
        full = f"{kept.pb.name}/revisions/{revision}"
        fate = self._fate(kept.pb.template)
        ends = self._now() + _s(fate.after_s) if fate.up is not None else None
        kept.revisions[revision] = Made(
            pb=_revision(kept.pb, full, self._now()), fate=fate, ends_at=ends, operation=operation
        )
        kept.pb.latest_created_revision = full
        kept.pb.reconciling = True
        _condition(kept.pb.terminal_condition, "Ready", "RECONCILING", "")
        if fate.operation in {"says_good", "says_bad"}:
            _end(operation, kept.pb, "" if fate.operation == "says_good" else "an internal error occurred")
        answer = operations_pb2.Operation()
        answer.CopyFrom(operation)
        return answer

    def _settle(self) -> None:
        due = [n for n, k in self._kept.items() if k.pb.HasField("delete_time")]
        for name in due:
            if self._now() >= self._kept[name].pb.delete_time.ToDatetime(self._now().tzinfo):
                del self._kept[name]
        for kept in self._kept.values():
            for name, made in list(kept.revisions.items()):
                if made.ends_at is None or self._now() < made.ends_at:
                    continue
                if made.state == "PENDING":
                    self._come_up(kept, name, made)
                crash = made.fate.crashes_after_s
                if made.state == "SUCCEEDED" and crash is not None and self._now() >= made.ends_at + _s(crash):
                    _set(made, "FAILED", f"The container of revision '{name}' exited with an error.")
                    self._tell(kept, name, made)

    def _come_up(self, kept: Kept, name: str, made: Made) -> None:
        says = "" if made.fate.up else made.fate.message.format(revision=name)
        _set(made, "SUCCEEDED" if made.fate.up else "FAILED", says)
        if made.fate.up:
            kept.pb.latest_ready_revision = made.pb.name
        self._tell(kept, name, made)
        if made.operation is None or made.fate.operation in {"never_ends", "says_good", "says_bad"}:
            return
        if made.fate.operation == "lost":
            kept.operations.remove(made.operation)
        else:
            _end(made.operation, kept.pb, says)

    def _tell(self, kept: Kept, name: str, made: Made) -> None:
        """Carry a revision's state to its service, where it is the newest."""
        if kept.pb.latest_created_revision != made.pb.name:
            return
        says = made.pb.conditions[0].message
        kept.pb.reconciling = False
        _condition(kept.pb.terminal_condition, "Ready", made.state, says)
        del kept.pb.conditions[:]
        for kind in ("RoutesReady", "ConfigurationsReady"):
            _condition(kept.pb.conditions.add(), kind, made.state, says)
        if made.state == "SUCCEEDED":
            kept.pb.observed_generation = kept.pb.generation
            _route(kept.pb)
        self._touch(kept, spec=False)

    def _touch(self, kept: Kept, *, spec: bool) -> None:
        """A new etag, for a change of state too: nobody may rely on it to stand still while a rollout runs."""
        kept.writes += 1
        kept.pb.generation += 1 if spec else 0
        kept.pb.etag = f'"{hashlib.sha256(f"{kept.pb.uid} {kept.writes}".encode()).hexdigest()[:20]}"'


def _merged(current: Any, req: Any) -> Any:
    """The service as it would be: what the mask names is replaced whole; without a mask, all that a caller may set."""
    wanted = type(current)()
    wanted.CopyFrom(current)
    for path in list(req.update_mask.paths) or ["template", "traffic", "labels", "annotations", "scaling", "ingress"]:
        wanted.ClearField(path)
        source = type(current)()
        source.CopyFrom(req.service)
        for other, _ in req.service.ListFields():
            if other.name != path:
                source.ClearField(other.name)
        wanted.MergeFrom(source)
    if not wanted.traffic:
        wanted.traffic.add(type_="TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", percent=100)
    container = wanted.template.containers[0] if wanted.template.containers else None
    if container is not None and not container.HasField("startup_probe"):
        port = container.ports[0].container_port if container.ports else 8080
        probe = container.startup_probe
        probe.timeout_seconds, probe.period_seconds, probe.failure_threshold = 240, 240, 1
        probe.tcp_socket.port = port
    return wanted


def _revision(service: Any, full: str, at: datetime) -> Any:
    """A revision of the template as it stands: the fields that both messages have."""
    revision = run_v2.Revision.pb(run_v2.Revision())
    for name, value in (
        (f.name, v) for f, v in service.template.ListFields() if f.name in revision.DESCRIPTOR.fields_by_name
    ):
        held = getattr(revision, name)
        if name in {"labels", "annotations"}:
            held.update(value)
        elif hasattr(held, "extend"):
            held.extend(value)
        elif hasattr(held, "CopyFrom"):
            held.CopyFrom(value)
        else:
            setattr(revision, name, value)
    revision.name, revision.service, revision.generation = full, _short(service.name), 1
    revision.create_time.FromDatetime(at)
    _condition(revision.conditions.add(), "Ready", "PENDING", "")
    return revision


def _set(made: Made, state: str, says: str) -> None:
    made.state = state
    _condition(made.pb.conditions[0], "Ready", state, says)


def _condition(condition: Any, kind: str, state: str, says: str) -> None:
    condition.Clear()
    condition.type_, condition.message = kind, says
    condition.state = condition.DESCRIPTOR.fields_by_name["state"].enum_type.values_by_name[f"CONDITION_{state}"].number
    if state == "FAILED":
        reason = condition.DESCRIPTOR.fields_by_name["revision_reason"].enum_type.values_by_name
        condition.revision_reason = reason["HEALTH_CHECK_CONTAINER_ERROR"].number


def _end(operation: Any, service: Any, error: str) -> None:
    operation.done = True
    if error:
        operation.error.code, operation.error.message = 13, error
    else:
        operation.response.Pack(service)


def _route(service: Any) -> None:
    """The traffic as it is served now; a tag has an address of its own."""
    del service.traffic_statuses[:]
    for target in service.traffic:
        status = service.traffic_statuses.add(
            type_=target.type_, revision=target.revision, percent=target.percent, tag=target.tag
        )
        if target.tag:
            scheme, _, host = service.uri.partition("://")
            on_loopback = host.startswith("127.0.0.1")
            status.uri = f"{service.uri}/{target.tag}" if on_loopback else f"{scheme}://{target.tag}---{host}"


def _s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def _short(name: str) -> str:
    return name.rsplit("/", 1)[-1]


def _location(name: str) -> str:
    return name.split("/services/", 1)[0]
