"""Logs of programs that no rule knows: harmless where they say that they are up and nothing speaks of trouble."""

import pytest

from agent.failures.finding import Finding
from agent.failures.match.matcher import Matcher
from agent.failures.text.entry_text import log_lines
from tests.agent.failures.text.test_ends import ENDS

GUNICORN = [
    "nohup: ignoring input",
    "[2031-05-06 07:08:09 +0000] [9] [INFO] Starting gunicorn 23.0.0",
    "[2031-05-06 07:08:09 +0000] [9] [INFO] Listening at: http://0.0.0.0:5000 (9)",
    "[2031-05-06 07:08:09 +0000] [11] [INFO] Booting worker with pid: 11",
]
FLASK = [
    " * Serving Flask app 'lamp'",
    " * Running on http://127.0.0.1:5000",
    '127.0.0.1 - - [06/May/2031 07:08:09] "GET /lamps HTTP/1.1" 200 -',
    '127.0.0.1 - - [06/May/2031 07:08:10] "POST /lamps HTTP/1.1" 201 -',
]
POSTGRES = [
    "2031-05-06 07:08:09.787 UTC [1] LOG:  starting PostgreSQL 12.0 on x86_64-pc-linux-musl",
    "2031-05-06 07:08:10.272 UTC [1] LOG:  database system is ready to accept connections",
]
APACHE = [
    "AH00558: apache2: Could not reliably determine the server's fully qualified domain name, using 10.0.0.9",
    "[Tue May 06 07:08:09.277113 2031] [mpm_prefork:notice] [pid 1] AH00163: Apache/2.4.65 -- resuming normal operations",
]
EXPRESS = ["> node lamp.js", "lamp listening on port 3000", "GET /lamps 200 3.1 ms", "POST /lamps 201 2 ms - 14"]
CELERY = [
    "celery beat v5.3.1 (emerald-rush) is starting.",
    "[2031-05-06 07:08:09,404: INFO/MainProcess] Scheduler: Sending due task light_lamps (tasks.light_lamps)",
    "[2031-05-06 07:08:10,404: INFO/MainProcess] Task tasks.light_lamps[0a] succeeded in 0.3s: None",
    "worker: Warm shutdown (MainProcess)",
]
SPRING = [
    "2031-05-06 07:08:09 INFO  [main] o.s.boot.tomcat.TomcatWebServer - Tomcat started on port 8081 (http)",
    "2031-05-06 07:08:10 INFO  [exec-5] c.l.LampHandler - Connection closed from lamp-1 status=CloseStatus[code=1000]",
    "2031-05-06 07:09:09 INFO  [ShutdownHook] o.s.boot.tomcat.GracefulShutdown - Graceful shutdown complete",
]
LOGS = {
    "Celery": CELERY,
    "Spring": SPRING,
    "gunicorn": GUNICORN,
    "Flask": FLASK,
    "PostgreSQL": POSTGRES,
    "Apache": APACHE,
    "Express": EXPRESS,
}


def classify(matcher: Matcher, lines: list[str]) -> Finding:
    text = "\n".join(log_lines("\n".join(lines)))
    return matcher.classify(text, whole_log=True, platform=None)


@pytest.mark.parametrize("name", list(LOGS))
def test_a_log_of_any_program_that_is_up_is_harmless_and_not_with_certainty(matcher: Matcher, name: str) -> None:
    found = classify(matcher, LOGS[name])
    assert found.benign
    assert not found.certain


@pytest.mark.parametrize("name", list(LOGS))
@pytest.mark.parametrize("end", [end for end in ENDS if "Deactivated successfully" not in end])
def test_an_end_is_not_hidden_by_what_the_program_did_before(matcher: Matcher, name: str, end: str) -> None:
    assert not classify(matcher, [*LOGS[name], end]).benign


