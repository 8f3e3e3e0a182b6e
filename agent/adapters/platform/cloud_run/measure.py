"""What a Cloud Run revision is worth: ready, one real completion, its tokens and its speed."""

from collections.abc import Callable
from typing import Any

from agent.adapters.platform.cloud_run.describe import config_of, readiness, short
from agent.adapters.platform.cloud_run.rollout import gives_all
from agent.adapters.platform.cloud_run.template import traffic_of
from agent.adapters.platform.completion import CompletionClient, ReachedServer
from agent.adapters.platform.reply_measurements import ReplyMeasurements
from agent.adapters.platform.server_flags import served_name
from agent.core.change.verification import Check, Measurement
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
        ready = self._measured.measurement(Check.READY, rolled.says, good=rolled.ok)
        if rolled.ok is not True:
            return (ready,)
        url = address(current, revision)
        if url is None:
            why = f"no address leads to {revision} alone: it has neither a tag nor all of the traffic"
            return (ready, self._measured.measurement(Check.COMPLETION, why, good=None))
        config = config_of(current.template)
        model = served_name(config)
        if model is None:
            why = "the startup flags name no model to ask for"
            return (ready, self._measured.measurement(Check.COMPLETION, why, good=None))
        reply = self._client.complete(service, url=url, audience=current.uri, model=model)
        sleeps = config.min_instances == 0 and current.scaling.min_instance_count == 0
        return (ready, *self._measured.of(service, reply, may_sleep=sleeps))

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
        url, model = address(current, short(current.latest_ready_revision)), served_name(config)
        if url is None or model is None:
            raise asleep(service, "no address leads to its newest revision" if url is None else "it names no model")
        return ReachedServer(client=self._client, service=service, url=url, audience=current.uri, model=model)


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
