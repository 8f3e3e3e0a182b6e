"""One real completion from an OpenAI-compatible server: does it answer, does it finish, and how fast."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from agent.adapters.http.client import HttpClient
from agent.adapters.http.failure import Failure, HttpFailed
from agent.adapters.http.target import PlainHttp
from agent.core.service.metric_rules import metric_values
from agent.core.value import Value
from agent.errors import DependencyFailed, InputRejected, SreError
from agent.ports.model_server import Completion
from agent.strict_json import read_json, read_object

PROMPT = "Count from one to twenty in words, separated by commas."
MAX_TOKENS = 64
TIMEOUT_S = 60.0
METRICS_S = 10.0
BIGGEST_BYTES = 4 * 2**20


class Outcome(StrEnum):
    """What came of asking."""

    ANSWERED = "answered"
    WRONG = "wrong"  # it answered, with nothing, without an end, or with one sign over and over
    BROKEN = "broken"  # the server says that it failed
    SILENT = "silent"  # no answer in time
    LOCKED = "locked"  # the server itself wants a key that we do not have
    REFUSED = "refused"  # we were not let in, or there was no room: says nothing about the model


class Reply(Value):
    """What one completion showed.

    Attributes:
        tokens: Completion tokens as the server counts them.
        first_token_s: Seconds until the first text.
        tokens_per_s: Decode speed after the first token.
        counter: ``generation_tokens`` of ``/metrics`` afterwards, None where it could not be read.
        prompt_tokens: Tokens of the prompt as the server counts them.
        text: What it wrote; untrusted.
    """

    outcome: Outcome
    says: str
    tokens: int | None = None
    first_token_s: float | None = None
    tokens_per_s: float | None = None
    counter: float | None = None
    prompt_tokens: int | None = None
    text: str = ""


class CompletionClient:
    """Asks one server for one completion, then reads its counters while it is awake.

    Args:
        id_token: Makes an ID token for an audience; None sends none.
        api_key: The server's own key by service, None where it has none.
        monotonic: Seconds that only go forward.
        timeout_s: For one answer; one whose connection ended is asked for twice.
        http: The way to the server; our own HTTP client when None.
    """

    def __init__(
        self,
        *,
        id_token: Callable[[str], str] | None,
        monotonic: Callable[[], float],
        api_key: Callable[[str], str | None] = lambda _: None,
        timeout_s: float = TIMEOUT_S,
        http: Any = None,
    ) -> None:
        self._id_token = id_token
        self._api_key = api_key
        self._monotonic = monotonic
        self._timeout_s = timeout_s
        own = HttpClient(timeout_s=timeout_s, limit_bytes=BIGGEST_BYTES, plain_http=PlainHttp.ALWAYS)
        self._http = http if http is not None else own

    def complete(
        self,
        service: str,
        *,
        url: str,
        audience: str,
        model: str,
        prompt: str = PROMPT,
        max_tokens: int = MAX_TOKENS,
        on_text: Callable[[], None] = lambda: None,
    ) -> Reply:
        """Ask for one completion.

        Args:
            service: Whose key to send.
            url: Where the server is, without a path.
            audience: What the ID token is made for: the service's own address, also where ``url`` carries a tag.
            model: The name it serves.
            prompt: What is asked.
            max_tokens: The most tokens of the answer.
            on_text: Called whenever text arrives, also of an answer that broke off; what it raises ends the request.
        """
        asked = _Asked(model=model, prompt=prompt, max_tokens=max_tokens, on_text=on_text)
        headers: dict[str, str] = {}
        try:
            headers = self._headers(service, audience)
            reply = self._ask_again_where_cut(url, asked, headers)
        except HttpFailed as error:
            if error.reason is Failure.TIMED_OUT:
                return Reply(outcome=Outcome.SILENT, says=f"no answer within {self._timeout_s:g} s")
            return Reply(outcome=Outcome.BROKEN, says=f"the connection failed: {error.why}")
        except SreError as error:
            return Reply(outcome=Outcome.REFUSED, says=str(error)[:500])
        if reply.outcome is not Outcome.ANSWERED:
            return reply.with_(says=_without(reply.says, headers))
        return reply.with_(counter=self._counter(url, headers))

    def _headers(self, service: str, audience: str) -> dict[str, str]:
        """Cloud Run reads its token from either header; the server's own key needs the usual one.

        "If X-Serverless-Authorization and Authorization are both present", Cloud Run checks the first alone and hands
        the second on: https://cloud.google.com/run/docs/authenticating/service-to-service, and Google's own
        https://github.com/GoogleCloudPlatform/cloud-run-proxy/pull/25 (both read 2026-11-21; not tried on a live
        service here).
        """
        headers = {"Accept": "text/event-stream", "Content-Type": "application/json"}
        if self._id_token is not None:
            headers["X-Serverless-Authorization"] = f"Bearer {self._id_token(audience)}"
        key = self._api_key(service)
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def metrics(self, service: str, *, url: str, audience: str) -> str:
        """Return the body of ``/metrics``.

        Raises:
            DependencyFailed: It cannot be read.
        """
        text = self._metrics(url, self._headers(service, audience))
        if text is None:
            raise DependencyFailed(
                f"the metrics of {service!r} were not read",
                why="its /metrics did not answer, or not to us",
                hint="look at the service's status, and at the key that its server wants",
            )
        return text

    def _ask_again_where_cut(self, url: str, asked: "_Asked", headers: dict[str, str]) -> Reply:
        """Ask once more where the connection ended before the answer did.

        A proxy on the way may have hung up. A server that died answers the second time no better.
        """
        try:
            return self._ask(url, asked, headers)
        except HttpFailed as error:
            if error.reason is not Failure.BROKEN:
                raise
        return self._ask(url, asked, headers)

    def _ask(self, url: str, asked: "_Asked", headers: dict[str, str], *, chat: bool = True) -> Reply:
        body: dict[str, Any] = {
            "model": asked.model,
            "max_tokens": asked.max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        body |= {"messages": [{"role": "user", "content": asked.prompt}]} if chat else {"prompt": asked.prompt}
        began = self._monotonic()
        path = f"{url.rstrip('/')}/v1/{'chat/completions' if chat else 'completions'}"
        with self._http.stream("POST", path, headers=headers, body=json.dumps(body).encode()) as response:
            if response.status == 200:
                return _Reading(self._monotonic, began, asked.on_text).read(response.chunks())
            text = response.read(2000).decode("utf-8", "replace")
        if chat and response.status in {400, 404} and "chat template" in text.lower():
            return self._ask(url, asked, headers, chat=False)  # refused before anything ran: it has no chat template
        return _denied(response.status, text)

    def _counter(self, url: str, headers: dict[str, str]) -> float | None:
        text = self._metrics(url, headers)
        return generation_tokens(text) if text is not None else None

    def _metrics(self, url: str, headers: dict[str, str]) -> str | None:
        sent = headers | {"Accept": "text/plain"}
        try:
            answer = self._http.request("GET", f"{url.rstrip('/')}/metrics", headers=sent, timeout_s=METRICS_S)
        except SreError:
            return None
        return str(answer.body.decode("utf-8", "replace")) if answer.status == 200 else None


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What one completion is asked with."""

    model: str
    prompt: str
    max_tokens: int
    on_text: Callable[[], None]


