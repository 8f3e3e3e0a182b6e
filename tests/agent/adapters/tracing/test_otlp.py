"""The way to a collector: the SDK's own settings decide, a missing extra says how to get it."""

import logging
import socket
import sys
import threading
from contextlib import suppress
from importlib.metadata import version

import pytest

from agent.adapters.tracing.otlp import MOST_CHARS, open_otlp
from agent.errors import ExtraMissing, SettingsRejected
from tests.otlp_receiver import OtlpReceiver, wait_for_senders


@pytest.fixture
def receiver(monkeypatch):
    opened = OtlpReceiver()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", opened.url)
    yield opened
    opened.stop()
    wait_for_senders()


def send_one(**about):
    tracer = open_otlp("sre-agent", "1.2.3", "up", redact=str)
    with tracer.span("step", incident="", attributes=about):
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


@pytest.mark.parametrize(("limit", "kept"), [("", MOST_CHARS), ("5", 5)], ids=["ours", "the operator's"])
def test_a_long_text_is_cut(receiver, monkeypatch, limit, kept):
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", limit)
    send_one(text="x" * (MOST_CHARS + 1), texts=("y" * (MOST_CHARS + 1),))
    (span,) = receiver.spans
    assert span.attributes == {"text": "x" * kept, "texts": ["y" * kept]}


def test_the_address_for_people_holds_no_password(receiver, monkeypatch):
    port = receiver.url.rpartition(":")[2]
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"http://me:hush@127.0.0.1:{port}/v1/traces?key=hush")
    assert send_one().target == f"http://127.0.0.1:{port}/v1/traces (OTLP), as 'sre-agent'"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("OTEL_BSP_MAX_QUEUE_SIZE", "100", "max_export_batch_size must be less than or equal to max_queue_size"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "9" * 30, "too large"),
        ("OTEL_BSP_SCHEDULE_DELAY", "0", "schedule_delay_millis must be positive"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "hush", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://[::1", "Invalid IPv6 URL"),
    ],
)
def test_a_setting_that_the_sdk_refuses_is_rejected(receiver, monkeypatch, name, value, why):
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsRejected, match="no traces can be sent: OpenTelemetry's SDK refuses") as raised:
        open_otlp("s", "1", "up", redact=lambda text: text.replace("hush", "[x]"))
    assert why in raised.value.why
    assert "hush" not in str(raised.value)


@pytest.fixture
def proxy(monkeypatch):
    """What the proxy of the environment was asked for: method and target of each request; it serves nobody."""
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take():
            with suppress(OSError):  # the test is over
                while True:
                    one, _ = server.accept()
                    with one, suppress(OSError):
                        asked.append(one.recv(65536).decode().partition(" HTTP/1.")[0])

        threading.Thread(target=take, daemon=True).start()
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{server.getsockname()[1]}")
            monkeypatch.delenv(name.lower(), raising=False)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")  # less than the SDK waits between two tries
        yield asked
        server.shutdown(socket.SHUT_RDWR)


def test_spans_for_a_collector_of_this_machine_go_through_no_proxy(receiver, proxy):
    send_one()
    assert (len(receiver.spans), proxy) == (1, [])


@pytest.mark.parametrize(
    ("address", "spared", "asked"),
    [
        ("https://collector.example.com", "", {"CONNECT collector.example.com:443"}),
        ("https://collector.example.com", "example.com", set()),
        ("http://collector.invalid", "", set()),
        ("https://localhost:9", "", set()),
    ],
    ids=["https", "by NO_PROXY not", "http never", "this machine never"],
)
def test_a_proxy_is_asked_as_for_everything_else_that_is_sent(proxy, monkeypatch, address, spared, asked):
    monkeypatch.setattr(socket, "getaddrinfo", loopback_alone)
    monkeypatch.setenv("NO_PROXY", spared)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    send_one()
    assert set(proxy) == asked


def loopback_alone(host, *words, real=socket.getaddrinfo, **more):
    if host in {"127.0.0.1", "localhost"}:
        return real(host, *words, **more)
    raise socket.gaierror(f"{host} is not looked up here")


def test_a_missing_exporter_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(ExtraMissing) as raised:
        open_otlp("s", "1", "up", redact=str)
    assert str(raised.value) == (
        "no traces can be sent: the package 'opentelemetry-exporter-otlp-proto-http' is not installed. "
        'Hint: install the extra: pip install "$(ls FOLDER/vllm_sre_agent-*.whl)[otel]", FOLDER being that of the wheel'
    )


def test_a_refused_export_is_one_line_of_our_own_log(receiver, capsys):
    """The SDK complains to Python's logging, time and again; nobody set that up, and its lines would stand in a terminal."""
    send_one()  # the first tracer of a process lets the SDK complain through our log
    receiver.status = 404
    (ours,) = [
        one for one in logging.getLogger("opentelemetry").handlers if type(one).__module__ == open_otlp.__module__
    ]
    ours._again_at = 0
    send_one()
    send_one()
    said = capsys.readouterr()
    assert (said.out + said.err).count("traces.not_sent") == 1
