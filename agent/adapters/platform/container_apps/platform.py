"""Azure Container Apps as a platform: ARM describes and changes apps, one revision for each approved change."""

from collections.abc import Callable, Mapping

from agent.adapters.platform.container_apps.api import ContainerAppsApi
from agent.adapters.platform.container_apps.app_ref import LONGEST_APP, AppRef, Json, Seen
from agent.adapters.platform.container_apps.describe import config_of, live_of, stamps_of
from agent.adapters.platform.container_apps.edit import change_patch, prior_patch, shift_patch
from agent.adapters.platform.container_apps.lifecycle import new_app, stop_of, stop_tags
from agent.adapters.platform.container_apps.measure import Meter
from agent.adapters.platform.container_apps.rollout import (
    Second,
    deleting,
    gives_all,
    later_revision,
    rollout,
    second_call,
    shifting,
    stopping,
)
from agent.adapters.platform.container_apps.template import (
    bare,
    parsed,
    tags_with,
    text_of,
    traffic_of,
    version_token,
    was_stopped,
)
from agent.adapters.platform.refusals import no_such_revision, state_changed, watched
from agent.adapters.platform.traffic import parsed_traffic
from agent.adapters.platform.work import Work, work_of
from agent.core.change.verification import Measurement
from agent.core.plan.action import NO_SERVICE, LifecycleOperation, applied
from agent.core.plan.lifecycle import NOT_THERE, lifecycle_of
from agent.core.service.serving import Live
from agent.errors import InputRejected, StateConflict
from agent.ports.control import LeaseEnd
from agent.ports.model_server import ModelServer
from agent.ports.platform import NotDeployed, Operation, Order, Restore, seconds_to_send