@dataclass(frozen=True, kw_only=True)
class ReachedServer:
    """A server that was seen to run, with the way to it; see :class:`agent.ports.model_server.ModelServer`.

    Attributes:
        client: Asks it.
        service: Whose server it is.
        url: Where it is, without a path.
        audience: What the ID token is made for.
        model: The name it serves.
        may_sleep: Whether silence may be its start-up; silence of one that must be awake is a hang.
        locked: What to do where it wants another key; empty where services.toml names its key.
    """

    client: CompletionClient
    service: str
    url: str
    audience: str
    model: str
    may_sleep: bool = False
    locked: str = ""

    def complete(self, prompt: str, *, max_tokens: int, on_text: Callable[[], None]) -> Completion:
        """Ask for one completion; see the port."""
        reply = self.client.complete(
            self.service,
            url=self.url,
            audience=self.audience,
            model=self.model,
            prompt=prompt,
            max_tokens=max_tokens,
            on_text=on_text,
        )
        if reply.outcome not in {Outcome.ANSWERED, Outcome.WRONG}:
            key = "give the server's key in SERVICE_API_KEYS, under the name that services.toml gives it"
            raise DependencyFailed(
                f"{self.service!r} did not complete the prompt",
                why=f"{reply.outcome}: {reply.says}",
                hint=key if reply.outcome is Outcome.LOCKED else "look at its status and its log",
            )
        figures = reply.model_dump(include=set(Completion.model_fields))
        return Completion.model_validate(figures)

    def metrics(self) -> str:
        """Return its metrics; see the port."""
        return self.client.metrics(self.service, url=self.url, audience=self.audience)


