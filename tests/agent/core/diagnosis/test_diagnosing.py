"""How a diagnosis comes to be: what one instance says is no proof for another."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.catalogue.load_failures import load_failures
from agent.core.diagnosis.diagnosing import LogText, diagnose
from agent.core.intake.signal import Signal, Source
from agent.failures.match.matcher import compile_catalogue

NOW = datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC)
FAILED = "requests.exceptions.ConnectionError: MaxRetryError on huggingface.co"
READY = "INFO:     Application startup complete."


@pytest.fixture(scope="module")
def matcher():
    catalogue = load_failures()
    return compile_catalogue(catalogue.signatures, catalogue.words)


def told(*said, log=None, matcher):
    signals = tuple(
        Signal(
            key=f"k{n}", source=Source.APP_LOG, service="llm", platform="cloud_run", revision="llm-1", instance=who,
            at=NOW + timedelta(seconds=n), text=text,
        )
        for n, (who, text) in enumerate(said)
    )  # fmt: skip
    return diagnose(signals, log, platform="cloud_run", matcher=matcher, titles={}, now=NOW)


def test_an_instance_that_came_up_does_not_undo_the_failure_of_another(matcher):
    assert told(("a", FAILED), ("b", READY), matcher=matcher).class_ == "network_timeout"
    assert told(("a", FAILED), ("a", READY), matcher=matcher).class_ == "unknown"


def test_the_log_is_of_one_instance_and_signals_may_be_of_others(matcher):
    log = LogText(lines=((NOW, "vLLM API server version 0.19.1"), (NOW, FAILED)), complete=True, instance="a")
    assert told(("a", FAILED), ("b", READY), log=log, matcher=matcher).class_ == "network_timeout"
    assert told(("a", FAILED), ("a", READY), log=log, matcher=matcher).class_ == "unknown"
    ready = LogText(lines=((NOW, READY),), complete=True, instance="a")
    assert told(("b", FAILED), log=ready, matcher=matcher).class_ == "network_timeout"
