"""One question to one OpenAI-compatible server, inside a deadline; every ending is one of a short list."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from agent.adapters.http.deadline import Deadline
from agent.adapters.model.endpoint import Endpoint
from agent.errors import InputRejected
from agent.strict_json import read_object

if TYPE_CHECKING:
    from openai import OpenAI

CONNECT_S = 5.0
FIRST_TOKEN_S = 20.0
TEXT_LIMIT = 65_536  # characters of an answer; the rest is not read
LISTING_LIMIT = 262_144


class Failure(StrEnum):
    """Why a call brought no answer."""

    UNREACHABLE = "unreachable"  # refused, reset, timed out: it may sleep or be down
    BUSY = "busy"  # 429, 502, 503, 504
    REFUSED = "refused"  # 401, 403, 404: who asks, or where, is wrong
    BROKEN = "broken"  # another status
    CANNOT = "cannot"  # it does not know this form of question: 400, 422, 500, 501
    GARBAGE = "garbage"  # no answer of this protocol


class CallFailed(Exception):
    """A call without an answer.

    Attributes:
        sent: Whether the server may have worked on it, so that it counts as paid for.
    """

    def __init__(self, failure: Failure, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.failure = failure
        self.why = why
        self.sent = sent


class Form(StrEnum):
    """How the schema of the answer is said; the servers that know none of them are not used."""

    JSON_SCHEMA = "json_schema"  # vLLM, OpenAI
    JSON_OBJECT = "json_object"  # llama.cpp's server: the schema stands beside the type


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What a server says of itself: its model, and the longest context, where it tells."""

    model: str
    window: int | None


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What came back for one question; token counts are None where the server does not count."""

    text: str
    finished: bool
    tokens_in: int | None
    tokens_out: int | None


class ChatCall:
    """One server for the time of one question.

    Args:
        endpoint: Which.
        headers: Who we are.
        deadline: Over everything that is asked through it.
        first_token_s: How long the server may think before its first word.
    """

    def __init__(
        self, endpoint: Endpoint, headers: dict[str, str], deadline: Deadline, *, first_token_s: float = FIRST_TOKEN_S
    ) -> None:
        self._endpoint = endpoint
        self._headers = headers
        self._deadline = deadline
        self._first_token_s = first_token_s
        self._client = self._connect()

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def listing(self) -> Listing:
        """Ask which model is served: it costs no token, and wakes what sleeps.

        Raises:
            CallFailed: Nobody answered.
        """
        with _failures(sent=False):
            raw = self._client.with_options(timeout=self._deadline.left_s).models.with_raw_response.list()
            body = raw.content[: LISTING_LIMIT + 1]
        try:
            rows = read_object(body, what="list of models", limit=LISTING_LIMIT)["data"]
            first = next(r for r in rows if self._endpoint.model in {None, r["id"]})
            window = first.get("max_model_len")
        except (InputRejected, KeyError, TypeError, AttributeError, StopIteration) as error:
            if self._endpoint.model:
                return Listing(model=self._endpoint.model, window=None)
            raise CallFailed(Failure.GARBAGE, "its list of models cannot be read", sent=False) from error
        known = isinstance(window, int) and not isinstance(window, bool) and window > 0
        return Listing(model=str(first["id"])[:200], window=window if known else None)

    def tokens(self, model: str, messages: list[dict[str, str]]) -> int | None:
        """Let the server count the tokens of a question; None where it cannot."""
        try:
            with _failures(sent=False):
                said: Any = self._client.post(
                    f"{self._endpoint.root}/tokenize",
                    body={"model": model, "messages": messages},
                    cast_to=object,
                    options={"timeout": min(5.0, self._deadline.left_s)},
                )
        except CallFailed:
            return None
        count = said.get("count") if isinstance(said, dict) else None
        return count if isinstance(count, int) and count >= 0 else None

    def answer(
        self, model: str, messages: list[dict[str, str]], *, schema: dict[str, Any], form: Form, max_tokens: int
    ) -> Answered:
        """Ask, and read the answer as it comes.

        Raises:
            CallFailed: There is none.
        """
        sent = {
            "model": model,
            "messages": messages,
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            "response_format": _response_format(schema, form),
        }
        with _failures(sent=True):
            create: Any = self._client.with_options(timeout=self._timeout()).chat.completions.create
            with create(**sent) as stream:
                return _read(stream)

    def _timeout(self) -> Any:
        import httpx2

        left = max(0.001, self._deadline.left_s)
        return httpx2.Timeout(left, connect=min(CONNECT_S, left), read=min(self._first_token_s, left))

    def _connect(self) -> "OpenAI":
        import httpx2
        from openai import OpenAI

        from agent.adapters.http.sdk_transport import DeadlineTransport

        transport = DeadlineTransport(self._deadline)
        return OpenAI(
            base_url=self._endpoint.base_url,
            api_key="none",
            max_retries=0,
            default_headers=self._headers,
            http_client=httpx2.Client(transport=transport, follow_redirects=False, trust_env=False),
        )


def _response_format(schema: dict[str, Any], form: Form) -> dict[str, Any]:
    if form is Form.JSON_SCHEMA:
        return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    return {"type": "json_object", "schema": schema}


class _Reading:
    """An answer as it comes in pieces."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0
        self.reason: str | None = None
        self.counted: tuple[int | None, int | None] = (None, None)
        self.received = False

    def take(self, chunk: Any) -> bool:
        """Take a piece; return whether more is wanted."""
        self.received = True
        usage = getattr(chunk, "usage", None)
        if usage is not None:
            self.counted = (_count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))
        for choice in (getattr(chunk, "choices", None) or ())[:1]:
            text = getattr(getattr(choice, "delta", None), "content", None) or ""
            self.pieces.append(str(text))
            self.length += len(self.pieces[-1])
            self.reason = getattr(choice, "finish_reason", None) or self.reason
        if self.length > TEXT_LIMIT:
            self.reason = "too long"
        return self.length <= TEXT_LIMIT


