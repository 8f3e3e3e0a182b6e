"""What a unit's server is worth: ready, one real completion asked on the instance itself, its tokens and its speed."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from agent.adapters.http.client import HttpResponse
from agent.adapters.http.failure import Failure, HttpFailed
from agent.adapters.platform.completion import CompletionClient, ReachedServer
from agent.adapters.platform.ec2.command import InstanceCommands
from agent.adapters.platform.ec2.describe import Seen, config_of
from agent.adapters.platform.reply_measurements import NO_MODEL, ReplyMeasurements, awake
from agent.adapters.platform.server_flags import served_name
from agent.core.change.verification import Measurement
from agent.ports.clock import Clock

HOST: Final = "http://127.0.0.1"
WANTS_KEY: Final = (
    "the server wants an API key (HTTP 401), and it is neither VLLM_API_KEY nor the --api-key of the unit"
)
REQUEST_S: Final = 40.0
"""Of one request on the instance; a command that takes longer than ``command.ANSWER_S`` is given up."""


class InstanceHttp:
    """Asks the server from the instance itself; the same calls as our HTTP client.

    No header and no key is sent: the script takes the server's own key from the unit, so that none leaves the instance.
    Times are those of the instance: the way of Systems Manager does not count as the server's slowness.
    """

    def __init__(self, commands: InstanceCommands, seen: Seen) -> None:
        self._commands, self._seen = commands, seen
        self._elapsed: float | None = None

    def monotonic(self) -> float:
        """Return seconds of the answer that is being read, else of this machine."""
        return time.monotonic() if self._elapsed is None else self._elapsed

    @contextmanager
    def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,  # noqa: ARG002 - none are sent
        body: bytes | None = None,
    ) -> "Iterator[_Answer]":
        """Send a request and give its answer in the pieces in which it came.

        Raises:
            HttpFailed: There is no answer.
            DependencyFailed: The instance does not answer.
        """
        yield self._ask(method, url, body, REQUEST_S)

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,  # noqa: ARG002 - none are sent
        body: bytes | None = None,
        timeout_s: float | None = None,
    ) -> HttpResponse:
        """Send a request and return the whole answer; errors as in :meth:`stream`."""
        answer = self._ask(method, url, body, timeout_s or REQUEST_S)
        return HttpResponse(status=answer.status, headers={}, body=answer.read())

    def _ask(self, method: str, url: str, body: bytes | None, timeout_s: float) -> "_Answer":
        self._elapsed = 0.0
        answer = self._commands.ask(
            self._seen.target,
            self._seen.instance.id,
            "http",
            method=method,
            path=urlsplit(url).path,
            body=body.decode() if body else None,
            timeout_s=timeout_s,
        )
        if not answer["status"]:
            reason = Failure.TIMED_OUT if answer["late"] else Failure.UNREACHABLE
            raise HttpFailed(self._seen.target.says, str(answer["why"]), reason=reason, sent=answer["late"])
        return _Answer(self, answer["status"], answer["pieces"])


class _Answer:
    """An answer with the time of each of its pieces."""

    def __init__(self, way: InstanceHttp, status: int, pieces: list[list[Any]]) -> None:
        self._way, self.status, self._pieces = way, status, pieces

    def chunks(self) -> Iterator[bytes]:
        """Give the body in pieces, at the time of each."""
        for at, text in self._pieces:
            self._way._elapsed = float(at)  # noqa: SLF001 - the way's own clock
            yield text.encode()

    def read(self, most: int | None = None) -> bytes:
        """Return the body, or its first ``most`` bytes."""
        return b"".join(self.chunks())[:most]


class Meter:
    """Measures one unit."""

    def __init__(self, commands: InstanceCommands, seen: Seen, clock: Clock) -> None:
        self._seen = seen
        self._measured = ReplyMeasurements(clock)
        way = InstanceHttp(commands, seen)
        self._client = CompletionClient(id_token=None, monotonic=way.monotonic, http=way)

    def measure(self, says: str) -> tuple[Measurement, ...]:
        """Measure the newest start; what does not run is not asked."""
        up = self._seen.ready
        return self._measured.of(self._reached, "it runs, /health answered" if up else says, up=up)

    def not_newest(self, revision: str) -> tuple[Measurement, ...]:
        """Tell that a revision is not what runs."""
        return self._measured.of(self._reached, f"{revision} is not the newest any more", up=None)

    def server(self) -> ReachedServer:
        """Return the server of a unit that serves.

        Raises:
            NotRunning: It does not serve.
        """
        service = self._seen.target.service
        return awake(service, self._reached() if self._seen.ready is True else "its unit does not serve")

    def _reached(self) -> ReachedServer | str:
        service, model = self._seen.target.service, served_name(config_of(self._seen))
        if model is None:
            return NO_MODEL
        return ReachedServer(
            client=self._client, service=service, url=HOST, audience=HOST, model=model, locked=WANTS_KEY
        )
