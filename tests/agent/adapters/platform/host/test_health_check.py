"""A check of a server on this machine: what hangs, what died meanwhile, and what is only busy."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from agent.adapters.clock import SystemClock
from agent.adapters.platform.host.health_check import HealthCheck
from agent.adapters.platform.host.probe import Address
from agent.core.service.request_counts import RequestCounts
from agent.ports.host import Stage, Start, State
from tests.loopback import Loopback, Reply, Request

AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
START = Start(revision="gemma-1", mark="m1", template="{}", stage=Stage.READY, began_at=AT, ready_at=AT)
PAGE = State(service="gemma", uid="u", template="{}", starts=(START,))


class Server(Loopback):
    """Answers as vLLM does; ``dies`` and ``hangs`` say what a completion meets."""

    def __init__(self) -> None:
        self.dies = self.hangs = self.dead = False
        self.tokens = 7.0
        self.over = threading.Event()
        self.sick: list[str] = []
        self.posted: dict[str, float] = {"2xx": 100, "5xx": 7}
        super().__init__(self.answer, methods=["GET", "POST"])

    def address(self, _: Start) -> Address:
        return Address(host="127.0.0.1", port=self.port)

    def judge(self, _service: str, _mark: str, sick: str) -> None:
        self.sick.append(sick)

    def answer(self, request: Request) -> Reply | None:
        if request.command == "POST":
            return self.completion()
        if request.path == "/health":
            return 503 if self.dead else 200, b""
        if request.path == "/v1/models":
            return 200, {"data": [{"id": "gemma"}]}
        rows = (
            f'http_requests_total{{handler="/v1/completions",method="POST",status="{status}"}} {count}\n'
            for status, count in self.posted.items()
        )
        return 200, f'vllm:generation_tokens_total{{engine="0"}} {self.tokens}\n'.encode() * 2 + "".join(rows).encode()

    def completion(self) -> Reply | None:
        self.posted["2xx"] += 1
        if self.dies:
            self.dead = True
            return 500, {"error": "EngineCore encountered an issue."}
        if self.hangs:
            self.over.wait(10)
            return None
        return 200, {"choices": [{"text": "a", "finish_reason": "length"}]}


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.over.set()
    made.close()


def test_an_engine_that_dies_during_the_check_is_no_hang(server: Server) -> None:
    """/health was well before the completion failed and is not after it: dead, as its log will say; nothing hangs."""
    server.dies = True
    doctor = HealthCheck(server, SystemClock(), answer_s=0.3)
    found = doctor.check("gemma", PAGE)
    assert found is not None
    assert found.sick == ""
    assert found.health == "/health answered 503"
    again = doctor.check("gemma", PAGE)
    assert again is not None
    assert again.sick == "the server runs and does not serve: /health answered 503"


def test_a_completion_that_never_ends_while_health_is_well_is_a_hang(server: Server) -> None:
    """Asked before and after, /health says 200, and no token was made."""
    server.hangs = True
    found = HealthCheck(server, SystemClock(), answer_s=0.3).check("gemma", PAGE)
    assert found is not None
    assert found.sick.startswith("Engine is hanging: a completion of 4 tokens did not finish")


def test_a_server_whose_counters_are_no_numbers_is_judged_all_the_same(server: Server) -> None:
    """Finite counters whose sum is infinite tell no requests and no tokens; the hang is told."""
    server.hangs, server.posted, server.tokens = True, {"2xx": 1.7e308, "4xx": 1.7e308}, 1.7e308
    found = HealthCheck(server, SystemClock(), answer_s=0.3).check("gemma", PAGE)
    assert found is not None
    assert found.sick.startswith("Engine is hanging: a completion of 4 tokens did not finish")
    assert found.requests == RequestCounts()


def test_a_server_that_answers_is_well(server: Server) -> None:
    """And nothing is judged."""
    found = HealthCheck(server, SystemClock(), answer_s=5).check("gemma", PAGE)
    assert found is not None
    assert (found.sick, found.health, server.sick) == ("", "/health answered 200", [])


def test_requests_of_others_are_counted_between_two_checks_and_our_own_are_not(server: Server) -> None:
    """What was counted before we looked says nothing of when; every check here asks for a completion of its own."""
    doctor = HealthCheck(server, SystemClock(), answer_s=5)
    first = doctor.check("gemma", PAGE)
    second = doctor.check("gemma", PAGE)
    server.posted = {"2xx": server.posted["2xx"] + 40, "5xx": 9}
    third = doctor.check("gemma", PAGE)
    anew = doctor.check("gemma", PAGE.with_(starts=(START.with_(mark="m2"),)))
    assert [found.requests for found in (first, second, third, anew)] == [
        RequestCounts(),
        RequestCounts(),
        RequestCounts(answered=40, failed=2),
        RequestCounts(),
    ]
