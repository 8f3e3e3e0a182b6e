"""The way to a collector: the SDK's own settings decide, a missing extra says how to get it."""

import logging
import sys
from importlib.metadata import version

import pytest

from agent.adapters.tracing.otlp import open_otlp
from agent.errors import ExtraMissing
from tests.otlp_receiver import OtlpReceiver


@pytest.fixture
def receiver(monkeypatch):
    opened = OtlpReceiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", opened.url)
    yield opened
    opened.stop()


def send_one(**more):
    tracer = open_otlp("sre-agent", "1.2.3", "up", redact=str)
    with tracer.span("step", incident="", attributes={}, **more):
        pass
    tracer.flush()
    tracer.close()
    return tracer


def test_a_span_arrives_with_who_sent_it(receiver):
    tracer = send_one()
    (span,) = receiver.spans
    assert tracer.target == f"{receiver.url}/v1/traces (OTLP), as 'sre-agent'"
    sent = {key: span.resource[key] for key in ("service.name", "service.version", "sre_agent.role")}
    assert sent == {"service.name": "sre-agent", "service.version": "1.2.3", "sre_agent.role": "up"}
    assert span.resource["telemetry.sdk.version"] == version("opentelemetry-sdk")


@pytest.mark.parametrize(
    ("words", "name", "arrives"),
    [
        ({"OTEL_SERVICE_NAME": "night-agent"}, "night-agent", 1),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=by-resource"}, "by-resource", 1),
        ({"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, "sre-agent", 1),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, "sre-agent", 0),
        ({"OTEL_SDK_DISABLED": "true"}, "", 0),
    ],
    ids=["service name", "resource", "gzip", "sampler", "disabled"],
)
def test_the_sdks_own_settings_count(receiver, monkeypatch, words, name, arrives):
    for key, value in words.items():
        monkeypatch.setenv(key, value)
    assert send_one().target == (f"{receiver.url}/v1/traces (OTLP), as {name!r}" if name else "")
    assert len(receiver.spans) == arrives


def test_the_address_for_people_holds_no_password(receiver, monkeypatch):
    port = receiver.url.rpartition(":")[2]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"http://me:hush@127.0.0.1:{port}/v1/traces?key=hush")
    assert send_one().target == f"http://127.0.0.1:{port}/v1/traces (OTLP), as 'sre-agent'"


def test_a_missing_exporter_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ExtraMissing) as raised:
        open_otlp("s", "1", "up", redact=str)
    assert str(raised.value) == (
        "no traces can be sent: the package 'opentelemetry-exporter-otlp-proto-http' is not installed. "
        "Hint: install the extra: pip install 'vllm-sre-agent[otel]'"
    )


def test_a_refused_export_is_one_line_of_our_own_log(receiver, capsys):
    """The SDK complains to Python's logging, time and again; nobody set that up, and its lines would stand in a terminal."""
    receiver.status = 404
    (ours,) = [
        one for one in logging.getLogger("opentelemetry").handlers if type(one).__module__ == open_otlp.__module__
    ]
    ours._again_at = 0
    send_one()
    send_one()
    said = capsys.readouterr()
    assert (said.out + said.err).count("traces.not_sent") == 1
