"""What a start on this machine is worth: ready, one real completion, its tokens and its speed."""

import time

from agent.adapters.platform.completion import CompletionClient, ReachedServer
from agent.adapters.platform.host.probe import Address, healthy, served_name
from agent.adapters.platform.reply_measurements import ReplyMeasurements
from agent.core.change.verification import Measurement
from agent.ports.clock import Clock
from agent.ports.host import Stage, Start
from agent.ports.model_server import asleep

COMPLETION_S = 60.0
WANTS_KEY = (
    "the server wants an API key (HTTP 401), and it is not the one of its startup flags or of VLLM_API_KEY: "
    "start sre-agent with VLLM_API_KEY set to the server's key"
)


def measurements(service: str, start: Start, address: Address, clock: Clock) -> tuple[Measurement, ...]:
    """Measure a start; what does not run is not asked."""
    measured = ReplyMeasurements(clock)

    def reached() -> ReachedServer:
        return _server(service, address)

    if start.stage is Stage.ENDED:
        return measured.of(reached, start.ending, up=False)
    if start.stage is not Stage.READY:
        return measured.of(reached, f"{start.revision} is {start.stage}", up=None)
    health = healthy(address)
    if start.sick or not health.good:
        return measured.of(reached, start.sick or health.says, up=False)
    return measured.of(reached, f"{start.revision} runs, {health.says}", up=True)


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
    return _server(service, address)


def _server(service: str, address: Address) -> ReachedServer:
    client = CompletionClient(
        id_token=None, monotonic=time.monotonic, api_key=lambda _: address.api_key, timeout_s=COMPLETION_S
    )
    model = served_name(address) or ""
    return ReachedServer(
        client=client, service=service, url=address.url, audience=address.url, model=model, locked=WANTS_KEY
    )
