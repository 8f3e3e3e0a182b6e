"""Questions to a server here: is it up, what is it called, does a completion finish, what do its numbers say."""

import json
from typing import Any

from agent.adapters.http import client as http
from agent.adapters.http.client import HttpClient
from agent.adapters.http.failure import Failure, HttpFailed
from agent.adapters.http.target import PlainHttp
from agent.core.service.container_args import flag_map
from agent.core.service.serving import ServingConfig
from agent.core.value import Value
from agent.errors import InputRejected
from agent.strict_json import read_object

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
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


class HealthReply(Value):
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


def healthy(address: Address) -> HealthReply:
    """Ask /health once."""
    try:
        status = _ask(address, "GET", "/health", timeout_s=HEALTH_S).status
    except HttpFailed as error:
        return HealthReply(good=False, says=f"/health did not answer: {error.why}")
    return HealthReply(good=status == 200, says=f"/health answered {status}")


def metrics(address: Address) -> str | None:
    """Return the body of /metrics, or None where there is none to read."""
    try:
        answer = _ask(address, "GET", "/metrics", timeout_s=METRICS_S)
    except HttpFailed:
        return None
    return answer.body.decode("utf-8", "replace") if answer.status == 200 else None


def served_name(address: Address) -> str | None:
    """Return the first name that the server lists under /v1/models."""
    try:
        answer = _ask(address, "GET", "/v1/models", timeout_s=METRICS_S)
        listed = _object(answer.body)["data"] if answer.status == 200 else []
        return str(listed[0]["id"]) if listed else None
    except (HttpFailed, InputRejected, KeyError, TypeError, IndexError):
        return None


def completes(address: Address, *, timeout_s: float = ANSWER_S) -> HealthReply:
    """Ask for a completion of a few tokens and wait for its end."""
    name = served_name(address)
    if name is None:
        return HealthReply(good=False, says="/v1/models names no model")
    body = {"model": name, "prompt": "Hello", "max_tokens": FEW_TOKENS, "temperature": 0}
    try:
        answer = _ask(address, "POST", "/v1/completions", timeout_s=timeout_s, body=body)
    except HttpFailed as error:
        late = f"a completion of {FEW_TOKENS} tokens did not finish within {timeout_s:g} s"
        says = late if error.reason is Failure.TIMED_OUT else f"the connection failed during a completion: {error.why}"
        return HealthReply(good=False, says=says)
    status, said = answer.status, answer.body
    if status in {401, 403, 404, 429}:
        return HealthReply(good=None, says=f"the completion was refused with {status}")
    if status != 200:
        return HealthReply(good=False, says=f"a completion answered {status}: {said[:200].decode('utf-8', 'replace')}")
    try:
        reason = _object(said)["choices"][0]["finish_reason"]
    except (InputRejected, KeyError, TypeError, IndexError):
        return HealthReply(good=False, says="the completion's answer has no choice in it")
    return HealthReply(good=True, says=f"a completion finished ({reason})")


def _object(body: bytes) -> dict[str, Any]:
    return read_object(body, what="answer", limit=BIGGEST_BYTES)


def _ask(
    address: Address, method: str, path: str, *, timeout_s: float, body: dict[str, Any] | None = None
) -> http.HttpResponse:
    """Ask once; raises HttpFailed where there is no answer."""
    headers = {"content-type": "application/json"} if body is not None else {}
    if address.api_key is not None:
        headers["authorization"] = f"Bearer {address.api_key}"
    client = HttpClient(timeout_s=timeout_s, limit_bytes=BIGGEST_BYTES, plain_http=PlainHttp.ALWAYS)
    sent = json.dumps(body).encode() if body is not None else None
    return client.request(method, address.url + path, headers=headers, body=sent)
