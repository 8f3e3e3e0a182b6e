"""What a revision of a container app is worth: ready, one real completion, its tokens and its speed."""

from collections.abc import Callable

from agent.adapters.platform.completion import CompletionClient, ReachedServer
from agent.adapters.platform.container_apps.app_ref import Seen
from agent.adapters.platform.container_apps.describe import config_of, readiness
from agent.adapters.platform.container_apps.rollout import gives_all
from agent.adapters.platform.reply_measurements import NO_MODEL, ReplyMeasurements, awake
from agent.adapters.platform.server_flags import served_name
from agent.core.change.verification import Check, Measurement
from agent.ports.clock import Clock
from agent.ports.model_server import asleep
from agent.ports.platform import Operation


def https(host: str) -> str:
    """Return the address of an ingress."""
    return f"https://{host}"


class Meter:
    """Measures revisions; a service that may sleep gets this one completion and no other request.

    Args:
        client: Asks for the completion.
        clock: When a measurement was made.
        key_name: How services.toml calls the server's own key, by service; None where it names none.
        url_of: Makes an address of a host name.
    """

    def __init__(
        self,
        client: CompletionClient,
        clock: Clock,
        *,
        key_name: Callable[[str], str | None] = lambda _: None,
        url_of: Callable[[str], str] = https,
    ) -> None:
        self._client = client
        self._measured = ReplyMeasurements(clock, key_name)
        self._url_of = url_of

    def measure(self, seen: Seen, revision: str, rolled: Operation) -> tuple[Measurement, ...]:
        """Measure a revision."""
        if seen.is_stopped:
            return (self._measured.measurement(Check.READY, "the app is stopped", good=False),)
        return self._measured.of(lambda: self._reached(seen, revision), rolled.says, up=rolled.ok)

    def server(self, seen: Seen) -> ReachedServer:
        """Return the serving replicas of an app that never scales to zero.

        Raises:
            NotRunning: It is not ready, or may have no replica.
        """
        name = seen.ref.name
        if seen.is_stopped or readiness(seen)[0] is not True:
            raise asleep(name, "its newest revision is not ready")
        if config_of(seen).min_instances < 1:
            raise asleep(name, "it scales to zero, and a request would wake it")
        return awake(name, self._reached(seen, seen.ref.ours(seen.newest)))

    def _reached(self, seen: Seen, revision: str) -> ReachedServer | str:
        config, host = config_of(seen), host_of(seen, revision)
        model = served_name(config)
        if host is None or model is None:
            return f"no address leads to {revision} alone" if host is None else NO_MODEL
        url, sleeps = self._url_of(host), config.min_instances == 0
        return ReachedServer(
            client=self._client, service=seen.ref.name, url=url, audience=url, model=model, may_sleep=sleeps
        )


def host_of(seen: Seen, revision: str) -> str | None:
    """Return the host that leads to this revision and no other: the app's where it has all traffic, else its own."""
    if seen.ingress.get("fqdn") and gives_all(seen, revision) and not seen.in_progress:
        return str(seen.ingress["fqdn"])
    own = (seen.revision(seen.ref.native(revision)) or {}).get("fqdn")
    return str(own) if own else None
