"""Somebody is down, even if others are well: not harmless until it is said to be well again."""

import pytest

from agent.failures.finding import Finding
from agent.failures.match.matcher import Matcher
from agent.failures.text.entry_text import log_lines
from tests.agent.failures.log_changes import ACCESS, HEALTHY_START, TOKENS

DOWN = [
    "Server lamps/b is DOWN, reason: Layer4 timeout",
    "lamps,b,DOWN,L4CON,312",
    "[2031-05-06 07:08:09] INFO: engine http://lamp-2:8000 is UNHEALTHY",
    "[2031-05-06 07:08:09] INFO: engine http://lamp-2:8000 status NOT_READY",
    "INFO worker lamp-2 was marked dead",
    '[{"name":"lamp-1","state":"READY"},{"name":"lamp-2","state":"UNAVAILABLE"}]',
    "[WARN] agent: Check 'lamp/service:lamp-2' is now critical",
    "kernel: nfs: server 10.0.0.3 not responding, still trying",
    "INFO lamps: 0 of 2 endpoints lit",
    "INFO discovery returned 0 instances",
    "INFO all lamps are in cooldown",
    "INFO Circuit breaker of lamp-2: from=closed to=open",
    "WARN Service entering failfast after 3s",
    "INFO 05-06 07:08:09 backend is not healthy",
    "INFO 05-06 07:08:09 replica 2 is down",
    "INFO 05-06 07:08:09 the engine has died",
    "INFO 05-06 07:08:09 prepare to quit the process",
    "INFO Updated health status: Progressing -> Degraded",
]


def classify(matcher: Matcher, lines: list[str]) -> Finding:
    return matcher.classify("\n".join(log_lines("\n".join(lines))), whole_log=True, platform=None)


@pytest.mark.parametrize("said", DOWN)
def test_who_is_down_is_not_excused_by_one_who_is_well(matcher: Matcher, said: str) -> None:
    for around in ([said], [ACCESS[0], said], [said, ACCESS[0]], [*HEALTHY_START, "web " + said, *ACCESS]):
        assert not classify(matcher, around).benign, around


def test_the_line_that_says_who_is_down_is_shown(matcher: Matcher) -> None:
    found = classify(matcher, [ACCESS[0], DOWN[0]])
    assert (found.class_, found.evidence[0].text) == ("unknown", DOWN[0])


def test_the_place_in_the_code_that_tells_it_is_nobodys_name(matcher: Matcher) -> None:
    """A benchmark of vLLM asks for its server before that is up."""
    said = "WARNING 05-06 07:08:09 [lamp.py:69] Endpoint is not ready"
    assert not classify(matcher, [said]).benign
    assert classify(matcher, [said, *HEALTHY_START]).benign
    assert not classify(matcher, [f"{said}: http://lamp-2:8000", *HEALTHY_START]).benign


@pytest.mark.parametrize(
    ("down", "well", "other"),
    [
        (
            "INFO: engine http://lamp-2:8000 is UNHEALTHY",
            "INFO: engine http://lamp-2:8000 is healthy",
            "INFO: engine http://lamp-3:8000 is healthy",
        ),
        (
            "[WARN] agent: Check 'lamp/service:lamp-2' is now critical",
            "[INFO] agent: Check 'lamp/service:lamp-2' is passing",
            "[INFO] agent: Check 'lamp/service:lamp-1' is passing",
        ),
        ("INFO eth2: Link down", "INFO eth2: Link up", "INFO eth1: Link up"),
    ],
)
def test_it_is_over_where_the_same_is_well_below(matcher: Matcher, down: str, well: str, other: str) -> None:
    assert classify(matcher, [down, well]).benign
    assert not classify(matcher, [down, other]).benign
    assert not classify(matcher, [well, down]).benign


def test_what_names_nobody_is_over_with_the_start_of_its_server(matcher: Matcher) -> None:
    assert classify(matcher, [*HEALTHY_START[:2], "INFO not ready, one more look", *HEALTHY_START[2:], *TOKENS]).benign


@pytest.mark.parametrize(
    "said",
    [
        "INFO started, shutting nothing down",
        "INFO scaled down to 1 replica",
        "INFO loading 9 lamps may slow down the house",
        "INFO added node.kubernetes.io/unreachable:NoExecute op=Exists for 300s",
        "INFO scan completed, failed=false",
        "INFO finished with 0 errors",
    ],
)
def test_words_of_a_trouble_in_an_order_or_a_count_of_none_are_none(matcher: Matcher, said: str) -> None:
    assert classify(matcher, [said]).benign
    assert classify(matcher, [*HEALTHY_START, said, *TOKENS]).benign


def test_the_level_of_a_structured_record_is_that_of_its_message_and_fields(matcher: Matcher) -> None:
    lit = '{"level":"info","ts":1,"msg":"the lamp started","caller":"corrupt.go:9"}'
    dark = '{"level":"info","ts":2,"msg":"the lamp could not be lit"}'
    assert classify(matcher, [lit, lit]).benign
    assert not classify(matcher, [lit, dark]).benign
    assert not classify(matcher, [lit, lit.replace("info", "odd")]).benign
    assert classify(matcher, ["[NOTICE] (1): the lamp started"]).benign


@pytest.mark.parametrize(
    "said",
    [
        "INFO the lamps could not be lit",
        "INFO lamp rc=139",
        "INFO request failed",
        "INFO missed heartbeat of lamp-2",
        "INFO lamp pool emptied, 0 workers remain",
        "INFO ランプの読み込みに失敗しました",
        "INFO Verbindung zur Lampe unterbrochen",
        "INFO the lamp vanished",
        "INFO lamp 3 terminated with stream closed",
        "INFO lamps switched from RUNNING to RESTARTING",
        "INFO watch: lamp 3 went from PASS to FAIL",
        "INFO la lámpara no pudo encenderse",
    ],
)
def test_a_note_of_a_failure_that_no_rule_knows_is_not_harmless(matcher: Matcher, said: str) -> None:
    assert not classify(matcher, ["INFO lamp started", said]).benign
    assert classify(matcher, ["INFO lamp started"]).benign
