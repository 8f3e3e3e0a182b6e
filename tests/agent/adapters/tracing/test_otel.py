"""Which span stands below which, what is sent, and what never is."""

import re
import threading
import time

import pytest
import structlog
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent.adapters.tracing import otel
from agent.adapters.tracing.otel import OtelTracer
from agent.errors import PolicyRefused, StateConflict
from agent.ports.tracing import INCIDENT, Kind, NoTracer, RedactedJson
from tests.otlp_receiver import wait_for_senders
from tests.spans import tracer_into

OURS = f"00-{'a' * 32}-{'1' * 16}-01"
SAME_TRACE = f"00-{'a' * 32}-{'2' * 16}-01"
OTHERS = f"00-{'b' * 32}-{'3' * 16}-01"


@pytest.fixture
def sent():
    return InMemorySpanExporter()


@pytest.fixture
def tracer(sent):
    return tracer_into(sent, redact=lambda t: t.replace("secret", "[x]"))


def arrival(tracer, caller=""):
    return tracer.arrival("arrived", kind=Kind.CONSUMER, caller=caller, attributes={})


def rows(sent):
    """Each span by name: its trace and parent as hex digits, and the traces it is linked to."""
    found = {}
    for span in sent.get_finished_spans():
        parent = f"{span.parent.span_id:016x}" if span.parent else ""
        found[span.name] = (f"{span.context.trace_id:032x}", parent, [f"{n.context.trace_id:032x}" for n in span.links])
    return found


def test_a_new_incident_begins_a_trace_with_the_arrival_as_its_root(tracer, sent):
    with arrival(tracer), tracer.span("opened", incident="", attributes={}):
        here = tracer.traceparent()
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[13]", here)
    found = rows(sent)
    assert found["arrived"][1] == ""
    assert found["opened"][0] == found["arrived"][0] == here.split("-")[1]


@pytest.mark.parametrize(
    ("caller", "parent", "links"),
    [(SAME_TRACE, "2" * 16, []), (OTHERS, "1" * 16, ["b" * 32]), ("", "1" * 16, []), ("00-xyz", "1" * 16, [])],
    ids=["of the incident's trace", "of another", "none", "malformed"],
)
def test_a_caller_is_the_parent_only_within_the_incidents_own_trace(tracer, sent, caller, parent, links):
    with arrival(tracer, caller), tracer.span("step", incident=OURS, attributes={}):
        pass
    assert rows(sent)["arrived"] == ("a" * 32, parent, links)
    assert rows(sent)["step"][0] == "a" * 32


@pytest.mark.parametrize(
    "text", ["", "00", f"00-{'0' * 32}-{'1' * 16}-01", f"ff-{'a' * 32}-{'1' * 16}-01", f"00-{'A' * 32}-{'1' * 16}-01",
             f"00-{'a' * 32}-{'1' * 16}-01\n", "x" * 100_000, "\u0660" * 55],
)  # fmt: skip
def test_a_malformed_traceparent_is_none(tracer, sent, text):
    """Whatever a sender or the store says, a new trace begins and nothing is raised."""
    with (
        arrival(tracer, text),
        tracer.span("step", incident=text.strip("\n") if text != text.strip() else text, attributes={}),
    ):
        pass
    (trace, _, links) = rows(sent)["arrived"]
    assert links == [] or trace == "a" * 32
    assert rows(sent)["step"][0] == trace


def test_two_incidents_of_one_delivery_are_two_traces(tracer, sent):
    with arrival(tracer):
        for name in ("first", "second"):
            with tracer.span(name, incident="", attributes={}):
                pass
    found = rows(sent)
    assert found["first"][0] == found["arrived"][0]
    assert found["second"][0] != found["first"][0]
    assert found["second"][2] == [found["arrived"][0]]


def about(name):
    return {INCIDENT: name}


