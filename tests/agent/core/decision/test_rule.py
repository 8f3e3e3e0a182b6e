"""The rows of a policy against each other: every contradiction is found, all at once."""

import pytest

from agent.core.decision.policy import Policy, Requirement, parse_policy
from agent.core.decision.rule import Mode, Rule
from agent.core.plan.action import ForPerson, Restart, SetFlag, SetScaling
from agent.errors import PolicyRefused, SettingsRejected

PEOPLE = """
[[approvers]]
name = "Ada"
email = "ada@example.com"
services = ["gemma4-*"]
[[approvers]]
name = "Ben"
slack = "U0BEN"
services = ["gemma4-*"]
[groups]
oncall = ["Ada"]
leads = ["Ben", "Ada"]
"""
ROW = '[[rules]]\nservices = ["gemma4-*"]\nkinds = ["set_*"]\nmode = "person"\n'
FREEZE = '[[freezes]]\nname = "weekend"\nweekly = ["Fri 18:00 - Mon 08:00"]\nzone = "UTC"\nstops = "approvals"\nreason = "r"\nowner = "o"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PEOPLE + "empty = []", "groups.empty: it is empty"),
        (PEOPLE + 'strange = ["Ada", "Eve"]', "groups.strange: 'Eve' is no approver"),
        (PEOPLE + ROW + 'groups = ["nobody"]', "rules.0.groups: 'nobody' is no group, [groups] has leads, oncall"),
        (PEOPLE + ROW + "approvals = 3", "3 people must approve, and 2 may"),
        (PEOPLE + ROW + 'approvals = 2\ngroups = ["oncall"]', "2 people must approve, and 1 may"),
        (ROW + "approvals = 2", "2 people must approve, and 0 may"),
        (PEOPLE + FREEZE + 'break_glass = "sre"', "freezes.0.break_glass: 'sre' is no group"),
        (PEOPLE + FREEZE + FREEZE, "freezes.1.name: 'weekend' stands in two windows"),
        (ROW + ROW.replace("person", "never").replace('"set_*"', '"set_flag"'), "rules.1: rule 0 selects all of it"),
        (ROW + ROW.replace("person", "automatic"), "rules.1: rule 0 selects all of it"),
        (PEOPLE + ROW + ROW.replace("gemma4-*", "gemma4-26b-*") + "approvals = 2", "rules.1: rule 0 selects all of it"),
        (ROW.replace("person", "automatic") + "approvals = 2", "mode 'automatic' asks nobody"),
        (ROW.replace("person", "never") + "self_approve = true", "mode 'never' asks nobody"),
        (PEOPLE + ROW + 'groups = ["leads"]\nescalate_after_min = 5', "wants at least two groups"),
        (ROW + "approvals = 0", "rules.0.approvals"),
        ('[[limits]]\nname = "prod"\nservices = ["gemma4-*"]', "limits.0: want changes_per_hour"),
        ('[[limits]]\nname = "prod"\nservices = []\nmax_instances = 2', "limits.0.services"),
        ("budget_usd_per_h = 0", "budget_usd_per_h"),
        ('[[approvers]]\nname = "(not verified)"\nslack = "U0EVE"', "is nobody's name"),
        ("groups = 7", "groups"),
        ('[groups]\noncall = "Ada"', "groups.oncall"),
        ("freezes = 7", "freezes"),
    ],
)
def test_a_contradiction_is_no_policy(text, says):
    with pytest.raises(SettingsRejected) as caught:
        parse_policy(text)
    assert says in caught.value.why


def test_contradictions_and_other_mistakes_are_told_at_once():
    text = PEOPLE + "empty = []\n" + ROW + 'groups = ["nobody"]\napprovals = 9\n' + FREEZE.replace("UTC", "Mars/Base")
    with pytest.raises(SettingsRejected) as caught:
        parse_policy("color = 'red'\n" + text + FREEZE.replace("weekend", "x") + 'break_glass = "sre"')
    for word in ("color", "groups.empty", "approvals", "'Mars/Base' is no time zone", "'sre' is no group"):
        assert word in caught.value.why, word


