"""Who may allow a sweep: by the rules of a change, on record."""

from dataclasses import replace

import pytest

from agent.core.decision.decision import Channel
from agent.core.decision.policy import Policy
from agent.core.decision.rule import Approver
from agent.core.sweep.grant import SweepGrant, SweepRequest
from agent.errors import PolicyRefused
from agent.stages.grant_sweep import check_grant, grant_sweep, is_own_act
from tests.agent.core.sweep.test_grant import request
from tests.agent.stages.conftest import SERVICE, Bench

POLICY = Policy(
    rules=(),
    approvers=(
        Approver(name="Ada", email="ada@example.com", services=(SERVICE,)),
        Approver(name="Bob", email="bob@example.com", services=(SERVICE,)),
        Approver(name="Cy", email="cy@example.com", services=("other",)),
    ),
)


def context(*, local: bool):
    found = Bench().executor
    return replace(found, local=local, rules=replace(found.rules, policy=POLICY))


def approve(
    where, who: str, *, verified: bool = True, channel: Channel = Channel.COMMAND_LINE, **changes
) -> SweepGrant:
    asked = request(**({"service": SERVICE, "asker": "ada@example.com", "verified": True} | changes))
    return grant_sweep(where, asked, who=who, channel=channel, verified=verified)


def test_a_proved_approver_of_the_service_may() -> None:
    """The grant holds, and stands in the record."""
    where = context(local=False)
    given = approve(where, "bob@example.com")
    check_grant(where, given, given.request)
    (row,) = where.control_store().audit()
    assert (row.kind, row.incident, row.who) == ("sweep.granted", given.request.id, "bob@example.com")
    assert SweepGrant.model_validate_json(row.body).request == given.request


def test_ones_own_approval_that_was_recorded_and_not_kept_is_given_again() -> None:
    """The process died before it wrote the grant into its folder; another sweep is another answer."""
    where = context(local=True)
    own = {"verified": False, "asker": "ada", "service": "", "endpoint": "http://127.0.0.1:8000"}
    first = approve(where, "ada", **own)
    where.clock.step(60)
    assert approve(where, "ada", **own) == first
    assert len(where.control_store().audit()) == 1
    assert approve(where, "ada", **own, max_minutes=99) != first
    assert len(where.control_store().audit()) == 2


@pytest.mark.parametrize(
    ("who", "changes", "why"),
    [
        ("ada@example.com", {}, "who asks does not approve"),
        ("cy@example.com", {}, "does not let 'Cy' decide"),
        ("eve@example.com", {}, "names no approver"),
        ("bob@example.com", {"verified": False}, "nothing proves"),
        ("bob@example.com", {"channel": Channel.MCP}, "a person approves"),
        ("bob@example.com", {"channel": Channel.POLICY}, "a person approves"),
    ],
)
def test_nobody_else_may(who: str, changes: dict, why: str) -> None:
    """And nothing is on record."""
    where = context(local=False)
    with pytest.raises(PolicyRefused, match=why):
        approve(where, who, **changes)
    assert where.control_store().audit() == ()


def test_on_one_machine_its_operator_may() -> None:
    """As for a change: what came from its own command line, never what an AI client asked for."""
    where = context(local=True)
    approve(where, "ada", verified=False, asker="ada")
    asked = request(service=SERVICE, asker="ada", channel=Channel.MCP)
    with pytest.raises(PolicyRefused, match="who asks does not approve"):
        grant_sweep(where, asked, who="ada", channel=Channel.COMMAND_LINE, verified=False)


def test_policy_that_changed_meanwhile_is_asked_again() -> None:
    """Bob was taken out of policy.toml before the sweep ran."""
    where = context(local=False)
    given = approve(where, "bob@example.com")
    without = replace(where, rules=replace(where.rules, policy=POLICY.with_(approvers=POLICY.approvers[:1])))
    with pytest.raises(PolicyRefused, match="names no approver"):
        check_grant(without, given, given.request)


@pytest.mark.parametrize(
    ("endpoint", "service", "own"),
    [
        ("http://127.0.0.1:8000", "", True),
        ("http://[::1]:8000", "", True),
        ("http://localhost:8000", "", True),
        ("http://127.0.0.1:8000", SERVICE, False),
        ("http://10.0.0.1:8000", "", False),
        ("http://127.0.0.1.evil.example", "", False),
        ("http://127.0.0.1@evil.example", "", False),
        ("http://gemma.example", "", False),
    ],
)
def test_what_is_ones_own_act(endpoint: str, service: str, own: bool) -> None:
    """A server on this machine, by its address, that no watched service is."""
    asked: SweepRequest = request(endpoint=endpoint, service=service)
    assert is_own_act(asked) is own
