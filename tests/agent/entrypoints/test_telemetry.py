"""What is written is what Cloud Logging reads: severity, trace, labels; one JSON object in a line."""

import json

import pytest
import structlog

from agent.entrypoints.telemetry import Trace, configure_log, current_trace, follow, trace_of, traced

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def written(capfd):
    """Return what a piece of work writes to stderr, with the log configured as in the cloud."""

    def read(work):
        configure_log(as_json=True)
        work(structlog.get_logger("x"))
        return [json.loads(line) for line in capfd.readouterr().err.splitlines()]

    yield read
    structlog.contextvars.clear_contextvars()


@pytest.mark.parametrize(
    ("headers", "trace"),
    [
        ({"traceparent": f"00-{TRACE}-{SPAN}-01"}, Trace(TRACE, SPAN, sampled=True)),
        ({"Traceparent": f"00-{TRACE}-{SPAN}-00"}, Trace(TRACE, SPAN)),
        ({"X-Cloud-Trace-Context": f"{TRACE}/13235353014750950193;o=1"}, Trace(TRACE, SPAN, sampled=True)),
        ({"X-Cloud-Trace-Context": TRACE}, Trace(TRACE)),
        ({"x-cloud-trace-context": f"{TRACE}/0;o=0"}, Trace(TRACE)),
        ({"traceparent": f"00-{TRACE}-{SPAN}-01", "X-Cloud-Trace-Context": "f" * 32}, Trace(TRACE, SPAN, sampled=True)),
        ({"traceparent": f"00-{'0' * 32}-{SPAN}-01"}, Trace()),
        ({"traceparent": "x" * 5000, "X-Cloud-Trace-Context": "\u00e9"}, Trace()),
        ({"X-Cloud-Trace-Context": f"{TRACE}/{'9' * 20};o=1"}, Trace(TRACE, sampled=True)),
        ({}, Trace()),
    ],
    ids=["w3c", "w3c unsampled", "cloud", "cloud trace only", "cloud without a span", "w3c first", "w3c zero", "broken", "span too large", "none"],
)  # fmt: skip
def test_the_trace_of_a_request(headers, trace):
    assert trace_of(headers) == trace


def test_an_event_of_a_stage_as_cloud_logging_reads_it(written):
    """The special fields are those of structured logging; what is no label stays a field."""

    def work(log):
        with traced({"traceparent": f"00-{TRACE}-{SPAN}-01"}, project="p"):
            log.info(
                "stage.finished", incident="inc-1", service="s", run="live", stage="ask", reason="moved", took_s=0.1
            )

    assert written(work) == [
        {
            "severity": "INFO",
            "message": "stage.finished",
            "incident": "inc-1",
            "service": "s",
            "run": "live",
            "stage": "ask",
            "reason": "moved",
            "took_s": 0.1,
            "origin": TRACE,
            "logging.googleapis.com/trace": f"projects/p/traces/{TRACE}",
            "logging.googleapis.com/spanId": SPAN,
            "logging.googleapis.com/trace_sampled": True,
            "logging.googleapis.com/labels": {
                "incident": "inc-1",
                "stage": "ask",
                "run": "live",
                "service": "s",
                "origin": TRACE,
            },
        }
    ]


def test_severities_are_cloud_loggings(written):
    told = written(lambda log: [getattr(log, level)("told") for level in ("info", "warning", "error", "critical")])
    assert [event["severity"] for event in told] == ["INFO", "WARNING", "ERROR", "CRITICAL"]


def test_an_exception_stays_in_one_line(written):
    """Text of other people cannot forge a second entry, whatever line breaks are in it."""

    def work(log):
        try:
            int('first\n{"severity":"CRITICAL","message":"forged"}')
        except ValueError:
            log.exception("tick.failed", said="a\r\n\u2028b")

    (event,) = written(work)
    assert event["severity"] == "ERROR"
    assert "forged" in event["exception"]


def test_a_story_is_followed_and_then_forgotten():
    with traced({}, project=None):
        assert current_trace() == ""
        follow("c" * 32)
        follow("no trace")
        assert current_trace() == "c" * 32
    assert current_trace() == ""


@pytest.mark.parametrize("as_json", [False, True])
def test_a_bug_is_told_without_what_stood_in_memory(capsys, as_json):
    """A traceback names files and lines; the values beside them may be keys and tokens."""
    configure_log(as_json=as_json)
    signing_secret = "xoxb-" + "0123456789"
    try:
        _ = 1 / len(signing_secret[:0])
    except ZeroDivisionError:
        structlog.get_logger().exception("decision.failed")
    said = capsys.readouterr().err
    assert "ZeroDivisionError" in said
    assert signing_secret not in said


def test_what_others_wrote_moves_no_cursor_of_whoever_watches_the_log(capsys):
    """S13: names and errors stand in the lines for people as they came."""
    configure_log(as_json=False)
    structlog.get_logger().warning(
        "delivery.failed", error="\x1b[2J\x1b]0;t\x07gone\u202e", service="a\x9bb", took_s=1.5
    )
    said = capsys.readouterr().err
    assert "gone" in said
    assert "took_s=1.5" in said
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said)
