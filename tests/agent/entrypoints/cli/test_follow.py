"""Following an incident: every step once, in its order, until it ends or a person is needed."""

import json
from functools import partial

import pytest

from agent.core.decision.decision import Choice
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.follow import follow
from agent.entrypoints.cli.main import main
from agent.entrypoints.operator_client.local import open_operator_client
from agent.entrypoints.operator_client.protocol import OperatorDecision
from tests.agent.entrypoints.waiting_plan import Service, asked

__all__ = ["asked"]


def phases(out):
    return [json.loads(line)["phase"] for line in out.splitlines()]


def test_it_stops_where_a_person_is_needed(asked, capsys):
    assert main(["incidents", "show", asked.id, "--follow"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "OPEN" in lines[0]
    assert "ASKED" in lines[-1]


@pytest.mark.slow
def test_every_step_is_printed_once_until_the_end(asked, capsys):
    """The service goes on between two looks; nothing is said twice or left out."""
    client, service = open_operator_client(), Service()
    client.decide(OperatorDecision(plan=asked.plan.id, answer=Choice.APPROVE, by="ada", plan_digest=asked.plan.digest))
    code = follow(client, asked.id, decided=asked.plan.id, as_json=True, pause=lambda _: service.step())
    told = phases(capsys.readouterr().out)
    whole = [event.phase.value for event in client.timeline(asked.id)]
    assert (code, client.incident(asked.id).phase) == (0, Phase.RESOLVED)
    assert told == whole[len(whole) - len(told) :]
    assert told[-1] == "RESOLVED"


@pytest.mark.slow
def test_an_approval_that_waits_ends_with_the_incident(asked, capsys, monkeypatch):
    service = Service()
    monkeypatch.setattr("agent.entrypoints.cli.decide.follow", partial(follow, pause=lambda _: service.step()))
    assert main(["approve", asked.plan.id, "--by", "ada", "--wait"]) == 0
    assert "RESOLVED" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("words", [["incidents", "list", "--follow"], ["approve", "p-1", "--withdraw", "--wait"]])
def test_what_cannot_be_followed_is_bad_input(asked, capsys, words):
    assert main(words) == 2
    assert "Hint" in capsys.readouterr().err