def _read(stream: Any) -> Answered:
    import httpx2
    import openai

    reading = _Reading()
    try:
        for chunk in stream:
            if not reading.take(chunk):
                break
    except (httpx2.HTTPError, openai.APIConnectionError):
        if reading.reason is None:
            raise  # after its last word a server may be as slow to close as it likes
    if not reading.received:
        raise CallFailed(Failure.GARBAGE, "it answered with something else than a stream of events", sent=True)
    text = "".join(reading.pieces)[: TEXT_LIMIT + 1]
    tokens_in, tokens_out = reading.counted
    return Answered(text=text, finished=reading.reason == "stop", tokens_in=tokens_in, tokens_out=tokens_out)


def _count(usage: Any, name: str) -> int | None:
    count = getattr(usage, name, None)
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


@contextmanager
def _failures(*, sent: bool) -> Iterator[None]:
    """Turn everything that a server, the network or the client can throw into the short list."""
    import httpx2
    import openai

    try:
        yield
    except openai.APIStatusError as error:
        raise CallFailed(_by_status(error.status_code), f"HTTP {error.status_code}", sent=False) from error
    except openai.APIConnectionError as error:
        cause = error.__cause__ or error
        began = sent and not isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout)
        raise CallFailed(Failure.UNREACHABLE, _name(cause), sent=began) from error
    except httpx2.HTTPError as error:
        raise CallFailed(Failure.UNREACHABLE, _name(error), sent=sent) from error
    except (openai.OpenAIError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise CallFailed(Failure.GARBAGE, f"its answer cannot be read ({type(error).__name__})", sent=sent) from error


def _by_status(status: int) -> Failure:
    if status in {429, 502, 503, 504}:
        return Failure.BUSY
    if status in {401, 403, 404}:
        return Failure.REFUSED
    return Failure.CANNOT if status in {400, 422, 500, 501} else Failure.BROKEN


def _name(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:120]}".rstrip(": ")
