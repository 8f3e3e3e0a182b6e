"""What a pod is worth: ready, one real completion, its tokens and its speed."""

from collections.abc import Callable
from typing import Any

from agent.adapters.platform.completion import CompletionClient, Outcome, ReachedServer, Reply
from agent.adapters.platform.kubernetes.container import server_of, serving_port
from agent.adapters.platform.kubernetes.describe import config_of, pod_ready
from agent.adapters.platform.kubernetes.workload import Seen
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
        self._clock = clock
        self._key_name = key_name

    def measure(self, seen: Seen, *, up: bool | None, says: str) -> tuple[Measurement, ...]:
        """Measure the newest template.

        Args:
            seen: The workload.
            up: Whether its rollout has ended well.
            says: What the platform says of it.
        """
        ready = self._said(Check.READY, says, good=up)
        if up is not True:
            return (ready,)
        pod = next((p for p in seen.pods if pod_ready(p)), None)
        if pod is None:
            return (ready, self._said(Check.COMPLETION, "no pod of the newest template is ready", good=None))
        model = served_name(config_of(seen))
        if model is None:
            return (ready, self._said(Check.COMPLETION, "the words name no model to ask for", good=None))
        url = self._url(seen, pod)
        reply = self._client(seen).complete(seen.workload.service, url=url, audience=url, model=model)
        answer = self._said(Check.COMPLETION, self._completion(seen, reply), good=_answered(reply))
        if reply.outcome is not Outcome.ANSWERED:
            return (ready, answer)
        return (ready, answer, self._tokens(reply), self._speed(reply))

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

    def _completion(self, seen: Seen, reply: Reply) -> str:
        if reply.outcome is not Outcome.LOCKED:
            return reply.says
        name = self._key_name(seen.workload.service)
        hint = (
            "name one in services.toml (api_key = 'NAME') and give it to us in SERVICE_API_KEYS (NAME=KEY)"
            if name is None
            else f"put the server's present key into SERVICE_API_KEYS ({name}=KEY)"
        )
        return f"the server wants an API key (HTTP 401): {hint}"

    def _tokens(self, reply: Reply) -> Measurement:
        """The pod that answered told its own counter: at least our own tokens must stand there."""
        if reply.counter is None or reply.tokens is None:
            return self._said(Check.TOKENS, "the token counter was not read", good=None)
        if reply.counter < reply.tokens:
            says = f"the counter stands at {reply.counter:.0f}, below the {reply.tokens} tokens that we were given"
            return self._said(Check.TOKENS, says, good=None, value=reply.counter)
        says = f"{reply.counter:.0f} tokens generated, {reply.tokens} of them for us"
        return self._said(Check.TOKENS, says, good=True, value=reply.counter)

    def _speed(self, reply: Reply) -> Measurement:
        if reply.tokens_per_s is None or reply.first_token_s is None:
            return self._said(Check.SPEED, "the answer was too short to tell its speed", good=None)
        says = f"{reply.tokens_per_s:.3g} tokens/s, first token after {reply.first_token_s:.3g} s"
        speed = self._said(Check.SPEED, says, good=None, value=reply.tokens_per_s)
        return speed.with_(first_token_s=reply.first_token_s)

    def _said(self, check: Check, says: str, *, good: bool | None, value: float | None = None) -> Measurement:
        return Measurement(check=check, good=good, says=says[:2000], value=value, at=self._clock.now())


def _answered(reply: Reply) -> bool | None:
    """A pod that is ready and does not answer hangs; that we were not let in says nothing about it."""
    match reply.outcome:
        case Outcome.ANSWERED:
            return True
        case Outcome.REFUSED | Outcome.LOCKED:
            return None
        case _:
            return False
