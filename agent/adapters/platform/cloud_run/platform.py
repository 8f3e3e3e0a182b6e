"""Cloud Run as a platform: the Admin API v2 describes and changes services, one revision for each approved change."""

from collections.abc import Callable, Mapping
from typing import Any

from agent.adapters.platform.cloud_run.api import CloudRunApi
from agent.adapters.platform.cloud_run.describe import config_of, live_of, short
from agent.adapters.platform.cloud_run.edit import edited
from agent.adapters.platform.cloud_run.lifecycle import (
    deleted,
    deleting,
    is_stopped,
    new_template,
    resume,
    stop,
    stop_of,
    stopping,
    was_stopped,
)
from agent.adapters.platform.cloud_run.measure import Meter
from agent.adapters.platform.cloud_run.rollout import gives_all, rollout, shifting
from agent.adapters.platform.cloud_run.template import (
    bare,
    effect_of,
    service_text,
    stamped,
    targets_of,
    template_of,
    text_of,
    traffic_of,
)
from agent.adapters.platform.refusals import no_such_revision, state_changed, watched
from agent.adapters.platform.traffic import LATEST, check_not_pinned, parsed_traffic, shifted_traffic, staged_traffic
from agent.adapters.platform.work import Work, work_of
from agent.core.change.verification import Measurement
from agent.core.plan.action import NO_SERVICE, LifecycleOperation, applied
from agent.core.plan.lifecycle import NOT_THERE, lifecycle_of
from agent.core.service.serving import Live, Traffic
from agent.errors import InputRejected, PolicyRefused, StateConflict
from agent.ports.control import LeaseEnd
from agent.ports.model_server import ModelServer
from agent.ports.platform import NotDeployed, Operation, Order, Restore, seconds_to_send


