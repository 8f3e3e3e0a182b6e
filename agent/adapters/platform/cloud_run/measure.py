"""What a Cloud Run revision is worth: ready, one real completion, its tokens and its speed."""

from collections.abc import Callable
from typing import Any

from agent.adapters.platform.cloud_run.describe import config_of, readiness, short
from agent.adapters.platform.cloud_run.rollout import gives_all
from agent.adapters.platform.cloud_run.template import traffic_of
from agent.adapters.platform.completion import CompletionClient, Outcome, ReachedServer, Reply
from agent.core.change.verification import Check, Measurement
from agent.core.service.container_args import flag_map, served_model
from agent.core.service.serving import ServingConfig
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
        self._clock = clock
        self._key_name = key_name

    def measure(self, service: str, revision: str, rolled: Operation, current: Any) -> tuple[Measurement, ...]:
        """Measure a revision.

        Args:
            service: The watched service.
            revision: Its revision.
            rolled: How far the revision is.
            current: The ``Service`` message.
        """
        ready = self._said(Check.READY, rolled.says, good=rolled.ok)
        if rolled.ok is not True:
            return (ready,)
        url = address(current, revision)
        if url is None:
            why = f"no address leads to {revision} alone: it has neither a tag nor all of the traffic"
            return (ready, self._said(Check.COMPLETION, why, good=None))
        config = config_of(current.template)
        model = served_name(config)
        if model is None:
            return (ready, self._said(Check.COMPLETION, "the words name no model to ask for", good=None))
        reply = self._client.complete(service, url=url, audience=current.uri, model=model)
        sleeps = config.min_instances == 0 and current.scaling.min_instance_count == 0
        says = self._locked(service) if reply.outcome is Outcome.LOCKED else reply.says
        answer = self._said(Check.COMPLETION, says, good=_answered(reply, may_sleep=sleeps))
        if reply.outcome is not Outcome.ANSWERED:
            return (ready, answer)
        return (ready, answer, self._tokens(reply), self._speed(reply))

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

    def _tokens(self, reply: Reply) -> Measurement:
        """The counter of an instance begins at 0: at least our own tokens must stand there, where it is the one."""
        if reply.counter is None or reply.tokens is None:
            return self._said(Check.TOKENS, "the token counter was not read", good=None)
        if reply.counter < reply.tokens:
            return self._said(Check.TOKENS, "another instance told its counter", good=None, value=reply.counter)
        says = f"{reply.counter:.0f} tokens generated, {reply.tokens} of them for us"
        return self._said(Check.TOKENS, says, good=True, value=reply.counter)

    def _speed(self, reply: Reply) -> Measurement:
        if reply.tokens_per_s is None or reply.first_token_s is None:
            return self._said(Check.SPEED, "the answer was too short to tell its speed", good=None)
        says = f"{reply.tokens_per_s:.3g} tokens/s, first token after {reply.first_token_s:.3g} s"
        speed = self._said(Check.SPEED, says, good=None, value=reply.tokens_per_s)
        return speed.with_(first_token_s=reply.first_token_s)

    def _locked(self, service: str) -> str:
        """Say which key the server wants and what to set; never the key."""
        name = self._key_name(service)
        if name is None:
            hint = "name one in services.toml (api_key = 'NAME') and give it to us in SERVICE_API_KEYS (NAME=KEY)"
            return f"the server wants an API key (HTTP 401), and services.toml names none for {service!r}: {hint}"
        hint = f"put the server's present key there ({name}=KEY)"
        return f"the server wants an API key (HTTP 401), and SERVICE_API_KEYS holds no right one named {name!r}: {hint}"

    def _said(self, check: Check, says: str, *, good: bool | None, value: float | None = None) -> Measurement:
        return Measurement(check=check, good=good, says=says[:2000], value=value, at=self._clock.now())


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


def served_name(config: ServingConfig) -> str | None:
    """Return the name that requests must give: the first of ``--served-model-name``, else the model's own."""
    named = flag_map((*config.command, *config.args)).get("served-model-name", "").split()
    return named[0] if named else served_model(config.command, config.args)


def _answered(reply: Reply, *, may_sleep: bool) -> bool | None:
    """Silence of a service that may sleep may be its start-up; silence of one that must be awake is a hang."""
    match reply.outcome:
        case Outcome.ANSWERED:
            return True
        case Outcome.REFUSED | Outcome.LOCKED:
            return None
        case Outcome.SILENT:
            return None if may_sleep else False
        case _:
            return False
