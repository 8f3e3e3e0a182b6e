"""Could I approve at three in the morning? The real decide_function function says, and nothing is changed by the question."""

import shlex
import socket
import sys

import pytest

from agent.entrypoints.cli.doctor.external_services import decide_function
from agent.entrypoints.cli.doctor.finding import State
from agent.errors import DependencyFailed
from agent.settings import Settings


@pytest.fixture
def look(served, desk):
    def looking(*, url=None, **claims):
        command = (sys.executable, "-c", f"print({desk.token(**claims)!r})")
        settings = Settings(store="firestore:p", bus="pubsub:p", decide_url=url or served.url, id_token_command=command)
        return {finding.check: finding for finding in decide_function(settings)}

    return looking


def test_an_approver_is_told_that_their_word_is_taken(look, desk):
    found = look()
    assert {check: finding.state for check, finding in found.items()} == {
        "decide": State.GOOD,
        "decide-as-you": State.GOOD,
    }
    assert desk.stage.world.control.audit() == ()


@pytest.mark.parametrize(
    ("claims", "says"),
    [({"email": "eve@example.com"}, "names no approver"), ({"aud": "https://elsewhere"}, "ID_TOKEN_AUDIENCES")],
)
def test_whose_word_is_not_taken_is_told_why(look, claims, says):
    finding = look(**claims)["decide-as-you"]
    assert (finding.state, says in finding.says, bool(finding.hint)) == (State.BAD, True, True)


def test_without_a_token_it_is_not_known(served):
    settings = Settings(store="firestore:p", decide_url=served.url, id_token_command=tuple(shlex.split("/nowhere x")))
    states = {finding.check: finding.state for finding in decide_function(settings)}
    assert states == {"decide": State.GOOD, "decide-as-you": State.UNKNOWN}


def test_another_service_at_that_address_is_found(look, key_server):
    assert look(url=key_server.url)["decide"].state is State.BAD


def test_without_an_address_it_says_what_does_not_work():
    (finding,) = decide_function(Settings(store="firestore:p"))
    assert (finding.state, "DECIDE_URL is unset" in finding.says) == (State.UNKNOWN, True)
    (finding,) = decide_function(Settings())
    assert finding.state is State.OFF


def test_nobody_there_is_a_failed_dependency():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        settings = Settings(store="firestore:p", decide_url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(DependencyFailed, match="did not answer"):
            list(decide_function(settings))
