"""What a server's own counters say about the requests to its model."""

from pathlib import Path

import pytest

from agent.core.service.request_counts import RequestBudget, RequestCounts, read_request_counts

RECORDED = Path(__file__).parents[3] / "data" / "vllm-cpu-logs"


@pytest.mark.parametrize(("name", "answered"), [("metrics_after_load", 35), ("metrics_idle", 0)])
def test_a_recorded_exposition_is_read(name: str, answered: int) -> None:
    """As vLLM 0.32 wrote it: requests to the model alone, those refused with 4xx answered too; none is not unknown."""
    assert read_request_counts((RECORDED / f"{name}.prom").read_text()) == RequestCounts(answered=answered)


def test_what_the_server_failed_is_told_apart() -> None:
    """Whatever stands in a label; paths that ask no model are no requests to it."""
    text = (
        'http_requests_total{handler="/v1/chat/completions",method="POST",status="2xx"} 97.0\n'
        'http_requests_total{method="POST",status="5xx",handler="/v1/completions"} 3\n'
        'http_requests_total{handler="/health",method="GET",status="5xx"} 50\n'
        'http_requests_total{handler="/tokenize",method="POST",status="5xx"} 5\n'
        'http_requests_created{handler="/v1/completions",method="POST",status="5xx"} 1.7e9\n'
        'other{x="http_requests_total{handler=\\"/v1/completions\\",status=\\"5xx\\"}"} 9\n'
    )
    assert read_request_counts(text) == RequestCounts(answered=97, failed=3)


def test_a_server_without_these_counters_says_nothing() -> None:
    assert read_request_counts('vllm:generation_tokens_total{engine="0"} 7\n<html>') is None


@pytest.mark.parametrize("count", ["1.7e308", "9007199254740994", "-1"])
@pytest.mark.parametrize("status", ["2xx", "5xx"])
def test_what_cannot_be_a_count_of_requests_says_nothing(status: str, count: str) -> None:
    """Each is a finite number; two of the first kind are none together, and differences of counts stay numbers."""
    row = f'http_requests_total{{handler="/v1/completions",method="POST",status="{status}"}} {count}\n'
    assert read_request_counts(row) is None
    assert read_request_counts(row + row.replace("completions", "embeddings")) is None


def test_a_server_that_began_anew_counts_from_nothing() -> None:
    before = RequestCounts(answered=90, failed=4)
    assert RequestCounts(answered=95, failed=4).since(before) == RequestCounts(answered=5)
    assert RequestCounts(answered=3).since(before) == RequestCounts(answered=3)
    assert RequestCounts(answered=91, failed=1).since(before) == RequestCounts(answered=91, failed=1)


@pytest.mark.parametrize(
    ("answered", "failed", "share", "used"),
    [(0, 0, 1, 0), (1000, 0, 1, 0), (995, 5, 0.995, 0.5), (980, 20, 0.98, 2), (0, 3, 0, 100)],
)
def test_the_budget_is_what_the_objective_leaves(answered: int, failed: int, share: float, used: float) -> None:
    row = RequestBudget(service="g", counts=RequestCounts(answered=answered, failed=failed), objective=0.99)
    assert row.answered == pytest.approx(share)
    assert row.used == pytest.approx(used)
