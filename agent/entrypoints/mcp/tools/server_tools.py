"""Tools that ask a running server: a prompt, its metrics, one bounded completion. None of them starts an instance."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from mcp.server.mcpserver import Context
from pydantic import Field

from agent.entrypoints.mcp.tools.live_services import LiveServices
from agent.entrypoints.mcp.tools.progress import Progress
from agent.entrypoints.mcp.tools.result import LINE, Result, Untrusted, untrusted
from agent.entrypoints.mcp.tools.service_tools import ServiceName

if TYPE_CHECKING:
    from agent.ports.model_server import Completion, ModelServer

Prompt = Annotated[str, Field(min_length=1, max_length=20_000, description="what the served model is asked")]
MaxTokens = Annotated[int, Field(ge=1, le=1024, description="the most tokens of the answer")]


class Answered(Result):
    """What the served model wrote, as data."""

    service: str
    answer: Untrusted
    ending: str


class AnsweredWithStats(Answered):
    """The same with its speed; null where the server did not say."""

    prompt_tokens: int | None
    tokens: int | None
    time_to_first_token_s: float | None
    tokens_per_s: float | None
    note: str = "one request; speed is that of decoding, after the first token"


class MetricRow(Result):
    """One number of the server."""

    name: str
    value: float
    unit: str
    series: str


class MetricsShown(Result):
    """The numbers that matter; a number that the server does not say is left out."""

    service: str
    metrics: list[MetricRow]
    note: str = "counters begin at the start of this server; of several instances one was asked"


class HealthShown(Result):
    """One bounded completion and its figures; ``good`` null means not measured. ``says`` holds the words, in order."""

    service: str
    revision: str | None
    measurements: list[dict[str, Any]]
    says: Untrusted
    note: str = "one completion of at most a few tokens; speed is of one request"


class ServerTools:
    """The tools that ask a server.

    Args:
        open_services: Opens the watched services; once, at the first question.
        redact: Takes secrets out of a text.
    """

    def __init__(self, open_services: Callable[[], LiveServices], *, redact: Callable[[str], str]) -> None:
        self._open, self._redact = open_services, redact

    def query(self, service: ServiceName, prompt: Prompt, context: Context, max_tokens: MaxTokens = 256) -> Answered:
        """Ask the model of a service that runs, once; a service that may sleep is not woken: propose a start."""
        said = self._completed(service, prompt, context, max_tokens)
        return Answered(service=service, answer=self._shown(said), ending=said.says)

    def query_with_stats(
        self, service: ServiceName, prompt: Prompt, context: Context, max_tokens: MaxTokens = 256
    ) -> AnsweredWithStats:
        """Ask the model of a service that runs, once, and show time to first token and tokens per second."""
        said = self._completed(service, prompt, context, max_tokens)
        return AnsweredWithStats(
            service=service,
            answer=self._shown(said),
            ending=said.says,
            prompt_tokens=said.prompt_tokens,
            tokens=said.tokens,
            time_to_first_token_s=said.first_token_s,
            tokens_per_s=said.tokens_per_s,
        )

    def metrics(self, service: ServiceName) -> MetricsShown:
        """Show the vLLM metrics that matter of a service that runs: load, KV cache, tokens, latencies."""
        from agent.core.service.metric_summary import metric_summary

        figures = metric_summary(self._server(service).metrics())
        rows = [MetricRow(name=f.name, value=f.value, unit=f.unit, series=f.series) for f in figures]
        return MetricsShown(service=service, metrics=rows)

    def verify_model_health(self, service: ServiceName) -> HealthShown:
        """Send one bounded completion to a service that runs, and read its token counter and speed."""
        from agent.ports.model_server import asleep

        services = self._open()
        live, platform = services.live(service), services.platform_of(service)
        revision = live.latest_ready_revision or live.latest_created_revision
        if live.ready is not True or live.config.max_instances == 0 or revision is None:
            raise asleep(service, "no instance of it is known to serve")
        if not services.simulated:
            platform.server(live.service)  # refuses what a completion would wake
        measured = platform.measure(live.service, revision)
        rows = [m.model_dump(mode="json", exclude={"says"}) for m in measured]
        says = untrusted([f"{m.check}: {m.says}" for m in measured], redact=self._redact)
        return HealthShown(service=live.service, revision=revision, measurements=rows, says=says)

    def _server(self, service: str) -> "ModelServer":
        return self._open().platform_of(service).server(service)

    def _completed(self, service: str, prompt: str, context: Any, max_tokens: int) -> "Completion":
        progress = Progress(context)
        return self._server(service).complete(prompt, max_tokens=max_tokens, on_text=progress.check)

    def _shown(self, said: "Completion") -> Untrusted:
        lines = [piece for line in self._redact(said.text).split("\n") for piece in _pieces(line)]
        return untrusted(lines, redact=self._redact)


def _pieces(line: str) -> list[str]:
    """A paragraph in lines that are shown whole; it is redacted before, so that no cut hides a secret."""
    return [line[at : at + LINE] for at in range(0, len(line), LINE)] or [""]