class CloudRunPlatform:
    """Describes and changes the services of ``services.toml`` on Cloud Run.

    Args:
        api: The Admin API.
        names: Full resource name by service, ``projects/P/locations/L/services/S``.
        meter: Measures a revision that is ready.
        spare: How many accelerators are free beside the running ones, by service, as services.toml says; the API does
            not tell, so None where nobody did.
    """

    def __init__(
        self,
        api: CloudRunApi,
        names: Mapping[str, str],
        meter: Meter,
        *,
        spare: Callable[[str], int | None] = lambda _: None,
    ) -> None:
        self._api = api
        self._names = dict(names)
        self._meter = meter
        self._spare = spare

    def describe(self, service: str) -> Live:
        """Return the service as it is now: two reads."""
        found = self._api.service(self._name(service))
        revisions = self._api.revisions(found.name)
        return live_of(found, revisions, spare_accelerator=self._room(service, found))

    def validate(self, order: Order) -> None:
        """Let Cloud Run check a change, etag and all, without making it."""
        operation, name = lifecycle_of(order.actions), self._name(order.service)
        if operation is LifecycleOperation.CREATE:
            self._api.create(*_place(name), _created(order), dry_run=True)
            return
        current = self._api.service(name)
        if operation is LifecycleOperation.DELETE:
            self._api.delete(name, etag=order.etag, dry_run=True)
            return
        request, mask = self._change(current, order)
        self._api.update(request, mask=mask, dry_run=True)

    def apply(self, order: Order) -> Operation:
        """Start the change with the order's own etag, or return what this effect started before."""
        operation = lifecycle_of(order.actions)
        if operation is LifecycleOperation.CREATE:
            return self._create(order)
        current = self._api.service(self._name(order.service))
        found = self._ours(current, order.effect_key)
        if found is not None:
            return found
        if operation is LifecycleOperation.DELETE:
            return self._delete(current, order)
        self._unchanged(current, order.etag)
        request, mask = self._change(current, order)
        return self._start(request, mask, order)

    def restore(self, order: Restore) -> Operation:
        """Start putting a prior template and traffic back, or return what this effect started before."""
        current = self._api.service(self._name(order.service))
        found = self._ours(current, order.effect_key)
        if found is not None:
            return found
        if not order.template:
            return self._delete(current, order)
        self._unchanged(current, order.etag)
        same = bare(text_of(current.template)) == bare(text_of(template_of(order.template)))
        if same and was_stopped(order.template):
            request = _request(current.name, order.etag)
            return self._start(request, stop(request, current, order), order)
        template = stamped(
            template_of(order.template), revision=order.revision, effect_key=order.effect_key, incident=order.incident
        )
        traffic = parsed_traffic(order.traffic)
        request = _request(current.name, order.etag, template=template, traffic=traffic)
        above: tuple[str, ...] = ()
        if was_stopped(order.template):
            above = stop(request, current, order)
        elif is_stopped(current):
            above = resume(request, current)
        return self._start(request, ("template", "traffic", *above), order)

    def shift(self, service: str, *, revision: str, etag: str, effect_key: str, lease_end: LeaseEnd) -> Operation:  # noqa: ARG002 - no revision is made, so none is stamped; the traffic itself tells that it was done
        """Give all traffic to a revision; where the policy before it was staged followed the latest, so again."""
        current = self._api.service(self._name(service))
        work = Work(service=current.name, aim=f"traffic/{revision}")
        before = traffic_of(current.traffic)
        if gives_all(before, revision, current):
            return shifting(work, current)
        self._unchanged(current, etag)
        traffic = shifted_traffic(before, revision, latest_ready=short(current.latest_ready_revision))
        request, left_s = _request(current.name, etag, traffic=traffic), seconds_to_send(lease_end, service)
        self._api.update(request, mask=("traffic",), dry_run=False, within_s=left_s)
        return work.operation(None, f"the traffic is being moved to {revision}")

    def find(self, service: str, effect_key: str) -> Operation | None:
        """Return the operation of an effect by its stamp, on the template or on a revision, or None."""
        return self._ours(self._api.service(self._name(service)), effect_key)

    def operation(self, name: str) -> Operation:
        """Return how far an operation has come; it is trusted only together with the revision's own state."""
        work = work_of(name)
        self._watched(work.service)
        native = self._api.operation(work.native) if work.native else None
        try:
            service = self._api.service(work.service)
        except NotDeployed:
            if not work.aim.startswith("deletion/"):
                raise
            return deleted(work)
        if work.aim.startswith("deletion/"):
            return deleting(work, native)
        if work.aim.startswith("scaling/"):
            return stopping(work, service)
        if work.aim.startswith("traffic/"):
            return shifting(work, service)
        return rollout(work, native, service, self._api.revision(f"{work.service}/{work.aim}"))

    def restored(self, service: str, *, template: str, traffic: str) -> bool:
        """Whether template and traffic equal the prior ones, but for revision name and stamp."""
        try:
            current = self._api.service(self._name(service))
        except NotDeployed:
            return not template
        if not template:
            return False
        same = bare(service_text(current)) == bare(template)
        return same and traffic_of(current.traffic) == parsed_traffic(traffic)

    def measure(self, service: str, revision: str) -> tuple[Measurement, ...]:
        """Measure a revision: its Ready condition, then one real completion, its tokens and its speed."""
        current = self._api.service(self._name(service))
        found = self._api.revision(f"{current.name}/revisions/{revision}")
        if found is None:
            raise no_such_revision(revision, f"service {service!r} has none of that name")
        work = Work(service=current.name, aim=f"revisions/{revision}")
        return self._meter.measure(service, revision, rollout(work, None, current, found), current)

    def server(self, service: str) -> ModelServer:
        """Return the server of a service that never scales to zero; one read of the Admin API."""
        return self._meter.server(service, self._api.service(self._name(service)))

    def _change(self, current: Any, order: Order) -> tuple[Any, tuple[str, ...]]:
        """Return the service to send and what of it is to be replaced."""
        operation = lifecycle_of(order.actions)
        if operation is LifecycleOperation.STOP:
            request = _request(current.name, order.etag)
            return request, stop(request, current, order)
        template = edited(current.template, order.actions, scaled_above=_scaled_above(current))
        template = stamped(template, revision=order.revision, effect_key=order.effect_key, incident=order.incident)
        if order.staged:
            before, serving = traffic_of(current.traffic) or LATEST, short(current.latest_ready_revision)
            traffic = staged_traffic(before, order.revision, serving=serving)
            return _request(current.name, order.etag, template=template, traffic=traffic), ("template", "traffic")
        if operation is LifecycleOperation.START:
            request = _request(current.name, order.etag, template=template)
            return request, ("template", *resume(request, current))
        check_not_pinned(order.service, traffic_of(current.traffic))
        return _request(current.name, order.etag, template=template), ("template",)

    def _create(self, order: Order) -> Operation:
        """Create the service, or return what this effect created before; one that stands without its stamp stays."""
        name = self._name(order.service)
        try:
            found = self._ours(self._api.service(name), order.effect_key)
        except NotDeployed:
            found = None
            if order.etag == NOT_THERE:
                return self._created(name, order)
        if found is None:
            raise state_changed(
                f"service {order.service!r} was not created",
                "it stands already, without this effect's stamp, or is gone since",
            )
        return found

    def _created(self, name: str, order: Order) -> Operation:
        (location, short_name), made = _place(name), _created(order)
        left_s = seconds_to_send(order.lease_end, order.service)
        native = self._api.create(location, short_name, made, dry_run=False, within_s=left_s)
        work = Work(service=name, aim=f"revisions/{order.revision}", native=native.name)
        return work.operation(None, f"{order.service} is being created")

    def _delete(self, current: Any, order: Order | Restore) -> Operation:
        """Delete exactly the state that the order was made for; a deletion under way is not ordered again."""
        work = Work(service=current.name, aim=f"deletion/{order.revision}")
        if current.HasField("delete_time"):
            return deleting(work, None)
        self._unchanged(current, order.etag)
        left_s = seconds_to_send(order.lease_end, order.service)
        native = self._api.delete(current.name, etag=order.etag, dry_run=False, within_s=left_s)
        return deleting(work.with_(native=native.name), None)

    def _room(self, service: str, found: Any) -> bool | None:
        """Whether a second revision can come up beside the first: one instance of it, or as many as must be awake."""
        if not found.template.node_selector.accelerator:
            return True
        free, config = self._spare(service), config_of(found.template)
        awake = max(config.min_instances, found.scaling.min_instance_count, 1)
        return None if free is None else free >= awake * config.accelerator_count

    def _start(self, request: Any, mask: tuple[str, ...], order: Order | Restore) -> Operation:
        """Check, then call once. A conflict may be our own earlier call: the stamp decides."""
        try:
            self._api.update(request, mask=mask, dry_run=True)
            left_s = seconds_to_send(order.lease_end, order.service)
            native = self._api.update(request, mask=mask, dry_run=False, within_s=left_s)
        except StateConflict:
            found = self._ours(self._api.service(request.name), order.effect_key)
            if found is None:
                raise
            return found
        if "template" not in mask:  # no revision comes up: the service alone tells how far a stop is
            work = Work(service=request.name, aim=f"scaling/{order.revision}")
            return work.operation(None, f"{order.service} is being stopped")
        work = Work(service=request.name, aim=f"revisions/{order.revision}", native=native.name)
        return work.operation(None, f"{order.revision} is starting")

    def _ours(self, current: Any, effect_key: str) -> Operation | None:
        """Look for the stamp: on the template at once, on revisions for as long as they are kept."""
        stopped = stop_of(current, effect_key)
        if stopped is not None:
            return stopping(stopped, current)
        template = current.template
        if effect_of(template.revision, template.labels) == effect_key:
            revision = template.revision
        else:
            listed = ((short(r.name), r.labels) for r in self._api.revisions(current.name))
            revision = next((name for name, labels in listed if effect_of(name, labels) == effect_key), "")
        if not revision:
            return None
        native = self._native(current.name, effect_key)
        work = Work(service=current.name, aim=f"revisions/{revision}", native=native.name if native else "")
        return rollout(work, native, current, self._api.revision(f"{work.service}/{work.aim}"))

    def _native(self, service: str, effect_key: str) -> Any | None:
        """Return the platform's operation for a stamp; None where it is gone, or where we may not list them."""
        from google.cloud import run_v2

        try:
            listed = self._api.operations(service.split("/services/", 1)[0])
        except PolicyRefused:
            return None
        for operation in listed:
            about = run_v2.Service.pb(run_v2.Service())
            if not operation.metadata.Unpack(about):
                continue
            if about.name == service and effect_of(about.template.revision, about.template.labels) == effect_key:
                return operation
        return None

    def _unchanged(self, current: Any, etag: str) -> None:
        """What we edit must be what the etag stands for; the platform checks the etag once more."""
        if current.etag != etag:
            raise state_changed(
                f"service {short(current.name)!r} was not changed",
                f"its etag is {current.etag}, the change was made for {etag}",
            )

    def _name(self, service: str) -> str:
        return watched(self._names, service, "Cloud Run")

    def _watched(self, name: str) -> None:
        if name not in self._names.values():
            raise InputRejected(
                f"operation on {name!r} was not read", why="that service is not watched", hint="add it to services.toml"
            )


def _place(name: str) -> tuple[str, str]:
    """Return location and short name of a full resource name."""
    location, _, short_name = name.partition("/services/")
    return location, short_name


def _created(order: Order) -> Any:
    """Return the ``Service`` that a creation sends."""
    from google.cloud import run_v2

    config = applied(NO_SERVICE, order.actions)
    service = run_v2.Service(traffic=targets_of(LATEST))
    template = stamped(
        new_template(config), revision=order.revision, effect_key=order.effect_key, incident=order.incident
    )
    run_v2.Service.pb(service).template.CopyFrom(template)
    return service


def _request(name: str, etag: str, *, template: Any = None, traffic: tuple[Traffic, ...] = ()) -> Any:
    """Return a ``Service`` that holds what an update replaces, and the etag it was made for."""
    from google.cloud import run_v2

    service = run_v2.Service(name=name, etag=etag, traffic=targets_of(traffic))
    if template is not None:
        run_v2.Service.pb(service).template.CopyFrom(template)
    return service


def _scaled_above(current: Any) -> bool:
    scaling = current.scaling
    manual = scaling.HasField("manual_instance_count")
    return bool(manual or scaling.min_instance_count or scaling.max_instance_count)
