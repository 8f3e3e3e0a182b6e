"""What a Cloud Run revision is worth: ready, one real completion, its tokens and its speed."""

from collections.abc import Callable
from typing import Any

from agent.adapters.platform.cloud_run.describe import config_of, readiness, short
from agent.adapters.platform.cloud_run.rollout import gives_all
from agent.adapters.platform.cloud_run.template import traffic_of
from agent.adapters.platform.completion import CompletionClient, ReachedServer
from agent.adapters.platform.reply_measurements import NO_MODEL, ReplyMeasurements, awake
from agent.adapters.platform.server_flags import served_name
from agent.core.change.verification import Measurement
from agent.ports.clock import Clock
from agent.ports.model_server import asleep
from agent.ports.platform import Operation


class Meter:
    """Measures revisions.

    A service that may sleep gets this one completion and no other request; its counters are read right after it.

    Args:
        client: Asks for the completion.
        clock: When a measurement was made.
        key_name: How services.toml calls the server's own key, by service; None where it names none.
    """

    def __init__(
        self,
        client: CompletionClient,
        clock: Clock,
        *,
        key_name: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._client = client
        self._measured = ReplyMeasurements(clock, key_name)

    def measure(self, service: str, revision: str, rolled: Operation, current: Any) -> tuple[Measurement, ...]:
        """Measure a revision.

        Args:
            service: The watched service.
            revision: Its revision.
            rolled: How far the revision is.
            current: The ``Service`` message.
        """
        return self._measured.of(lambda: self._reached(service, revision, current), rolled.says, up=rolled.ok)

    def server(self, service: str, current: Any) -> ReachedServer:
        """Return the serving instances of a service that never scales to zero.

        Args:
            service: The watched service.
            current: The ``Service`` message.

        Raises:
            NotRunning: It is not ready, or may have no instance: the API does not tell how many there are.
        """
        if readiness(current) is not True:
            raise asleep(service, "its newest revision is not ready")
        scaling, config = current.scaling, config_of(current.template)
        manual = scaling.HasField("manual_instance_count")
        least = scaling.manual_instance_count if manual else max(config.min_instances, scaling.min_instance_count)
        if least < 1:
            raise asleep(service, "it scales to zero, and Cloud Run does not tell whether an instance runs")
        return awake(service, self._reached(service, short(current.latest_ready_revision), current))

    def _reached(self, service: str, revision: str, current: Any) -> ReachedServer | str:
        url, config = address(current, revision), config_of(current.template)
        if url is None:
            return f"no address leads to {revision} alone: it has neither a tag nor all of the traffic"
        model = served_name(config)
        if model is None:
            return NO_MODEL
        sleeps = config.min_instances == 0 and current.scaling.min_instance_count == 0
        return ReachedServer(
            client=self._client, service=service, url=url, audience=current.uri, model=model, may_sleep=sleeps
        )


def address(current: Any, revision: str) -> str | None:
    """Return an address that leads to this revision and no other: its tag's, or the service's own; None without one."""
    latest = short(current.latest_ready_revision)
    for status in current.traffic_statuses:
        if status.uri and (status.revision or latest) == revision:
            return str(status.uri)
    traffic = traffic_of(current.traffic_statuses) or traffic_of(current.traffic)
    if not current.reconciling and gives_all(traffic, revision, current):
        return str(current.uri) or None
    return None