def generation_tokens(metrics: str) -> float | None:
    """Return the sum over engines of vLLM's generation token counter, None where it does not stand there."""
    return metric_values(metrics).get("generated")


class _Reading:
    """Reads one stream of events until it ends, or a limit of the call ends it."""

    def __init__(self, monotonic: Callable[[], float], began: float, on_text: Callable[[], None]) -> None:
        self._monotonic = monotonic
        self._began = began
        self._on_text = on_text
        self._text: list[str] = []
        self._finish: str | None = None
        self._tokens: int | None = None
        self._prompt_tokens: int | None = None
        self._first: float | None = None
        self._last: float | None = None

    def read(self, chunks: Iterator[bytes]) -> Reply:
        try:
            for event in _events(chunks):
                if "error" in event:
                    return self._reply(Outcome.BROKEN, f"it answered with an error: {str(event['error'])[:300]}")
                self._take(event)
        except HttpFailed as error:
            if error.reason is Failure.BROKEN:
                raise
            return self._reply(Outcome.SILENT, f"no end: {error.why}")
        text = "".join(self._text).strip()
        if self._finish is None:
            return self._reply(Outcome.WRONG, "the answer broke off")
        if not text:
            return self._reply(Outcome.WRONG, "the answer is empty")
        if len(text) >= 16 and len(set(text)) == 1:
            return self._reply(Outcome.WRONG, f"the answer is {text[0]!r} over and over")
        return self._reply(Outcome.ANSWERED, f"answered and finished ({self._finish})")

    def _take(self, event: dict[str, Any]) -> None:
        usage = event.get("usage")
        if isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
            self._tokens = usage["completion_tokens"]
            prompt = usage.get("prompt_tokens")
            self._prompt_tokens = prompt if isinstance(prompt, int) else None
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if not isinstance(choice, dict):
                continue
            said = _said(choice)
            if said:
                self._text.append(said)
                self._on_text()
                self._last = self._monotonic()
                self._first = self._first if self._first is not None else self._last
            if isinstance(choice.get("finish_reason"), str):
                self._finish = choice["finish_reason"]

    def _reply(self, outcome: Outcome, says: str) -> Reply:
        speed = None
        if self._tokens is not None and self._tokens > 1 and self._first is not None and self._last is not None:
            took = self._last - self._first
            speed = (self._tokens - 1) / took if took > 0 else None
        return Reply(
            outcome=outcome,
            says=says,
            tokens=self._tokens,
            first_token_s=self._first - self._began if self._first is not None else None,
            tokens_per_s=speed,
            prompt_tokens=self._prompt_tokens,
            text="".join(self._text),
        )


def _events(chunks: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from filter(None, map(_event, lines))
    last = _event(rest)
    if last is not None:
        yield last


def _event(line: bytes) -> dict[str, Any] | None:
    """Return the event of one line, None where it holds none."""
    data = line.removeprefix(b"data:").strip()
    if not line.startswith(b"data:") or data == b"[DONE]":
        return None
    try:
        return read_object(data, what="event", limit=None)
    except InputRejected:
        return {"error": "an event that is no JSON object"}


def _said(choice: dict[str, Any]) -> str:
    """Text of a chat delta, of its reasoning, or of a plain completion."""
    delta = choice.get("delta")
    places = (choice, delta) if isinstance(delta, dict) else (choice,)
    return "".join(
        place[key]
        for place in places
        for key in ("text", "content", "reasoning", "reasoning_content")
        if isinstance(place.get(key), str)
    )


def _denied(status: int, text: str) -> Reply:
    says = f"HTTP {status}: {text[:300]}"
    if status == 401 and _own_word(text):
        return Reply(outcome=Outcome.LOCKED, says=says)
    if status in {401, 403, 429} or 300 <= status < 400:
        return Reply(outcome=Outcome.REFUSED, says=says)
    return Reply(outcome=Outcome.BROKEN, says=says)


def _own_word(text: str) -> bool:
    """Whether a refusal is the server's own: vLLM answers JSON with an ``error``, Cloud Run's front end a page."""
    try:
        refusal = read_json(text.encode("utf-8", "replace"), what="refusal", limit=None)
    except InputRejected:
        return False
    return isinstance(refusal, dict) and "error" in refusal


def _without(says: str, headers: dict[str, str]) -> str:
    """Take out what we sent to prove ourselves, should a server say it back."""
    for name in ("Authorization", "X-Serverless-Authorization"):
        secret = headers.get(name, "").removeprefix("Bearer ")
        says = says.replace(secret, "[our key]") if secret else says
    return says
