"""Proposals: recorded with their proof under the client's name, decided by a person, and by nobody else."""

import pytest

from agent.core.decision.decision import Channel, Choice
from agent.core.incident.phase import Phase
from agent.entrypoints.operator_client.local import open_operator_client
from agent.entrypoints.operator_client.protocol import OperatorDecision
from agent.errors import PolicyRefused
from agent.ports.store import Query
from tests.agent.entrypoints.mcp.test_server import SERVICE, called, stored, text_of
from tests.agent.entrypoints.waiting_plan import run_until

LOWER = {"service": SERVICE, "set_flag": ["max-num-seqs=4"], "why": "smaller batches", "supersede": True}


def requests():
    return [i for i in open_operator_client().incidents(Query()) if i.request is not None]


def test_a_dry_run_shows_difference_and_proof_and_stores_nothing(asked, tmp_path):
    before = stored(tmp_path / "state")
    shown = called("propose_change", LOWER | {"dry_run": True}).structured_content
    assert shown["request"] is None
    assert any("max-num-seqs" in line for line in shown["plan"]["difference"])
    assert shown["plan"]["proof"]
    assert stored(tmp_path / "state") == before


def test_a_proposal_is_recorded_under_the_clients_name_and_waits_for_a_person(asked):
    shown = called("propose_change", LOWER).structured_content
    (life,) = requests()
    assert shown["request"] == life.id
    assert (life.request.channel, life.request.verified) == (Channel.MCP, False)
    assert life.request.asker.startswith("mcp:")
    assert life.decision is None
    assert "a person decides" in shown["note"]


def test_the_same_proposal_again_is_the_same_request(asked):
    first, second = (called("propose_change", LOWER).structured_content["request"] for _ in range(2))
    assert first == second
    assert len(requests()) == 1


@pytest.mark.slow
def test_its_plan_is_approved_with_its_digest_only_and_never_by_its_asker(asked):
    """S19: the client's own name decides nothing, and a person shows that they saw the very plan."""
    called("propose_change", LOWER)
    life = run_until(Phase.ASKED, requested=True)
    client = open_operator_client()
    with pytest.raises(PolicyRefused, match="no digest"):
        client.decide(OperatorDecision(plan=life.plan.id, answer=Choice.APPROVE, by="ada"))
    with pytest.raises(PolicyRefused):
        client.decide(
            OperatorDecision(
                plan=life.plan.id, answer=Choice.APPROVE, by=life.request.asker, plan_digest=life.plan.digest
            )
        )
    made = client.decide(
        OperatorDecision(plan=life.plan.id, answer=Choice.APPROVE, by="ada", plan_digest=life.plan.digest)
    )
    assert made.who == "ada"
    ended = run_until(Phase.CLOSED, requested=True)  # carried out; the recorded service does not start with it either
    assert (ended.id, ended.execution is not None) == (life.id, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (LOWER | {"set_flag": []}, "nothing is asked for"),
        (LOWER | {"set_flag": ["max-num-seqs=4", "max-num-seqs=8"]}, "two values"),
        (LOWER | {"set_flag": ["trust-remote-code"]}, "allow-list"),
        (LOWER | {"set_flag": ["api-key=x"]}, "allow-list"),
        (LOWER | {"set_flag": ["max-model-len=10000000"]}, "Does not start"),
        (LOWER | {"service": "nobody"}, SERVICE),
        (LOWER | {"why": ""}, "why"),
        (LOWER | {"supersede": False}, "--supersede"),
    ],
    ids=["nothing", "two values", "never", "a key", "does not fit", "unknown", "no reason", "an incident is open"],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_the_reason_and_nothing_is_recorded(asked, arguments, said):
    result = called("propose_change", arguments)
    assert result.is_error
    assert said in text_of(result)
    assert requests() == []


def test_a_deletion_wants_the_name_typed(asked):
    words = {"service": SERVICE, "operation": "delete", "why": "unused"}
    assert called("propose_lifecycle", words).is_error
    assert requests() == []
