"""What one completion is worth: whether it was answered, whether the counter includes it, and how fast it was."""

from collections.abc import Callable

from agent.adapters.platform.completion import Outcome, ReachedServer, Reply
from agent.core.change.verification import Check, Measurement
from agent.ports.clock import Clock
from agent.ports.model_server import asleep

NO_MODEL = "the startup flags name no model to ask for"


class ReplyMeasurements:
    """Makes measurements of replies.

    Args:
        clock: When a measurement was made.
        key_name: How services.toml calls the server's own key, by service; None where it names none.
    """

    def __init__(self, clock: Clock, key_name: Callable[[str], str | None] = lambda _: None) -> None:
        self._clock = clock
        self._key_name = key_name

    def of(self, reached: Callable[[], ReachedServer | str], says: str, *, up: bool | None) -> tuple[Measurement, ...]:
        """Measure a revision: whether it is ready and, where it is, one completion; what is not ready is not asked.

        Args:
            reached: Returns its server, or why that cannot be asked.
            says: What the platform says of it.
            up: Whether it is ready.
        """
        ready = self.measurement(Check.READY, says, good=up)
        if up is not True:
            return (ready,)
        server = reached()
        if isinstance(server, str):
            return (ready, self.measurement(Check.COMPLETION, server, good=None))
        reply = server.client.complete(server.service, url=server.url, audience=server.audience, model=server.model)
        said = reply.says if reply.outcome is not Outcome.LOCKED else server.locked or self._locked(server.service)
        answer = self.measurement(Check.COMPLETION, said, good=_answered(reply, may_sleep=server.may_sleep))
        if reply.outcome is not Outcome.ANSWERED:
            return (ready, answer)
        return (ready, answer, self._tokens(reply), self._speed(reply))

    def measurement(self, check: Check, says: str, *, good: bool | None, value: float | None = None) -> Measurement:
        """Return one measurement of now."""
        return Measurement(check=check, good=good, says=says, value=value, at=self._clock.now())

    def _tokens(self, reply: Reply) -> Measurement:
        """A counter begins at 0: at least our own tokens must stand there, or it is late or of another instance.

        It is never bad: the answer did come, and an answer is what a server is for.
        """
        if reply.counter is None or reply.tokens is None:
            return self.measurement(Check.TOKENS, "the token counter was not read", good=None)
        if reply.counter < reply.tokens:
            says = f"the counter stands at {reply.counter:.0f}, below the {reply.tokens} tokens that we were given"
            return self.measurement(Check.TOKENS, says, good=None, value=reply.counter)
        says = f"{reply.counter:.0f} tokens generated, {reply.tokens} of them for us"
        return self.measurement(Check.TOKENS, says, good=True, value=reply.counter)

    def _speed(self, reply: Reply) -> Measurement:
        if reply.tokens_per_s is None or reply.first_token_s is None:
            return self.measurement(Check.SPEED, "the answer was too short to tell its speed", good=None)
        says = f"{reply.tokens_per_s:.3g} tokens/s, first token after {reply.first_token_s:.3g} s"
        speed = self.measurement(Check.SPEED, says, good=None, value=reply.tokens_per_s)
        return speed.with_(first_token_s=reply.first_token_s)

    def _locked(self, service: str) -> str:
        """Say which key the server wants and what to set; never the key."""
        name = self._key_name(service)
        if name is None:
            hint = "name one in services.toml (api_key = 'NAME') and give it to us in SERVICE_API_KEYS (NAME=KEY)"
            return f"the server wants an API key (HTTP 401), and services.toml names none for {service!r}: {hint}"
        hint = f"put the server's present key there ({name}=KEY)"
        return f"the server wants an API key (HTTP 401), and SERVICE_API_KEYS holds no right one named {name!r}: {hint}"


def _answered(reply: Reply, *, may_sleep: bool) -> bool | None:
    match reply.outcome:
        case Outcome.ANSWERED:
            return True
        case Outcome.REFUSED | Outcome.LOCKED:
            return None
        case Outcome.SILENT:
            return None if may_sleep else False
        case _:
            return False


def awake(service: str, reached: ReachedServer | str) -> ReachedServer:
    """Return the server of a service.

    Raises:
        NotRunning: There is only the reason why it cannot be asked.
    """
    if isinstance(reached, str):
        raise asleep(service, reached)
    return reached
