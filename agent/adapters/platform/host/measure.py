"""What a start on this machine is worth: ready, one real completion, its tokens and its speed."""

import time
from datetime import datetime

from agent.adapters.platform.completion import CompletionClient, Outcome, ReachedServer
from agent.adapters.platform.host.probe import Address, healthy, metrics, served_name
from agent.core.change.verification import Check, Measurement
from agent.core.service.metric_rules import read_sample
from agent.ports.host import Stage, Start
from agent.ports.model_server import asleep

COMPLETION_S = 60.0
WANTS_KEY = (
    "the server wants an API key (HTTP 401), and it is not the one of its startup flags or of VLLM_API_KEY: "
    "start sre-agent with VLLM_API_KEY set to the server's key"
)


def measurements(service: str, start: Start, address: Address, now: datetime) -> tuple[Measurement, ...]:
    """Measure a start; what does not run is not asked.

    Args:
        service: Whose start it is.
        start: As on record.
        address: Where its server is asked.
        now: When it is measured.
    """

    def said(check: Check, says: str, *, good: bool | None, value: float | None = None) -> Measurement:
        return Measurement(check=check, good=good, says=says, value=value, at=now)

    if start.stage is Stage.ENDED:
        return (said(Check.READY, start.ending, good=False),)
    if start.stage is not Stage.READY:
        return (said(Check.READY, f"{start.revision} is {start.stage}", good=None),)
    health = healthy(address)
    if start.sick or not health.good:
        return (said(Check.READY, start.sick or health.says, good=False),)
    ready = said(Check.READY, f"{start.revision} runs, {health.says}", good=True)
    before = _generated(address, now)
    reply = _client(address).complete(service, url=address.url, audience=address.url, model=served_name(address) or "")
    refused = reply.outcome in {Outcome.REFUSED, Outcome.LOCKED}
    says = WANTS_KEY if reply.outcome is Outcome.LOCKED else reply.says
    answer = said(Check.COMPLETION, says, good=None if refused else reply.outcome is Outcome.ANSWERED)
    if reply.outcome is not Outcome.ANSWERED:
        return (ready, answer)
    more = None if before is None or reply.counter is None else reply.counter - before
    tokens = said(
        Check.TOKENS,
        "the token counter was not read" if more is None else f"the token counter went up by {more:.0f}",
        good=None if more is None else more > 0,
        value=more,
    )
    speed = said(
        Check.SPEED,
        "the speed was not measured" if reply.tokens_per_s is None else f"{reply.tokens_per_s:,.1f} tokens/s",
        good=None,
        value=reply.tokens_per_s,
    )
    return (ready, answer, tokens, speed.with_(first_token_s=reply.first_token_s))


def running_server(service: str, start: Start | None, address: Address | None) -> ReachedServer:
    """Return the server of a start that serves.

    Args:
        service: Whose start it is.
        start: The newest one; None where there is none.
        address: Where its server is asked.

    Raises:
        NotRunning: It does not serve.
    """
    if start is None or address is None or start.stage is not Stage.READY or not healthy(address).good:
        raise asleep(service, "no process of it serves")
    model = served_name(address) or ""
    return ReachedServer(client=_client(address), service=service, url=address.url, audience=address.url, model=model)


def _client(address: Address) -> CompletionClient:
    return CompletionClient(
        id_token=None, monotonic=time.monotonic, api_key=lambda _: address.api_key, timeout_s=COMPLETION_S
    )


def _generated(address: Address, now: datetime) -> float | None:
    text = metrics(address)
    return read_sample(text, at=now).generated if text is not None else None