class ContainerAppsPlatform:
    """Describes and changes the container apps of ``services.toml``.

    Args:
        api: One subscription.
        apps: What is watched, by service.
        meter: Measures a revision that is ready.
        spare: How many accelerators are free beside the running ones, by service, as services.toml says.
    """

    def __init__(
        self,
        api: ContainerAppsApi,
        apps: Mapping[str, AppRef],
        meter: Meter,
        *,
        spare: Callable[[str], int | None] = lambda _: None,
    ) -> None:
        self._api = api
        self._apps = dict(apps)
        self._meter = meter
        self._spare = spare

    def describe(self, service: str) -> Live:
        """Return the app as it is now: app, revisions, and its environment once."""
        seen = self._seen(service)
        return live_of(seen, spare_accelerator=self._room(seen))

    def validate(self, order: Order) -> None:
        """Check a change by Azure's published limits, as ARM has no dry run for container apps; nothing is sent."""
        operation = lifecycle_of(order.actions)
        if operation is LifecycleOperation.CREATE:
            self._new(order)
            return
        seen = self._seen(order.service)
        self._unchanged(seen, order.etag)
        if operation not in {LifecycleOperation.DELETE, LifecycleOperation.STOP}:
            change_patch(seen, order)

    def apply(self, order: Order) -> Operation:
        """Start the change, or return what this effect started before."""
        operation = lifecycle_of(order.actions)
        if operation is LifecycleOperation.CREATE:
            return self._create(order)
        seen = self._seen(order.service)
        if operation is LifecycleOperation.DELETE:
            return self._delete(seen, order)
        if operation is LifecycleOperation.STOP:
            return self._stop(seen, order)
        found = self._ours(seen, order.effect_key)
        if found is not None:
            return self._finished(seen, order, found)
        self._unchanged(seen, order.etag)
        self._free(seen, order.revision)
        second = Second.START if seen.is_stopped else None
        return self._change(seen, order, change_patch(seen, order), second)

    def restore(self, order: Restore) -> Operation:
        """Start putting a prior template and traffic back, or return what this effect started before."""
        seen = self._seen(order.service)
        if not order.template:
            return self._delete(seen, order)
        found = self._ours(seen, order.effect_key)
        if found is not None:
            return self._finished(seen, order, found)
        stops = was_stopped(order.template)
        if stops and _running(bare(text_of(seen))) == _running(bare(order.template)):
            return self._stop(seen, order)
        self._unchanged(seen, order.etag)
        self._free(seen, order.revision)
        second = Second.STOP if stops else Second.START if seen.is_stopped else None
        return self._change(seen, order, prior_patch(seen, order), second)

    def shift(self, service: str, *, revision: str, etag: str, effect_key: str, lease_end: LeaseEnd) -> Operation:  # noqa: ARG002 - no revision is made, so none is stamped; the traffic itself tells that it was done
        """Give all traffic to a revision; where the weights before it was staged followed the latest, so again."""
        seen = self._seen(service)
        work = Work(service=service, aim=f"traffic/{revision}")
        if gives_all(seen, revision):
            return shifting(work, seen)
        self._unchanged(seen, etag)
        patch = shift_patch(seen, revision)
        within_s = seconds_to_send(lease_end, service)
        path = self._api.update(seen.ref, patch, within_s=within_s)
        return work.with_(native=path).operation(None, f"the traffic is being moved to {revision}")

    def find(self, service: str, effect_key: str) -> Operation | None:
        """Return the operation of an effect by its stamp, on a revision or among the app's tags, or None."""
        seen = self._seen(service)
        stop = stop_of(seen, effect_key)
        if stop is not None and seen.is_stopped:
            return stopping(stop, seen)
        return self._ours(seen, effect_key)

    def operation(self, name: str) -> Operation:
        """Return how far an operation has come; ARM's word is trusted only together with the revision's own state."""
        work = work_of(name, plain=True)
        ref = self._ref(work.service)
        arm = self._api.operation(work.native) if work.native else None
        try:
            seen = self._api.seen(ref)
        except NotDeployed:
            if not work.aim.startswith("deletion/"):
                raise
            return work.operation(True, f"{work.service} is not there any more")
        if work.aim.startswith("deletion/"):
            return deleting(work, arm)
        if work.aim.startswith("scaling/"):
            return stopping(work, seen, arm)
        if work.aim.startswith("traffic/"):
            return shifting(work, seen, arm)
        return rollout(work, seen, arm)

    def restored(self, service: str, *, template: str, traffic: str) -> bool:
        """Whether template and traffic equal the prior ones, but for revision name and stamp."""
        try:
            seen = self._seen(service)
        except NotDeployed:
            return not template
        if not template:
            return False
        return bare(text_of(seen)) == bare(template) and traffic_of(seen) == parsed_traffic(traffic)

    def measure(self, service: str, revision: str) -> tuple[Measurement, ...]:
        """Measure a revision: its own state, then one real completion, its tokens and its speed."""
        seen = self._seen(service)
        native = seen.ref.native(revision)
        if native != seen.newest and seen.revision(native) is None:
            raise no_such_revision(revision, f"{service!r} has none of that name")
        work = Work(service=service, aim=f"revisions/{revision}")
        return self._meter.measure(seen, revision, rollout(work, seen, None))

    def server(self, service: str) -> ModelServer:
        """Return the server of an app that never scales to zero."""
        return self._meter.server(self._seen(service))

    def _change(self, seen: Seen, order: Order | Restore, patch: Json, second: Second | None) -> Operation:
        """Send a patch once, then start a stopped app. A conflict may be our own earlier call: the stamp decides.

        Args:
            seen: The app.
            order: Whose effect it is.
            patch: What to send.
            second: What is to follow it. A stop waits for the end of the patch, as Azure would refuse it before.
        """
        tags = tags_with(seen, {second.tag: order.revision} if second else {})
        patch = patch | ({"tags": tags} if second or None in tags.values() else {})
        within_s = seconds_to_send(order.lease_end, order.service)
        try:
            path = self._api.update(seen.ref, patch, within_s=within_s)
        except StateConflict:
            found = self._ours(self._seen(order.service), order.effect_key)
            if found is None:
                raise
            return found
        work = Work(service=order.service, aim=f"revisions/{order.revision}", native="" if second else path)
        made = work.operation(None, f"{order.revision} is starting", seen.ref.native(order.revision))
        return self._switched(seen, order, made, second) if second is Second.START else made

    def _finished(self, seen: Seen, order: Order | Restore, found: Operation) -> Operation:
        """Do what remains of an effect whose first half was found, if anything.

        Raises:
            StateConflict: Somebody else's revision is the newest by now.
        """
        second = second_call(seen, order.revision)
        if second is None:
            return found
        follows = later_revision(seen, order.revision)
        if follows:
            what = f"{order.service!r} was not {'started' if second is Second.START else 'stopped'}"
            raise state_changed(what, follows)
        return self._switched(seen, order, found, second) if found.remains else found

    def _switched(self, seen: Seen, order: Order | Restore, found: Operation, second: Second) -> Operation:
        """Start or stop an app whose template is in place."""
        call = self._api.start if second is Second.START else self._api.stop
        within_s = seconds_to_send(order.lease_end, order.service)
        path = call(seen.ref, within_s=within_s)
        return found.with_(name=work_of(found.name, plain=True).with_(native=path).name, remains="")

    def _stop(self, seen: Seen, order: Order | Restore) -> Operation:
        """Stop an app in two calls: first its stamp, which changes nothing that runs, then the stop itself."""
        stamp = stop_of(seen, order.effect_key)
        if stamp is not None and seen.is_stopped:
            return stopping(stamp, seen)
        self._unchanged(seen, order.etag)
        if stamp is None:
            within_s = seconds_to_send(order.lease_end, order.service)
            self._api.update(seen.ref, {"tags": tags_with(seen, stop_tags(order))}, within_s=within_s)
        within_s = seconds_to_send(order.lease_end, order.service)
        path = self._api.stop(seen.ref, within_s=within_s)
        work = Work(service=order.service, aim=f"scaling/{order.revision}", native=path)
        return work.operation(None, f"{order.service} is being stopped")

    def _new(self, order: Order) -> Json:
        ref = self._ref(order.service)
        if len(ref.name) > LONGEST_APP or ref.environment_id is None:
            raise InputRejected(
                f"{ref.name!r} was not created",
                why=f"its name is longer than {LONGEST_APP} characters"
                if ref.environment_id
                else "services.toml names no environment",
                hint="add environment = 'NAME' of a managed environment, and use a short name",
            )
        return new_app(ref, applied(NO_SERVICE, order.actions), self._api.environment(ref.environment_id), order)

    def _create(self, order: Order) -> Operation:
        """Create the app, or return what this effect created before; one that stands without its stamp stays."""
        try:
            found = self._ours(self._seen(order.service), order.effect_key)
        except NotDeployed:
            found = None
            if order.etag == NOT_THERE:
                return self._created(order)
        if found is None:
            raise state_changed(
                f"{order.service!r} was not created", "it stands already, without this effect's stamp, or is gone since"
            )
        return found

    def _created(self, order: Order) -> Operation:
        ref, body = self._ref(order.service), self._new(order)
        within_s = seconds_to_send(order.lease_end, order.service)
        path = self._api.create(ref, body, within_s=within_s)
        work = Work(service=order.service, aim=f"revisions/{order.revision}", native=path)
        return work.operation(None, f"{order.service} is being created", ref.native(order.revision))

    def _delete(self, seen: Seen, order: Order | Restore) -> Operation:
        """Delete exactly the state that the order was made for; a deletion under way is not ordered again."""
        work = Work(service=order.service, aim=f"deletion/{order.revision}")
        if seen.properties.get("provisioningState") == "Deleting":
            return deleting(work)
        self._unchanged(seen, order.etag)
        within_s = seconds_to_send(order.lease_end, order.service)
        path = self._api.delete(seen.ref, within_s=within_s)
        return deleting(work.with_(native=path))

    def _ours(self, seen: Seen, effect_key: str) -> Operation | None:
        """Look for the stamp of a revision; Azure keeps a hundred that are inactive."""
        made = next((name for name, key in stamps_of(seen).items() if key == effect_key), None)
        if made is None:
            return None
        return rollout(Work(service=seen.ref.name, aim=f"revisions/{made}"), seen, None)

    def _room(self, seen: Seen) -> bool | None:
        """Whether a second revision can come up beside the first: as many replicas as must be awake."""
        config, free = config_of(seen), self._spare(seen.ref.name)
        if config.accelerator is None:
            return True
        return None if free is None else free >= max(config.min_instances, 1) * config.accelerator_count

    def _unchanged(self, seen: Seen, etag: str) -> None:
        """What we change must be what the token stands for; ARM itself checks none."""
        now = version_token(seen)
        if now != etag:
            raise state_changed(
                f"{seen.ref.name!r} was not changed", f"its version is {now[:12]}, the change was made for {etag[:12]}"
            )

    def _free(self, seen: Seen, revision: str) -> None:
        """A suffix that was used before makes no revision, and Azure says nothing of it (azure-container-apps#650)."""
        native = seen.ref.native(revision)
        if native == seen.newest or seen.revision(native) is not None:
            raise state_changed(
                f"{seen.ref.name!r} was not changed",
                f"it has a revision {native!r} already, without this effect's stamp",
            )

    def _seen(self, service: str) -> Seen:
        return self._api.seen(self._ref(service))

    def _ref(self, service: str) -> AppRef:
        return watched(self._apps, service, "Container Apps")


def _running(text: str) -> Json:
    """A template's bare text without whether the app is stopped."""
    return {k: v for k, v in parsed(text).items() if k != "stopped"}
