"""The lock among replicas: a coordination Lease that one of them holds and renews, and that ends by itself."""

import contextlib
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from agent.adapters.kubernetes.client import Json, KubernetesApi
from agent.errors import SreError, StateConflict
from agent.ports.clock import Clock
from agent.structured_log import structlog

DURATION_S: Final = 15.0
RENEW_S: Final = 5.0
RETRY_S: Final = 2.0
SPARE_S: Final = 3.0  # we stop to lead so long before anybody else may begin

log = structlog.get_logger(__name__)


class LeaderLease:
    """Leads while it holds the Lease.

    No two clocks are compared: whoever waits counts, on its own monotonic clock, how long the holder has written
    nothing. Who holds it leads until ``DURATION_S`` after it began its last renewal, less ``SPARE_S``, so a process
    that was stopped and goes on later finds that it leads no more before it does anything.

    Args:
        api: The API server.
        namespace: Where the Lease is.
        name: Its name.
        holder: Names this replica: the pod.
        clock: Stamps the Lease for people who look at it.
        monotonic: Seconds that only grow.
    """

    def __init__(
        self,
        api: KubernetesApi,
        *,
        namespace: str,
        name: str,
        holder: str,
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._holder, self._clock, self._monotonic = api, holder, clock, monotonic
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._namespace, self._name = namespace, name
        self._until = 0.0
        self._released = threading.Event()
        self._lost = threading.Event()
        self._when_lost: Callable[[], None] = lambda: None

    def hold(self, stopping: threading.Event) -> bool:
        """Wait until we lead, then renew in a thread; see the port."""
        seen: tuple[str, float] = ("", 0.0)
        waits = False
        while not stopping.is_set():
            try:
                lease = self._api.find(f"{self._collection}/{self._name}")
                version = "" if lease is None else str(lease["metadata"]["resourceVersion"])
                if version != seen[0]:
                    seen = (version, self._monotonic())
                if self._is_free(lease, since_s=self._monotonic() - seen[1]) and self._write(lease, anew=True):
                    threading.Thread(target=self._renew, name="leader-lease", daemon=True).start()
                    return True
                if not waits:
                    waits = True
                    log.info("leader.waits", lease=self._name, holder=_spec(lease).get("holderIdentity"))
            except SreError as error:
                log.warning("leader.lease_not_read", lease=self._name, error=str(error))
            stopping.wait(RETRY_S)
        return False

    def when_lost(self, act: Callable[[], None]) -> None:
        """Have ``act`` called once; see the port."""
        self._when_lost = act
        if self._lost.is_set():
            act()

    def leads(self) -> bool:
        """Whether nobody else can lead now."""
        return not self._lost.is_set() and self._monotonic() < self._until

    def release(self) -> None:
        """Give the Lease back, if it is still ours."""
        self._released.set()
        leads, self._until = self.leads(), 0.0
        if not leads:
            return
        for _ in range(3):  # a renewal may be under way
            with contextlib.suppress(SreError):  # then it ends by itself
                lease = self._api.find(f"{self._collection}/{self._name}")
                if lease is not None and _spec(lease).get("holderIdentity") == self._holder:
                    self._replace(lease, _spec(lease) | {"holderIdentity": "", "leaseDurationSeconds": 1})
                return

    def _renew(self) -> None:
        """Renew until the Lease is given back or lost; whatever ends this otherwise is a loss too."""
        try:
            while not self._released.wait(RENEW_S) and self._renewed():
                continue
        finally:
            if not self._released.is_set():
                log.error("leader.lost", lease=self._name)
                self._lost.set()
                self._when_lost()

    def _renewed(self) -> bool:
        """Renew once; False where we do not lead any more."""
        try:
            lease = self._api.find(f"{self._collection}/{self._name}")
            if lease is None or _spec(lease).get("holderIdentity") != self._holder:
                return False
            self._write(lease, anew=False)
        except SreError as error:
            log.warning("leader.not_renewed", lease=self._name, error=str(error))
        return self.leads()

    def _is_free(self, lease: Json | None, *, since_s: float) -> bool:
        spec = _spec(lease)
        if lease is None or not spec.get("holderIdentity") or spec.get("holderIdentity") == self._holder:
            return True
        duration = spec.get("leaseDurationSeconds")
        return since_s > (duration if isinstance(duration, int) else DURATION_S)

    def _write(self, lease: Json | None, *, anew: bool) -> bool:
        """Take or renew the Lease; False where another one was faster."""
        began = self._monotonic()
        now = self._clock.now().astimezone(UTC)
        spec = _spec(lease) | {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": int(DURATION_S),
            "renewTime": _micro_time(now),
        }
        if anew:
            spec |= {"acquireTime": _micro_time(now), "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
        try:
            if lease is None:
                head = {"name": self._name, "namespace": self._namespace}
                kind = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
                self._api.create(self._collection, kind | {"metadata": head, "spec": spec})
            else:
                self._replace(lease, spec)
        except StateConflict:
            return False
        self._until = began + DURATION_S - SPARE_S
        if self._released.is_set():  # it was given back while this renewal was under way
            self._until = 0.0
        return True

    def _replace(self, lease: Json, spec: dict[str, Any]) -> None:
        """Write the Lease if nobody has written it since it was read."""
        version = lease["metadata"]["resourceVersion"]
        steps: list[Json] = [
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": "/spec", "value": spec},
        ]
        self._api.patch(f"{self._collection}/{self._name}", steps)


def _spec(lease: Json | None) -> dict[str, Any]:
    found = (lease or {}).get("spec")
    return dict(found) if isinstance(found, dict) else {}


def _micro_time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
