"""One running server of a watched service: a completion from it, and its metrics."""

from collections.abc import Callable
from typing import Protocol

from agent.core.value import Value
from agent.errors import InputRejected


class NotRunning(InputRejected):
    """No instance is known to run, so nothing was sent: a request could start one."""


def asleep(service: str, why: str) -> NotRunning:
    """Return the refusal to ask a service that may not run."""
    return NotRunning(
        f"asleep: nothing was sent to {service!r}",
        why=why,
        hint="propose a start: propose_change with scale '1:1', or propose_lifecycle 'start' where it is stopped",
    )


class Completion(Value):
    """What a server answered to a prompt; None where it did not say.

    Attributes:
        text: What it wrote; untrusted.
        says: How the answer ended, or what is wrong with it.
        prompt_tokens: Tokens of the prompt, as the server counts them.
        tokens: Tokens of the answer.
        first_token_s: Seconds until the first text (TTFT).
        tokens_per_s: Decode speed after the first token.
    """

    text: str
    says: str
    prompt_tokens: int | None = None
    tokens: int | None = None
    first_token_s: float | None = None
    tokens_per_s: float | None = None


class ModelServer(Protocol):
    """A server that was seen to run."""

    def complete(self, prompt: str, *, max_tokens: int, on_text: Callable[[], None]) -> Completion:
        """Ask for one completion.

        Args:
            prompt: What is asked.
            max_tokens: The most tokens of the answer.
            on_text: Called whenever text arrives; what it raises ends the request.

        Raises:
            DependencyFailed: It does not answer, does not let us in, or says that it failed.
        """
        ...

    def metrics(self) -> str:
        """Return its metrics in Prometheus text format.

        Raises:
            DependencyFailed: They cannot be read.
        """
        ...
