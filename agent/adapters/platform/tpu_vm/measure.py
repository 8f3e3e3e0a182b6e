"""What the server of a TPU node is worth: ready, one real completion, its tokens and its speed."""

from agent.adapters.platform.completion import CompletionClient, ReachedServer
from agent.adapters.platform.reply_measurements import NO_MODEL, ReplyMeasurements, awake
from agent.adapters.platform.server_flags import served_name
from agent.adapters.platform.tpu_vm.describe import Seen, progress
from agent.core.change.verification import Measurement


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
            return self._measurements.of(
                lambda: self._reached(seen), f"another revision took the place of {revision}", up=False
            )
        at = progress(seen)
        return self._measurements.of(lambda: self._reached(seen), at.says, up=at.ready)

    def server(self, seen: Seen) -> ReachedServer:
        """Return the server of a node.

        Raises:
            NotRunning: It does not serve.
        """
        at = progress(seen)
        return awake(seen.ref.service, self._reached(seen) if at.ready is True else at.says)

    def _reached(self, seen: Seen) -> ReachedServer | str:
        model = served_name(seen.config)
        if model is None or not seen.url:
            return NO_MODEL if seen.url else "the node has no address to ask"
        return ReachedServer(
            client=self._client, service=seen.ref.service, url=seen.url, audience=seen.url, model=model
        )
