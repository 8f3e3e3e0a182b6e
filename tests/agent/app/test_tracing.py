"""The settings choose the tracer; a process whose traces cannot be sent works without them and says so."""

import sys

import pytest

from agent.adapters.tracing.otel import OtelTracer
from agent.app import tracing
from agent.errors import SettingsRejected
from agent.ports.tracing import NoTracer
from agent.settings import read_settings

ADDRESS = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    "words", [{}, {"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, ADDRESS | {"OTEL_TRACES_EXPORTER": "none"}]
)
def test_without_a_collector_nothing_is_traced(words):
    settings = read_settings(words)
    assert tracing.open_tracer(settings, "up") is None
    assert isinstance(tracing.tracer_of(settings, "up"), NoTracer)


def test_with_one_spans_are_sent():
    tracer = tracing.tracer_of(read_settings(ADDRESS), "on_tick")
    assert isinstance(tracer, OtelTracer)
    tracer.close()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'"),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER is 'zipkin'"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"}, "OTEL_EXPORTER_OTLP_ENDPOINT is no http"),
    ],
    ids=["gRPC", "another exporter", "no address"],
)
def test_what_is_not_built_in_is_refused_and_stops_no_function(words, why, capsys):
    settings = read_settings(ADDRESS | words)
    with pytest.raises(SettingsRejected, match=why):
        tracing.open_tracer(settings, "up")
    assert isinstance(tracing.tracer_of(settings, "on_tick"), NoTracer)
    assert "traces.off" in capsys.readouterr().out


def test_a_setting_that_the_sdk_refuses_stops_no_function(monkeypatch, capsys):
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "100")
    settings = read_settings(ADDRESS)
    with pytest.raises(SettingsRejected, match="max_queue_size"):
        tracing.open_tracer(settings, "up")
    assert isinstance(tracing.tracer_of(settings, "on_tick"), NoTracer)
    assert "traces.off" in capsys.readouterr().out


def test_a_function_without_the_extra_works_without_traces(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert isinstance(tracing.tracer_of(read_settings(ADDRESS), "on_tick"), NoTracer)
    assert "[otel]" in capsys.readouterr().out
