"""A TPU node, its queued resource and its report as our typed service."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from agent.adapters.platform.rehearsal.template import stamped, template_of
from agent.adapters.platform.tpu_vm.node_metadata import NodeMetadata, Report
from agent.adapters.platform.tpu_vm.startup_script import docker_run
from agent.adapters.platform.traffic import LATEST
from agent.core.service.container_args import flag_map
from agent.core.service.serving import Live, ServingConfig
from agent.core.value import Value, digest

STALE: Final = timedelta(minutes=5)  # the node's script reports once a minute
CHIPS: Final = {"v6e": "tpu-v6e", "v5litepod": "tpu-v5e"}  # types whose number counts chips
ON_THE_WAY: Final = frozenset({"CREATING", "RESTARTING", "REIMAGING", "REPAIRING", "STARTING", "UNHIDING"})
WAITING: Final = frozenset({"CREATING", "ACCEPTED", "PROVISIONING", "WAITING_FOR_RESOURCES"})
HOLDS_QUOTA: Final = frozenset({"SUSPENDED", "FAILED"})
PORT: Final = 8000


class NodeRef(Value):
    """Where a service stands.

    Attributes:
        node: ``projects/P/locations/Z/nodes/N``.
        queued_resource: ``projects/P/locations/Z/queuedResources/Q`` of the node; None where none is named.
    """

    service: str
    node: str
    queued_resource: str | None = None


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A service as it was read.

    Attributes:
        node: The ``Node``; None where only its queued resource is there.
        queued: The ``QueuedResource``, where it was needed.
        report: What the node's script said; None where nothing.
        now: When it was read.
    """

    ref: NodeRef
    node: Any | None
    queued: Any | None
    metadata: NodeMetadata
    report: Report | None
    now: datetime

    @property
    def revision(self) -> str:
        """The revision that the node is to run."""
        return template_of(self.template).revision

    @property
    def template(self) -> str:
        """What the node is to run; read from the words of ``docker run`` where a script of somebody else starts it."""
        if self.metadata.template:
            return self.metadata.template
        return stamped(docker_run(self.metadata.script).config, self.ref.node.rpartition("/")[2], None, None)

    @property
    def config(self) -> ServingConfig:
        """What runs, with the node's own hardware; a node that does not say otherwise runs one container."""
        config = template_of(self.template).config
        accelerator, count = hardware(self._spec)
        most = 1 if config.max_instances is None else config.max_instances
        known = {"accelerator": accelerator, "accelerator_count": count} if accelerator else {}
        return config.with_(max_instances=most, **known)

    @property
    def _spec(self) -> Any:
        return self.node if self.node is not None else self.queue_entry.tpu.node_spec[0].node

    @property
    def queue_entry(self) -> Any:
        """The ``QueuedResource``, where there is no node."""
        assert self.queued is not None, "one of the two is there, or the service is not deployed"
        return self.queued

    @property
    def url(self) -> str:
        """Where the server is asked: the first worker's address inside its network; empty without one."""
        endpoints = list(self.node.network_endpoints) if self.node is not None else []
        flag = flag_map(self.config.args).get("port", "")
        port = int(flag) if flag.isdecimal() else PORT
        return f"http://{endpoints[0].ip_address}:{port}" if endpoints and endpoints[0].ip_address else ""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far the newest revision is.

    Attributes:
        ready: Whether it serves; None while it is not known.
        under_way: Whether that will still change by itself.
        ended: Whether nothing of it runs because it was stopped.
    """

    ready: bool | None
    under_way: bool
    says: str
    ended: bool = False


def progress(seen: Seen) -> Progress:
    """Return how far the newest revision of a service is."""
    if seen.node is None:
        return _waiting(seen.queue_entry)
    state = seen.node.state.name
    if state != "READY":
        more = f": {seen.node.health_description}" if seen.node.health_description else ""
        coming = state in ON_THE_WAY
        return Progress(ready=None if coming else False, under_way=coming, says=f"the TPU node is {state}{more}")
    if not seen.metadata.template:
        return Progress(ready=None, under_way=False, says=docker_run(seen.metadata.script).says)
    report = seen.report
    if report is None:
        says = "the node has reported nothing: its startup script has not run, or guest attributes are switched off"
        return Progress(ready=None, under_way=bool(seen.metadata.effects.effects), says=says)
    age = seen.now - datetime.fromtimestamp(report.at, UTC)
    if age > STALE:
        says = f"the node has reported nothing for {age.total_seconds() / 60:.0f} minutes; then: {report.says}"
        return Progress(ready=None, under_way=False, says=says)
    return _reported(seen, report)


def _reported(seen: Seen, report: Report) -> Progress:
    if report.revision != seen.revision:
        says = f"the node has not taken up {seen.revision} yet; {report.revision or 'nothing'} is {report.state}"
        return Progress(ready=None, under_way=True, says=says)
    ready = {"ready": True, "failed": False, "stopped": False}.get(report.state)
    preempted = "the node is being taken back (preempted); " if report.preempted else ""
    says = preempted + report.says + _symptoms(seen.node)
    return Progress(ready=ready, under_way=ready is None, says=says, ended=report.state == "stopped")


def live_of(seen: Seen) -> Live:
    """Return a service as it was read."""
    at, config = progress(seen), seen.config
    return Live(
        service=seen.ref.service,
        platform="tpu_vm",
        config=config,
        uid=str(seen.node.id or seen.ref.node) if seen.node is not None else str(seen.ref.queued_resource),
        generation=seen.metadata.effects.generation,
        etag=etag_of(seen),
        template=seen.template,
        traffic=LATEST,
        latest_ready_revision=seen.report.ready_revision if seen.report is not None else None,
        latest_created_revision=seen.revision,
        stamps={e.revision: e.key for e in seen.metadata.effects.effects},
        ready=at.ready,
        reconciling=at.under_way,
        message=at.says,
        spare_accelerator=False,
        resumes_with=(0, 1) if config.max_instances == 0 else None,
        url=seen.url,
        can_stage=False,
    )


def etag_of(seen: Seen) -> str:
    """Return the version token: of the node its metadata, of a queued resource without a node its state too."""
    if seen.node is not None:
        return digest([str(seen.node.id), seen.metadata.etag])
    queued = seen.queue_entry
    return digest([queued.name, str(queued.create_time), queued.state.state.name, seen.metadata.etag])


def hardware(spec: Any) -> tuple[str | None, int]:
    """Return the catalogue's name and the number of chips of a node, such as tpu-v6e and 4 of ``v6e-4``."""
    kind, _, count = str(spec.accelerator_type).partition("-")
    if kind in CHIPS and count.isdecimal():
        return CHIPS[kind], int(count)
    kind = spec.accelerator_config.type_.name.lower().replace("_", "")
    sides = str(spec.accelerator_config.topology).split("x")
    if kind not in CHIPS or not all(side.isdecimal() for side in sides):
        return None, 1
    chips = 1
    for side in sides:
        chips *= int(side)
    return CHIPS[kind], chips


