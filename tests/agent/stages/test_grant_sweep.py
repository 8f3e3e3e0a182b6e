"""Who may allow a sweep: by the rules of a change, on record."""

from dataclasses import replace

import pytest

from agent.core.decision.decision import Channel, Person
from agent.core.decision.policy import Policy
from agent.core.decision.rule import Approver, Mode, Rule
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
    grant = grant_sweep(where, asked, person=Person(who=who, channel=channel, verified=verified)).grant
    assert grant is not None
    return grant


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
        grant_sweep(where, asked, person=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False))


def test_policy_that_changed_meanwhile_is_asked_again() -> None:
    """Bob was taken out of policy.toml before the sweep ran."""
    where = context(local=False)
    given = approve(where, "bob@example.com")
    without = replace(where, rules=replace(where.rules, policy=POLICY.with_(approvers=POLICY.approvers[:1])))
    with pytest.raises(PolicyRefused, match="names no approver"):
        check_grant(without, given, given.request)


TWO = POLICY.with_(
    rules=(Rule(services=(SERVICE,), kinds=("sweep",), mode=Mode.PERSON, approvals=2, groups=("seniors", "owners")),),
    groups={"seniors": ("Bob", "Dan"), "owners": ("Eve",)},
    approvers=(
        *POLICY.approvers,
        Approver(name="Dan", email="dan@example.com", slack="U0DAN", services=(SERVICE,)),
        Approver(name="Eve", email="eve@example.com", services=(SERVICE,)),
        Approver(name="Fay", email="fay@example.com", services=(SERVICE,)),
    ),
)


def under(policy: Policy, *, local: bool = False):
    found = context(local=local)
    return replace(found, rules=replace(found.rules, policy=policy))


def give(where, who: str, *, verified: bool = True, channel: Channel = Channel.COMMAND_LINE):
    asked = request(service=SERVICE, asker="ada@example.com", verified=True)
    return grant_sweep(where, asked, person=Person(who=who, channel=channel, verified=verified))


def test_where_the_policy_wants_two_people_the_second_makes_the_grant() -> None:
    """It names both, and holds; the first one's word again is no second one, whatever channel it comes through."""
    where = under(TWO)
    for who, channel in [("dan@example.com", Channel.COMMAND_LINE)] * 2 + [("U0DAN", Channel.SLACK)]:
        first = give(where, who, channel=channel)
        assert (first.given, first.needed, first.grant) == (("dan@example.com",), 2, None)
    done = give(where, "eve@example.com")
    assert [each.who for each in done.grant.people] == ["dan@example.com", "eve@example.com"]
    check_grant(where, done.grant, done.grant.request)
    kinds = [(row.kind, row.who) for row in where.control_store().audit()]
    assert kinds == [
        ("sweep.approved", "dan@example.com"),
        ("sweep.approved", "eve@example.com"),
        ("sweep.granted", "eve@example.com"),
    ]


def test_two_who_approve_at_the_same_moment_make_one_grant() -> None:
    """Whoever comes after both, or was told no grant, finds the same one."""
    where = under(TWO)
    give(where, "dan@example.com")
    first = give(where, "eve@example.com").grant
    assert give(where, "dan@example.com").grant == first
    assert give(where, "bob@example.com").grant == first
    assert [row.kind for row in where.control_store().audit()].count("sweep.granted") == 1


@pytest.mark.parametrize(
    ("who", "why"),
    [
        ("fay@example.com", "asks for a member of 'seniors' or 'owners', and 'Fay' is none"),
        ("ada@example.com", "asks for a member"),
        ("cy@example.com", "does not let 'Cy' decide"),
    ],
)
def test_one_of_several_is_held_to_the_groups_too(who: str, why: str) -> None:
    where = under(TWO)
    with pytest.raises(PolicyRefused, match=why):
        give(where, who)
    assert where.control_store().audit() == ()


