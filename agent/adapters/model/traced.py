"""A model whose questions are spans, by OpenTelemetry's semantic conventions for generative AI.

The names are those of open-telemetry/semantic-conventions-genai, docs/gen-ai/gen-ai-spans.md, at commit
002c8a6ea1c8a42b14a4527db83b3cabcded610a (status: development; read 2026-11-23), with server.*, error.type of semantic
conventions 1.41.1. They stand in this file and nowhere else. A span covers a question with all its tries.
"""

import json
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from agent.ports.model import Model, Question, Reply
from agent.ports.tracing import Attributes, Kind, RedactedJson, Tracer

OPERATION: Final = "chat"
PROVIDER: Final = "openai"  # by its protocol, as the convention says of servers that speak it


class TracedModel:
    """Asks another model, and measures it.

    Args:
        inner: Whom to ask.
        tracer: Where spans go.
        content: Whether question and answer themselves are sent: opt-in, by the convention's own setting.
        redact: Takes secrets out of a text.
    """

    def __init__(self, inner: Model, tracer: Tracer, *, content: bool, redact: Callable[[str], str]) -> None:
        self._inner = inner
        self._tracer = tracer
        self._content = content
        self._redact = redact

    def ask(self, question: Question) -> Reply:
        """Return the inner model's answer."""
        asked: dict[str, str | int | float | bool] = {
            "gen_ai.operation.name": OPERATION,
            "gen_ai.provider.name": PROVIDER,
            "gen_ai.output.type": "json",
            "gen_ai.request.max_tokens": question.max_tokens,
            "gen_ai.request.stream": True,
            "gen_ai.request.temperature": 0.0,
            "sre_agent.prompt": question.prompt,
        }
        if self._content:
            asked["gen_ai.system_instructions"] = _json([self._part(question.system)])
        with self._tracer.span(OPERATION, kind=Kind.CLIENT, attributes=asked) as span:
            reply = self._inner.ask(question)
            span.name(f"{OPERATION} {reply.model}")
            span.note(_answered(reply))
            if self._content:
                span.note(self._texts(question, reply))
            return reply

    def judged(self, reply: Reply, *, usable: bool) -> None:
        """Let the inner model hear it."""
        self._inner.judged(reply, usable=usable)

    def _texts(self, question: Question, reply: Reply) -> Attributes:
        sent = (question.user, *question.shorter)[reply.used]
        said = {"role": "assistant", "parts": [self._part(reply.text)], "finish_reason": _reason(reply)}
        return {
            "gen_ai.input.messages": _json([{"role": "user", "parts": [self._part(sent)]}]),
            "gen_ai.output.messages": _json([said]),
        }

    def _part(self, text: str) -> dict[str, str]:
        return {"type": "text", "content": self._redact(text)}


def _json(parts: list[dict[str, Any]]) -> RedactedJson:
    return RedactedJson(json.dumps(parts))


def _answered(reply: Reply) -> Attributes:
    parts = urlsplit(reply.endpoint)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    at: dict[str, str | int] = {"server.address": parts.hostname, "server.port": port} if parts.hostname else {}
    return at | {
        "gen_ai.request.model": reply.model,
        "gen_ai.response.model": reply.model,
        "gen_ai.response.finish_reasons": (_reason(reply),),
        "gen_ai.usage.input_tokens": reply.tokens_in,
        "gen_ai.usage.output_tokens": reply.tokens_out,
        "sre_agent.model.calls": reply.spent.calls,
    }


def _reason(reply: Reply) -> str:
    return "stop" if reply.finished else "length"
