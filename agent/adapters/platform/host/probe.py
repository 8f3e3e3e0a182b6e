"""Questions to a server here: is it up, what is it called, does a completion finish, what do its numbers say."""

import http.client
import json
from contextlib import closing
from typing import Any

from agent.core.service.container_args import flag_map
from agent.core.service.serving import ServingConfig
from agent.core.value import Value

HEALTH_S = 1.0
METRICS_S = 5.0
ANSWER_S = 20.0  # for a few tokens; a busy server is judged by its token counters, never by this
BIGGEST_BYTES = 4 * 2**20
FEW_TOKENS = 4
ANYWHERE = frozenset({"0.0.0.0", "::", "[::]", ""})  # noqa: S104 - what a server may listen on, not what we bind


class Address(Value):
    """Where a server on this machine is asked."""

    host: str
    port: int
    api_key: str | None = None

    @property
    def url(self) -> str:
        """The same as an address without a path."""
        return f"http://{self.host}:{self.port}"


class Answer(Value):
    """What one question brought.

    Attributes:
        good: True, False, or None where the answer says nothing about the server (we were not let in).
    """

    good: bool | None
    says: str


def address_of(config: ServingConfig, environ: dict[str, str]) -> Address:
    """Return where a configuration's server is asked: its own flags, vLLM's defaults otherwise."""
    flags = flag_map(config.args)
    host = flags.get("host", "")
    key = flags.get("api-key") or environ.get("VLLM_API_KEY")
    port = flags.get("port", "")
    number = int(port) if port.isascii() and port.isdigit() and 0 < int(port) < 65536 else 8000
    return Address(host="127.0.0.1" if host in ANYWHERE else host, port=number, api_key=key or None)


def healthy(address: Address) -> Answer:
    """Ask /health once."""
    try:
        status, _ = _ask(address, "GET", "/health", timeout_s=HEALTH_S)
    except OSError as error:
        return Answer(good=False, says=f"/health did not answer: {type(error).__name__}")
    return Answer(good=status == 200, says=f"/health answered {status}")


def metrics(address: Address) -> str | None:
    """Return the body of /metrics, or None where there is none to read."""
    try:
        status, body = _ask(address, "GET", "/metrics", timeout_s=METRICS_S)
    except OSError:
        return None
    return body.decode("utf-8", "replace") if status == 200 else None


def served_name(address: Address) -> str | None:
    """Return the first name that the server lists under /v1/models."""
    try:
        status, body = _ask(address, "GET", "/v1/models", timeout_s=METRICS_S)
        listed = json.loads(body)["data"] if status == 200 else []
        return str(listed[0]["id"]) if listed else None
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def completes(address: Address, *, timeout_s: float = ANSWER_S) -> Answer:  # noqa: PLR0911 - each end has its words
    """Ask for a completion of a few tokens and wait for its end."""
    name = served_name(address)
    if name is None:
        return Answer(good=False, says="/v1/models names no model")
    body = {"model": name, "prompt": "Hello", "max_tokens": FEW_TOKENS, "temperature": 0}
    try:
        status, said = _ask(address, "POST", "/v1/completions", timeout_s=timeout_s, body=body)
    except TimeoutError:
        return Answer(good=False, says=f"a completion of {FEW_TOKENS} tokens did not finish within {timeout_s:g} s")
    except OSError as error:
        return Answer(good=False, says=f"the connection failed during a completion: {type(error).__name__}")
    if status in {401, 403, 404, 429}:
        return Answer(good=None, says=f"the completion was refused with {status}")
    if status != 200:
        return Answer(good=False, says=f"a completion answered {status}: {said[:200].decode('utf-8', 'replace')}")
    try:
        reason = json.loads(said)["choices"][0]["finish_reason"]
    except (ValueError, KeyError, TypeError, IndexError):
        return Answer(good=False, says="the completion's answer has no choice in it")
    return Answer(good=True, says=f"a completion finished ({reason})")


def _ask(
    address: Address, method: str, path: str, *, timeout_s: float, body: dict[str, Any] | None = None
) -> tuple[int, bytes]:
    """Ask once and read at most ``BIGGEST_BYTES``; whatever is no HTTP is an OSError."""
    headers = {"Content-Type": "application/json"} if body is not None else {}
    if address.api_key is not None:
        headers["Authorization"] = f"Bearer {address.api_key}"
    with closing(http.client.HTTPConnection(address.host, address.port, timeout=timeout_s)) as connection:
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            return response.status, response.read(BIGGEST_BYTES)
        except http.client.HTTPException as error:
            raise ConnectionError(type(error).__name__) from error
