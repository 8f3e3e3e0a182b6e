"""What the server of a TPU node is worth: ready, one real completion, its tokens and its speed."""

from agent.adapters.platform.completion import CompletionClient, ReachedServer
from agent.adapters.platform.reply_measurements import ReplyMeasurements
from agent.adapters.platform.server_flags import served_name
from agent.adapters.platform.tpu_vm.describe import Seen, progress
from agent.core.change.verification import Check, Measurement
from agent.ports.model_server import asleep


class Meter:
    """Measures the newest revision of a node.

    Args:
        client: Asks for the completion, inside the node's network.
        measurements: Makes measurements of replies.
    """

    def __init__(self, client: CompletionClient, measurements: ReplyMeasurements) -> None:
        self._client, self._measurements = client, measurements

    def measure(self, seen: Seen, revision: str) -> tuple[Measurement, ...]:
        """Measure a revision of a node; what does not run is not asked."""
        if revision != seen.revision:
            says = f"another revision took the place of {revision}"
            return (self._measurements.measurement(Check.READY, says, good=False),)
        at = progress(seen)
        ready = self._measurements.measurement(Check.READY, at.says, good=at.ready)
        if at.ready is not True:
            return (ready,)
        model = served_name(seen.config)
        if model is None or not seen.url:
            why = "the startup flags name no model to ask for" if seen.url else "the node has no address to ask"
            return (ready, self._measurements.measurement(Check.COMPLETION, why, good=None))
        service = seen.ref.service
        reply = self._client.complete(service, url=seen.url, audience=seen.url, model=model)
        return (ready, *self._measurements.of(service, reply))

    def server(self, seen: Seen) -> ReachedServer:
        """Return the server of a node.

        Raises:
            NotRunning: It does not serve.
        """
        service, at, model = seen.ref.service, progress(seen), served_name(seen.config)
        if at.ready is not True or model is None or not seen.url:
            raise asleep(service, at.says if at.ready is not True else "its flags name no model")
        return ReachedServer(client=self._client, service=service, url=seen.url, audience=seen.url, model=model)