def test_names_that_nothing_proves_count_as_one_person() -> None:
    one = TWO.rules[0].model_copy(update={"groups": ()})
    where = under(TWO.with_(rules=(one,)), local=True)
    for who in ("ann", "ben"):
        assert give(where, who, verified=False).grant is None
    assert give(where, "dan@example.com").grant is not None


def test_a_grant_of_one_person_does_not_hold_where_two_are_wanted_by_now() -> None:
    """Nor does one of the two approvals by itself, which is signed like a grant."""
    given = approve(context(local=False), "bob@example.com")
    with pytest.raises(PolicyRefused, match="1 of 2 people approved it"):
        check_grant(under(TWO), given, given.request)
    where = under(TWO)
    give(where, "bob@example.com")
    (row,) = where.control_store().audit()
    half = SweepGrant.model_validate_json(row.body)
    with pytest.raises(PolicyRefused, match="1 of 2 people approved it"):
        check_grant(where, half, half.request)


def test_who_may_not_approve_any_more_is_not_counted() -> None:
    where = under(TWO)
    give(where, "bob@example.com")
    fewer = replace(
        where, rules=replace(where.rules, policy=TWO.with_(groups={"seniors": ("Dan",), "owners": ("Eve",)}))
    )
    assert give(fewer, "dan@example.com").grant is None
    assert give(fewer, "eve@example.com").grant is not None


def test_without_a_rule_of_its_own_a_sweep_is_held_to_the_strictest_of_the_changes() -> None:
    """To its number of people and to its groups; who asks is held to the strictest word about that, too."""
    rules = (
        Rule(services=(SERVICE,), kinds=("restart",), mode=Mode.PERSON, self_approve=True, groups=("others",)),
        Rule(services=(SERVICE,), kinds=("set_*",), mode=Mode.PERSON, approvals=2, groups=("seniors", "owners")),
        Rule(services=(SERVICE,), kinds=("lifecycle",), mode=Mode.NEVER),
        Rule(services=("other",), kinds=("set_*",), mode=Mode.PERSON, approvals=3),
    )
    where = under(TWO.with_(rules=rules, groups=TWO.groups | {"others": ("Fay",)}))
    with pytest.raises(PolicyRefused, match="who asks does not approve"):
        give(under(TWO.with_(rules=(rules[0], rules[1].with_(groups=())))), "ada@example.com")
    assert give(where, "dan@example.com").grant is None
    with pytest.raises(PolicyRefused, match="asks for a member of 'seniors' or 'owners', and 'Fay' is none"):
        give(where, "fay@example.com")
    assert give(where, "eve@example.com").grant is not None


def test_of_two_rules_as_strict_as_each_other_a_sweep_is_held_to_the_groups_of_both() -> None:
    rules = (
        Rule(services=(SERVICE,), kinds=("restart",), mode=Mode.PERSON, groups=("owners",)),
        Rule(services=(SERVICE,), kinds=("set_*",), mode=Mode.PERSON, groups=("seniors",)),
        Rule(services=(SERVICE,), kinds=("lifecycle",), mode=Mode.PERSON),
    )
    where = under(TWO.with_(rules=rules, groups={"seniors": ("Bob", "Dan"), "owners": ("Bob", "Eve")}))
    for who in ("dan@example.com", "eve@example.com", "fay@example.com"):
        with pytest.raises(PolicyRefused, match="asks for a member of 'owners' and 'seniors'"):
            give(where, who)
    assert give(where, "bob@example.com").grant is not None


@pytest.mark.parametrize("local", [True, False])
def test_a_rule_that_never_allows_a_sweep_is_kept(local: bool) -> None:
    rule = Rule(services=(SERVICE,), kinds=("sweep",), mode=Mode.NEVER)
    where = under(POLICY.with_(rules=(rule,)), local=local)
    with pytest.raises(PolicyRefused, match="never allows a sweep"):
        give(where, "bob@example.com", verified=not local)


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
