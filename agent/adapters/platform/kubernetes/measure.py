"""What a pod is worth: ready, one real completion, its tokens and its speed."""

from collections.abc import Callable, Iterable
from typing import Any

from agent.adapters.platform.completion import CompletionClient, ReachedServer
from agent.adapters.platform.kubernetes.container import server_of, serving_port
from agent.adapters.platform.kubernetes.describe import config_of, pod_ready
from agent.adapters.platform.kubernetes.workload import Seen
from agent.adapters.platform.reply_measurements import NO_MODEL, ReplyMeasurements, awake
from agent.adapters.platform.server_flags import served_name
from agent.core.change.verification import Measurement
from agent.ports.clock import Clock

Json = dict[str, Any]


class Meter:
    """Measures pods of the newest template.

    Args:
        client: Asks a service's pods for a completion, by the way that leads to them.
        address: Where a pod's port is reached by that way, of workload, pod and port.
        clock: When a measurement was made.
        key_name: How services.toml calls the server's own key, by service; None where it names none.
    """

    def __init__(
        self,
        client: Callable[[Seen], CompletionClient],
        address: Callable[[Seen, Json, int], str],
        clock: Clock,
        *,
        key_name: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._client = client
        self._address = address
        self._measured = ReplyMeasurements(clock, key_name)

    def measure(self, seen: Seen, *, up: bool | None, says: str) -> tuple[Measurement, ...]:
        """Measure the newest template.

        Args:
            seen: The workload.
            up: Whether its rollout has ended well.
            says: What the platform says of it.
        """
        return self._measured.of(lambda: self._reached(seen, seen.pods), says, up=up)

    def server(self, seen: Seen) -> ReachedServer:
        """Return a ready pod of a workload, of the newest template where there is one.

        Raises:
            NotRunning: No pod is ready.
        """
        return awake(seen.workload.service, self._reached(seen, (*seen.pods, *seen.old_pods)))

    def _reached(self, seen: Seen, pods: Iterable[Json]) -> ReachedServer | str:
        pod, model = next((p for p in pods if pod_ready(p)), None), served_name(config_of(seen))
        if pod is None or model is None:
            return "none of these pods is ready" if pod is None else NO_MODEL
        url = self._address(seen, pod, serving_port(server_of(seen.spec["template"], seen.workload)))
        return ReachedServer(
            client=self._client(seen), service=seen.workload.service, url=url, audience=url, model=model
        )
