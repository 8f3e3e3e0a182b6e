"""What a pod is worth: ready, one real completion, its tokens and its speed."""

from collections.abc import Callable
from typing import Any

from agent.adapters.platform.completion import CompletionClient, ReachedServer
from agent.adapters.platform.kubernetes.container import server_of, serving_port
from agent.adapters.platform.kubernetes.describe import config_of, pod_ready
from agent.adapters.platform.kubernetes.workload import Seen
from agent.adapters.platform.reply_measurements import ReplyMeasurements
from agent.adapters.platform.server_flags import served_name
from agent.core.change.verification import Check, Measurement
from agent.ports.clock import Clock
from agent.ports.model_server import asleep

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
        ready = self._measured.measurement(Check.READY, says, good=up)
        if up is not True:
            return (ready,)
        pod = next((p for p in seen.pods if pod_ready(p)), None)
        if pod is None:
            return (
                ready,
                self._measured.measurement(Check.COMPLETION, "no pod of the newest template is ready", good=None),
            )
        model = served_name(config_of(seen))
        if model is None:
            why = "the startup flags name no model to ask for"
            return (ready, self._measured.measurement(Check.COMPLETION, why, good=None))
        url = self._url(seen, pod)
        reply = self._client(seen).complete(seen.workload.service, url=url, audience=url, model=model)
        return (ready, *self._measured.of(seen.workload.service, reply))

    def server(self, seen: Seen) -> ReachedServer:
        """Return a ready pod of a workload, of the newest template where there is one.

        Raises:
            NotRunning: No pod is ready.
        """
        service, model = seen.workload.service, served_name(config_of(seen))
        pod = next((p for p in (*seen.pods, *seen.old_pods) if pod_ready(p)), None)
        if pod is None or model is None:
            raise asleep(service, "none of its pods is ready" if pod is None else "its flags name no model")
        url = self._url(seen, pod)
        return ReachedServer(client=self._client(seen), service=service, url=url, audience=url, model=model)

    def _url(self, seen: Seen, pod: Json) -> str:
        return self._address(seen, pod, serving_port(server_of(seen.spec["template"], seen.workload)))