@pytest.mark.parametrize(
    "said",
    [
        "the lamp does not answer any more",
        "lamp: exited",
        "all lamps are dark",
        "lamp is not responding",
        "Lost the connection of the lamp",
        "the lamp could not be lit",
        "POST /lamps 500 2 ms - 14",
        '127.0.0.1 - - [06/May/2031 07:08:10] "POST /lamps HTTP/1.1" 502 -',
        "2031-05-06 07:08:10 WARN lamp failed",
        '  File "/srv/lamp.py", line 3, in light',
        "    at Lamp.light (/srv/lamp.js:3:1)",
        "frame #3: lamp + 0x10",
        "lamp is not listening on port 3000",
        '{"success": false}',
        "the lamp was lit without success",
        "Graceful shutdown did not finish within 30 seconds, exiting anyway",
        "lamp started on port 3000, three wires missing",
        "nobody listening on 10.0.0.9:3000",
        "Waiting for lamp-1 to become ready",
        "server is ready, 0 of 4 lamps alive",
        "code: 200 error: the lamp is not running",
        "    raise LampError(",
        "  -> lamp restart loop",
        "POST /lamps => 503",
    ],
)
def test_words_of_a_trouble_that_no_rule_knows_leave_it_open(matcher: Matcher, said: str) -> None:
    assert not classify(matcher, [*FLASK, said]).benign
    assert not classify(matcher, [said]).benign


@pytest.mark.parametrize(
    "said",
    [
        "[INFO] GET /lamps 200 body={'lamp': 'unhealthy'}",
        "[INFO] Waiting for the lamp to be ready... rank=1",
        "[INFO] fetch http://lamp:8000 ECONNRESET",
        "[INFO] getaddrinfo ENOTFOUND lamp",
        "[INFO] LampNotReady",
        "[INFO] the lamp vanished",
        "[INFO] OutOfOil on lamp 0",
        "[INFO] lampErrorNoWick",
        "[INFO] lamp rc=139",
        "[INFO] restarting the lamp (attempt 12)",
        "[INFO] ランプの読み込みに失敗しました",
        "[INFO] Lampe wurde nicht gefunden",
    ],
)
def test_a_note_of_a_trouble_below_lines_that_are_no_notes_leaves_it_open(matcher: Matcher, said: str) -> None:
    assert not classify(matcher, [*FLASK, said]).benign


def test_a_program_that_begins_once_more_is_not_up_until_it_says_so(matcher: Matcher) -> None:
    begun = ["[INFO] lighting lamp 1", "lamp listening on port 3000"]
    assert classify(matcher, begun * 2).benign
    assert not classify(matcher, [*begun, *begun[:1]]).benign
    assert not classify(matcher, begun[1:] * 3).benign


def test_a_table_of_a_pod_that_is_not_ready_leaves_it_open(matcher: Matcher) -> None:
    table = ["NAME READY STATUS RESTARTS AGE", "lamp-0 0/1 Running 12 (20s ago) 1h"]
    assert not classify(matcher, [*table, "lamp listening on port 3000"]).benign


def test_an_error_above_leaves_it_open_and_a_warning_does_not(matcher: Matcher) -> None:
    assert not classify(matcher, ["2031-05-06 07:08:09 ERROR the lamp is broken", *FLASK]).benign
    assert not classify(matcher, ["the lamp cannot be lit", *FLASK]).benign
    assert classify(matcher, ["2031-05-06 07:08:09 WARNING no cache, a retry will follow", *FLASK]).benign


def test_a_start_that_says_nothing_of_its_end_is_not_up(matcher: Matcher) -> None:
    assert not classify(matcher, GUNICORN[:1]).benign
    assert not classify(matcher, ["lamp 3.1", "reading /etc/lamp.toml", "warming the wire"]).benign


def test_no_program_speaks_for_another(matcher: Matcher) -> None:
    up = [f"web-1  | {line}" for line in FLASK]
    assert classify(matcher, up).benign
    assert not classify(matcher, [*up, "lamp-1  | reading /etc/lamp.toml"]).benign
    assert classify(matcher, [*up, "lamp-1  | lamp listening on port 3000"]).benign


def test_a_gateway_that_answers_its_probe_is_not_harmless_where_it_refuses_requests(matcher: Matcher) -> None:
    """Certainly harmless it is not either where it serves the like below: nobody knows whom the refusal struck."""
    lines = [
        '10.0.0.9 - - [06/May/2031:07:08:09 +0000] "POST /v1/chat/completions HTTP/1.1" 502 157 "-" "python"',
        '10.0.0.9 - - [06/May/2031:07:08:10 +0000] "GET /health HTTP/1.1" 200 2 "-" "kube-probe"',
    ]
    served = classify(matcher, [*lines, lines[0].replace(" 502 ", " 200 ")])
    assert not classify(matcher, lines).benign
    assert (served.benign, served.certain) == (True, False)
    assert classify(matcher, lines[1:]).certain
