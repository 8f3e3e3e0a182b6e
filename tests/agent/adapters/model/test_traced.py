"""A question is a span by the conventions for generative AI; its words are sent only by the convention's own setting."""

import json

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from agent.adapters.model.traced import TracedModel
from agent.adapters.tracing.otel import OtelTracer
from agent.app.redaction import redact
from agent.app.tracing import traced_model
from agent.core.diagnosis.model_request import Spend
from agent.ports.model import NoAnswer, Reply
from agent.ports.tracing import NoTracer
from agent.settings import read_settings
from tests.model_server import MODEL
from tests.spans import tracer_into

ANSWER = "it ran out of memory, hush"


@pytest.fixture
def sent():
    return InMemorySpanExporter()


@pytest.fixture
def tracer(sent):
    return tracer_into(sent)


@pytest.fixture
def asked(servers, chat, question, tracer, sent):
    """Ask a real server over HTTP and return the question's one span."""

    def ask(setting=None, **changes):
        words = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": setting} if setting else {}
        with servers.Server(servers.answering(lambda _: ANSWER)) as server:
            model = chat(server.url, first_token_s=5)
            traced = traced_model(model, tracer, read_settings(words))
            reply = traced.ask(question(limit_s=30, **changes))
            traced.judged(reply, usable=True)
        assert reply.text == ANSWER
        (span,) = sent.get_finished_spans()
        return span, server

    return ask


def test_a_question_is_a_span_in_the_words_of_the_convention(asked):
    span, server = asked()
    assert (span.name, span.kind) == (f"chat {MODEL}", SpanKind.CLIENT)
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.output.type": "json",
        "gen_ai.request.max_tokens": 700,
        "gen_ai.request.model": MODEL,
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.0,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.model": MODEL,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "server.address": "127.0.0.1",
        "server.port": server.port,
        "sre_agent.model.calls": 1,
        "sre_agent.prompt": "diagnose.v1 000000000000",
    }


@pytest.mark.parametrize("setting", [None, "NO_CONTENT", "EVENT_ONLY", "false", ""])
def test_no_text_is_sent_by_default(asked, setting):
    span, _ = asked(setting)
    assert "What broke?" not in repr(span.attributes)
    assert "memory" not in repr(span.attributes)


@pytest.mark.parametrize("setting", ["SPAN_ONLY", "span_and_event", "true"])
def test_text_is_sent_when_asked_for(asked, setting):
    """As the convention's JSON schemas have it: roles, parts, the reason of the end."""
    span, _ = asked(setting)
    said = json.loads(span.attributes["gen_ai.output.messages"])
    assert said == [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"}]
    (user,) = json.loads(span.attributes["gen_ai.input.messages"])
    assert user == {"role": "user", "parts": [{"type": "text", "content": "What broke?"}]}
    assert json.loads(span.attributes["gen_ai.system_instructions"])[0]["content"] == "Answer by the schema."


def test_text_is_sent_without_its_secrets(tracer, sent, question):
    class Never:
        def ask(self, question):
            raise NoAnswer("x", why="hush at http://x", hint="h", spent=None, again=False)

    model = TracedModel(Never(), tracer, content=True, redact=lambda text: text.replace("schema", "[x]"))
    with pytest.raises(NoAnswer):
        model.ask(question())
    (span,) = sent.get_finished_spans()
    assert (span.name, span.attributes["error.type"]) == ("chat", "NoAnswer")
    assert "schema" not in span.attributes["gen_ai.system_instructions"]
    assert "hush" not in repr(span.to_json())


def test_a_text_that_is_json_itself_is_sent_whole_and_without_its_secrets(sent, question):
    """Redacted once, before it is made part of JSON: over JSON a redaction takes a quote for the end of a secret."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(sent))
    log = '{"password": "hunter2hunter2"}\napi_key=hunter3hunter3 "quoted"'

    class Echo:
        def ask(self, question):
            spent = Spend(calls=1, tokens=1, tokens_out=1, seconds=1)
            return Reply(
                text=log, model=MODEL, endpoint="", tokens_in=1, tokens_out=1, took_s=1, finished=True, spent=spent
            )

    tracer = OtelTracer(provider, SimpleSpanProcessor(sent), redact=redact, target="")
    TracedModel(Echo(), tracer, content=True, redact=redact).ask(question(user=log, system=log))
    (span,) = sent.get_finished_spans()
    (asked,) = json.loads(span.attributes["gen_ai.input.messages"])
    (answered,) = json.loads(span.attributes["gen_ai.output.messages"])
    (told,) = json.loads(span.attributes["gen_ai.system_instructions"])
    assert asked["parts"] == answered["parts"] == [told] == [{"type": "text", "content": redact(log)}]
    assert "hunter" not in repr(span.to_json())


def test_without_a_tracer_the_model_is_itself(chat):
    model = chat("http://127.0.0.1:9/v1")
    assert traced_model(model, NoTracer(), read_settings({})) is model
