"""The control database through `decide`: the visitor's own assertion, few questions, and doubt said plainly."""

import pytest
from flask import Flask

from agent.core.decision.decision import Channel, Person
from agent.core.incident.phase import Phase
from agent.entrypoints.console import control_access
from agent.entrypoints.console.control_access import ControlThroughDecide
from agent.entrypoints.console.identity import ASSERTION
from agent.errors import DependencyFailed, PolicyRefused, SreError
from agent.settings import Settings

ADA = Person(who="ada@example.com", channel=Channel.CONSOLE, verified=True)


@pytest.fixture
def access(served):
    return ControlThroughDecide(Settings(decide_url=served.url))


@pytest.fixture
def visit(desk):
    def asking(who: str = "ada@example.com"):
        headers = {ASSERTION: desk.tokens.assertion(desk.now(), email=who)}
        return Flask("console").test_request_context("/", headers=headers)

    return asking


def test_what_a_visitor_turns_is_turned_by_decide_in_their_name(desk, access, visit):
    with visit():
        assert access.message() == ""
        access.turn(ADA, on=True, why="it burns", at=desk.now())
        assert access.message() == "the kill switch is on (by ada@example.com: it burns)"
        assert [(row.kind, row.who) for row in access.audit(10, None)][-1] == ("kill_switch.on", "ada@example.com")
        assert access.databases_apart() == ""
    assert desk.phase() is Phase.ASKED


def test_a_visitor_who_is_no_approver_reads_the_switch_and_turns_nothing(desk, access, visit):
    with visit("eve@example.com"):
        assert access.kill_switch().on is False
        with pytest.raises(PolicyRefused, match="names no approver"):
            access.turn(
                Person(who="ada@example.com", channel=Channel.CONSOLE, verified=True),
                on=True,
                why="fire",
                at=desk.now(),
            )
        with pytest.raises(PolicyRefused):
            access.audit(10, None)
    assert not desk.stage.world.control.kill_switch().on


def test_pages_within_a_few_seconds_ask_once(served, access, visit, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(control_access.time, "monotonic", lambda: clock[0])
    with visit():
        for _ in range(5):
            access.message()
        assert served.asked == [("GET", "/kill-switch")]
        clock[0] += control_access.KNOWN_S + 1
        access.message()
    assert len(served.asked) == 2


def test_no_answer_is_said_and_not_asked_for_again_at_once(visit):
    class Dead:
        asked = 0

        def get(self, *_a, **_k):
            Dead.asked += 1
            raise DependencyFailed("nothing was read", why="`decide` did not answer", hint="wait")

    access = ControlThroughDecide(Settings(decide_url="http://127.0.0.1:9"), client_of=lambda _url, _s: Dead())
    with visit():
        said = [access.message() for _ in range(3)]
    assert set(said) == {"whether the kill switch is on is not known here: `decide` did not answer"}
    assert Dead.asked == 1


def test_who_presses_a_button_asks_anew(visit):
    answers = [DependencyFailed("nothing was read", why="`decide` did not answer", hint="wait"), {"on": False}]

    class Late:
        def get(self, *_a, **_k):
            answer = answers.pop(0)
            if isinstance(answer, SreError):
                raise answer
            return answer

    access = ControlThroughDecide(Settings(decide_url="http://127.0.0.1:9"), client_of=lambda _url, _s: Late())
    with visit():
        assert "not known here" in access.message()
        access.forget()
        assert access.kill_switch().on is False


def test_what_one_visitor_is_refused_is_not_said_to_the_next(access, visit):
    with Flask("console").test_request_context("/"):
        assert "not known here" in access.message()
    with visit():
        assert access.message() == ""


@pytest.mark.parametrize("answer", [[], {}, {"on": "perhaps"}, None], ids=str)
def test_an_answer_that_means_nothing_is_no_off(visit, answer):
    class Strange:
        def get(self, *_a, **_k):
            return answer

    access = ControlThroughDecide(Settings(decide_url="http://127.0.0.1:9"), client_of=lambda _url, _s: Strange())
    with visit():
        assert "not known here" in access.message()
        for ask in (access.databases_apart, lambda: access.audit(1, None)):
            if answer != []:
                with pytest.raises(DependencyFailed):
                    ask()


def test_without_an_address_nothing_is_asked(visit):
    with visit(), pytest.raises(PolicyRefused, match="DECIDE_URL"):
        ControlThroughDecide(Settings()).kill_switch()


def test_the_environments_stop_needs_no_answer(visit):
    with visit():
        assert "KILL_SWITCH" in ControlThroughDecide(Settings(kill_switch=True)).message()


class Nothing:
    """A control database of which nobody says anything."""

    def message(self):
        return ""