@pytest.mark.parametrize(
    "text",
    [
        ROW.replace('"set_*"', '"set_flag"').replace("person", "never") + ROW,
        ROW + ROW,
        ROW + ROW.replace("gemma4-*", "*-l4").replace("person", "never"),
        ROW.replace("gemma4-*", "gemma4-[ab]*") + ROW.replace("gemma4-*", "gemma4-a*").replace("person", "never"),
        PEOPLE + ROW + 'approvals = 2\ngroups = ["oncall", "leads"]\nescalate_after_min = 10',
        PEOPLE + FREEZE + 'break_glass = "leads"',
    ],
    ids=["narrow first", "the same twice", "crossing", "letters of a class", "groups", "glass"],
)
def test_what_only_looks_like_a_contradiction_is_taken(text):
    assert parse_policy(text)


def test_the_strictest_of_several_rules_counts():
    two = Rule(
        services=("a*",), kinds=("set_flag",), mode=Mode.PERSON, approvals=2, groups=("x", "y"), escalate_after_min=9
    )
    three = Rule(services=("a*",), kinds=("restart",), mode=Mode.PERSON, approvals=3, groups=("z",), self_approve=True)
    policy = Policy(rules=(two, three))
    flag, scale = SetFlag(name="x", value=""), SetScaling(min_instances=0, max_instances=1)
    assert policy.requirement("a1", (flag, Restart())) == Requirement(
        mode=Mode.PERSON, rules=(0, 1), approvals=3, groups=(("x", "y"), ("z",)), escalate_after_min=9
    )
    assert policy.requirement("a1", (Restart(),)).self_approve is True
    assert policy.requirement("a1", (scale,)) == Requirement(mode=Mode.PERSON, rules=(None,))
    assert policy.requirement("b", (flag,)).approvals == 1
    assert policy.requirement("a1", (ForPerson(action="fix_quota", instruction="ask"),)).approvals == 1


def test_who_may_approve_is_in_a_group_of_each_rule():
    policy = parse_policy(PEOPLE + ROW + 'groups = ["oncall"]')
    required = policy.requirement("gemma4-26b", (SetFlag(name="x", value=""),))
    assert [a.name for a in policy.approvers_of("gemma4-26b", required)] == ["Ada"]
    assert policy.bars("slack", "U0BEN", "gemma4-26b", required) == (
        "policy.toml asks for a member of 'oncall', and 'Ben' is none"
    )
    assert policy.bars("slack", "U0BEN", "gemma4-26b") == ""
    assert policy.approvers_of("qwen", required) == ()


def test_a_limit_of_a_group_bounds_its_services_alone():
    policy = parse_policy('[[limits]]\nname = "prod"\nservices = ["gemma4-*"]\nmax_instances = 2')
    scale = SetScaling(min_instances=0, max_instances=3)
    with pytest.raises(PolicyRefused, match="3 instances are above the limit of 2 of 'prod'"):
        policy.check((scale,), "gemma4-26b")
    policy.check((scale,), "qwen")
    policy.check((SetScaling(min_instances=0, max_instances=2),), "gemma4-26b")


def test_keys_that_nobody_uses_void_no_approval():
    """What an earlier version signed names the digest of the same file."""
    old = Policy(changes_per_hour=3, rules=(Rule(services=("a",), kinds=("restart",), mode=Mode.NEVER),))
    assert old.digest == "8f708c358802413f43059903efd34d9f0e86c75ebf4d14d3b9afe1b5aee9ef54"
    assert old.with_(groups={"x": ("Ada",)}).digest != old.digest
    assert old.with_(rules=(old.rules[0].with_(mode=Mode.PERSON, approvals=2),)).digest != old.digest