def _waiting(queued: Any) -> Progress:
    """Why there is no node."""
    state, name = queued.state.state.name, queued.name.rpartition("/")[2]
    by = queued.state.state_initiator.name
    said = f"queued resource {name!r} is {state}"
    if state in {"SUSPENDED", "SUSPENDING"}:
        why = "spot capacity was taken back" if by == "SERVICE" and "spot" in queued else f"by the {by.lower()}"
        said += f" ({why}), it has no node and holds quota until it is deleted"
    elif state == "FAILED":
        said += f": {queued.state.failed_data.error.message or 'no reason given'}; it holds quota until it is deleted"
    elif state == "WAITING_FOR_RESOURCES":
        said += f": {_wanted(queued)} has no free capacity in {queued.name.split('/')[3]}; it waits{_until(queued)}"
    return Progress(ready=None if state in WAITING else False, under_way=state in {*WAITING, "DELETING"}, says=said)


def _wanted(queued: Any) -> str:
    return next((s.node.accelerator_type for s in queued.tpu.node_spec if s.node.accelerator_type), "the TPU")


def _until(queued: Any) -> str:
    policy = queued.queueing_policy
    if "valid_until_time" in policy:
        return f" until {policy.valid_until_time.isoformat()}"
    if "valid_until_duration" in policy:
        return f" {policy.valid_until_duration.total_seconds() / 3600:.1f} h at most"
    return " without a limit"


def _symptoms(node: Any) -> str:
    newest = [s.symptom_type.name for s in node.symptoms][-3:]
    return f"; Cloud TPU names {', '.join(newest)}" if newest else ""