def test_an_old_incident_without_a_trace_begins_one_for_all_that_is_done_at_once(tracer, sent):
    """It was stored before anything was traced, and telling people stores nothing in it: each way of telling joins."""
    with arrival(tracer):
        for name in ("slack", "pagerduty"):
            with tracer.span(name, incident="", attributes=about("i1")):
                pass
        with (
            tracer.span("outer", incident="", attributes=about("i1")),
            tracer.span("inner", incident="", attributes=about("i1")),
        ):
            pass
    found = rows(sent)
    assert {found[name][0] for name in ("slack", "pagerduty", "outer", "inner")} == {found["arrived"][0]}
    assert [row[2] for row in found.values()] == [[]] * 5
    spans = {span.name: span for span in sent.get_finished_spans()}
    assert spans["inner"].parent.span_id == spans["outer"].context.span_id
    assert spans["pagerduty"].parent.span_id == spans["arrived"].context.span_id


def test_two_old_incidents_without_a_trace_are_two_traces(tracer, sent):
    with arrival(tracer):
        for name in ("i1", "i2"):
            with tracer.span(name, incident="", attributes=about(name)):
                pass
    assert len({row[0] for name, row in rows(sent).items() if name != "arrived"}) == 2


@pytest.mark.parametrize(
    ("stored", "carried", "arrives"), [("01", "00", {"arrived", "step"}), ("00", "01", set())], ids=["sent", "not sent"]
)
def test_the_stored_incident_says_whether_its_trace_is_sent(tracer, sent, stored, carried, arrives):
    """A sender that knows our trace id can neither silence it nor switch it on."""
    with arrival(tracer, SAME_TRACE[:-2] + carried), tracer.span("step", incident=OURS[:-2] + stored, attributes={}):
        assert tracer.traceparent().endswith(f"-{stored}")
    assert set(rows(sent)) == arrives


def test_a_lost_race_is_not_sent_and_its_arrival_goes_to_the_winners_trace(tracer, sent):
    with arrival(tracer):
        with pytest.raises(StateConflict), tracer.span("opened", incident="", attributes={}):
            raise StateConflict("x", why="y", hint="z")
        with tracer.span("joined", incident=OURS, attributes={}):
            pass
    assert set(rows(sent)) == {"arrived", "joined"}
    assert rows(sent)["arrived"][:2] == ("a" * 32, "1" * 16)


def test_what_did_nothing_is_not_sent_unless_something_hangs_on_it(tracer, sent):
    for kept in (False, True):
        with arrival(tracer), tracer.span(f"poll {kept}", incident=OURS, attributes={}) as span:
            span.drop()
            if kept:
                tracer.keep()
    with arrival(tracer):
        pass
    with arrival(tracer), tracer.span("outer", incident=OURS, attributes={}) as span:
        span.drop()
        with tracer.span("inner", attributes={}):
            pass
    assert [span.name for span in sent.get_finished_spans()] == ["poll True", "arrived", "inner", "outer", "arrived"]


def test_what_happens_before_an_incident_is_known_begins_no_arrival_and_raises_nothing(tracer, sent):
    """What was handed out then names no trace; the incident that is known later is entered all the same."""
    with arrival(tracer):
        tracer.keep()
    with arrival(tracer), tracer.span("outer", attributes={}):
        tracer.keep()
        with tracer.span("inside", incident=OURS, attributes={}):
            pass
    with arrival(tracer):
        with tracer.span("before", attributes={}):
            pass
        tracer.keep()
        with tracer.span("step", incident=OURS, attributes={}):
            pass
    assert [span.name for span in sent.get_finished_spans()] == ["inside", "outer", "before", "step", "arrived"]
    assert rows(sent)["arrived"][:2] == ("a" * 32, "1" * 16)


def test_an_error_is_named_by_its_class_alone(tracer, sent):
    """Its text may quote what others wrote; no stack trace, no message."""
    with pytest.raises(PolicyRefused), tracer.span("step", incident=OURS, attributes={}):
        raise PolicyRefused("what", why="password=hunter2", hint="h")
    (span,) = sent.get_finished_spans()
    assert span.attributes == {"error.type": "PolicyRefused"}
    assert (span.status.is_ok, span.status.description, span.events) == (False, None, ())


