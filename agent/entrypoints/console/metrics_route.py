"""The route of the metrics: for whoever may read the console, in Prometheus's form."""

from functools import cached_property
from typing import TYPE_CHECKING

from flask import Flask, Response, request

from agent.entrypoints.console.page_context import PageContext, who_asks
from agent.entrypoints.console.pages.queue import QueueView

if TYPE_CHECKING:
    from agent.entrypoints.metrics.exposition import Sources

MOST_LETTERS = 1000  # dead letters that are counted


class _Metrics:
    """Opened with the first scrape: prometheus_client is loaded then, and where nobody scrapes it never is."""

    def __init__(self, console: PageContext, queue: QueueView | None) -> None:
        self._console = console
        self._queue = queue

    @cached_property
    def sources(self) -> "Sources":
        from agent.entrypoints.metrics.exposition import Sources
        from agent.entrypoints.metrics.history import History

        context, queue = self._console.context, self._queue
        watched = [service.name for service in context.rules.services.services]
        return Sources(
            context=context,
            history=History(context.store, watched, self._console.settings.model_price),
            stopped=self._console.control.message,
            queue_age_s=self._console.queue_age_s,
            waiting=queue.waiting if queue is not None else dict,
            dead_letters=(lambda: len(queue.letters(MOST_LETTERS))) if queue is not None else (lambda: None),
        )


def add_metrics(app: Flask, console: PageContext, queue: QueueView | None) -> None:
    """Add the route; without a view of the queue nothing is said of dead letters."""
    metrics = _Metrics(console, queue)

    @app.get("/metrics")
    def exposition() -> Response:
        """Give the figures of this installation to Prometheus."""
        from agent.entrypoints.metrics.exposition import exposition

        who_asks(console)
        text, content_type = exposition(metrics.sources, request.headers.get("Accept", ""))
        return Response(text, content_type=content_type)
