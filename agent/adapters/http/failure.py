"""What a request that got no answer raises, and why there is none."""

from enum import StrEnum

from agent.errors import DependencyFailed


class Failure(StrEnum):
    """Why there is no answer."""

    UNREACHABLE = "unreachable"  # no connection
    TIMED_OUT = "timed_out"
    TOO_LONG = "too_long"
    BROKEN = "broken"  # the connection ended, or what came is no HTTP


class HttpFailed(DependencyFailed):
    """A request got no answer, or none that ended within its limits.

    Attributes:
        sent: Whether the other side may have received the request.
    """

    def __init__(self, host: str, why: str, *, reason: Failure, sent: bool) -> None:
        super().__init__(
            f"{host!r} did not answer", why=why, hint="check the address, and that it can be reached from here"
        )
        self.reason = reason
        self.sent = sent