def test_secrets_are_taken_out_of_every_text(tracer, sent):
    with tracer.span("step", incident=OURS, attributes={"a": "a secret"}) as span:
        span.note({"b": "secret", "c": ("one secret",)})
    (span,) = sent.get_finished_spans()
    assert "secret" not in repr(span.attributes)


def test_json_that_was_redacted_before_keeps_its_form(tracer, sent):
    text = '{"a": "secret of a text"}'
    with tracer.span("step", incident=OURS, attributes={"plain": text}) as span:
        span.note({"json": RedactedJson(text)})
    (span,) = sent.get_finished_spans()
    assert dict(span.attributes) == {"plain": text.replace("secret", "[x]"), "json": text}
    assert type(span.attributes["json"]) is str


def test_log_lines_of_an_arrival_carry_it_from_when_its_incident_is_known(tracer):
    with arrival(tracer):
        assert structlog.contextvars.get_contextvars() == {}
        with tracer.span("step", incident=OURS, attributes={}):
            inner = structlog.contextvars.get_contextvars()
        outer = structlog.contextvars.get_contextvars()
        assert (outer["trace_id"], outer["span_id"] != inner["span_id"]) == (inner["trace_id"], True)
    assert structlog.contextvars.get_contextvars() == {}


def test_log_lines_within_a_span_carry_it(tracer):
    with tracer.span("step", incident=OURS, attributes={}):
        (_, trace, span, _) = tracer.traceparent().split("-")
        assert structlog.contextvars.get_contextvars() == {"trace_id": trace, "span_id": span}
        assert trace == "a" * 32
    assert structlog.contextvars.get_contextvars() == {}


def test_a_switched_off_sdk_measures_nothing(monkeypatch, sent):
    """OTEL_SDK_DISABLED: nothing is sent and no trace begun; one that others began is handed on."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    provider = TracerProvider(shutdown_on_exit=False)
    quiet = OtelTracer(provider, SimpleSpanProcessor(sent), redact=str, target="")
    with arrival(quiet), quiet.span("step", incident="", attributes={}):
        assert quiet.traceparent() == ""
        assert structlog.contextvars.get_contextvars() == {}
    with arrival(quiet), quiet.span("step", incident=OURS, attributes={}):
        assert quiet.traceparent() == OURS
    assert rows(sent) == {}


class Hanging(SpanProcessor):
    def __init__(self):
        self.asked, self.over = 0, threading.Event()

    def force_flush(self, timeout_millis=30000):
        self.asked += 1
        return self.over.wait(30)

    def shutdown(self):
        self.over.wait(30)


def test_a_collector_that_hangs_is_waited_for_once(monkeypatch):
    """Then nobody waits for a minute; a process ends within its bound as well."""
    monkeypatch.setattr(otel, "FLUSH_S", 0.05)
    monkeypatch.setattr(otel, "CLOSE_S", 0.05)
    hanging = Hanging()
    slow = OtelTracer(TracerProvider(shutdown_on_exit=False), hanging, redact=str, target="")
    slow.flush()
    assert hanging.asked == 0, "nothing was to be sent"
    for _ in range(3):
        with slow.span("step", incident="", attributes={}):
            pass
        slow.flush()
    assert hanging.asked == 1
    began = time.monotonic()
    slow.close()
    assert time.monotonic() - began < 5
    hanging.over.set()
    wait_for_senders()


def test_a_process_that_may_begin_no_thread_any_more_ends(tracer, monkeypatch):
    """Python 3.12.1 refuses a thread of an exit handler; a traceback at every end would hide what matters."""

    def refuses(_):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuses)
    tracer.close()


def test_without_a_collector_the_same_calls_do_nothing():
    none = NoTracer()
    with none.arrival("a", kind=Kind.CONSUMER, attributes={}), none.span("s", attributes={}) as span:
        span.name("n")
        span.note({})
        span.drop()
        none.keep()
        assert none.traceparent() == ""
    none.flush()
