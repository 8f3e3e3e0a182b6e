"""The form that tests the policy gives the answer that the deciding function gives."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from agent.core.decision.freeze import Freeze
from agent.core.decision.policy import Approver, Mode, Policy, Rule, ServiceLimit
from agent.core.plan.lifecycle import absent
from agent.core.service.services import parse_services
from agent.core.service.serving import ServingConfig
from agent.errors import DependencyFailed
from agent.ports.control import KillSwitch
from agent.ports.stage_context import Owner
from agent.settings import Settings
from tests.contracts import values

POLICY = Policy(
    rules=(
        Rule(services=("frozen-*",), kinds=("restart", "set_*"), mode=Mode.NEVER),
        Rule(services=("gemma4-*",), kinds=("restart",), mode=Mode.AUTOMATIC),
        Rule(services=("gemma4-*",), kinds=("set_flag",), mode=Mode.PERSON),
    ),
    approvers=(Approver(name="Ada", email="ada@example.com", services=("gemma4-*",)),),
    flags={"max-model-len": "whole 256..131072"},
)


@pytest.fixture
def stage(scenes):
    return scenes.a_stage(POLICY)


def rows(browser, query):
    page = browser.get(f"/policy?{query}").get_data(as_text=True)
    found = re.findall(r'Check">(\w+)</td><td data-label="Answer"><span[^>]*>(\w+)</span></td><td [^>]*>([^<]*)', page)
    allowed = re.search(r'role="status"><span class="verdict \w+">([\w ]+)<', page)
    return (allowed[1] if allowed else None), {check: (answer, says) for check, answer, says in found}


def test_nothing_is_tested_before_anything_is_asked(browser):
    assert rows(browser, "") == (None, {})


@pytest.mark.parametrize(
    ("query", "allowed", "rule"),
    [
        ("service=gemma4-x&change=restart", "allowed", "rules.1 decides: automatic"),
        ("service=gemma4-x&change=set_flag&value=max-model-len=4096", "allowed", "rules.2 decides: person"),
        ("service=frozen-x&change=restart", "not allowed", "rules.0 decides: never"),
        ("service=other&change=set_env&value=A=b", "not allowed", "no rule matches, so a person decides"),
    ],
)
def test_the_rule_that_decides_is_named(browser, query, allowed, rule):
    said, found = rows(browser, query)
    assert said == allowed
    assert rule in found["rule"][1]


def test_bounds_and_the_kill_switch_count_too(stage, browser):
    said, found = rows(browser, "service=gemma4-x&change=set_flag&value=max-model-len=9999999")
    assert (said, found["bounds"][0]) == ("not allowed", "refused")
    stage.world.control.set_kill_switch(KillSwitch(on=True, by="grace", why="fire"))
    assert rows(browser, "service=gemma4-x&change=restart")[1]["switch"][0] == "refused"


def test_a_stored_plan_is_tested_as_it_stands(stage, browser):
    incident = stage.waiting("gemma4-x", plan={"policy": POLICY.digest})
    plan = incident.plan
    assert rows(browser, f"plan={plan.id}")[1]["policy"][0] == "ok"
    late = (stage.clock.now() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    said, found = rows(browser, f"plan={plan.id}&at={late}")
    assert (said, found["plan"][0]) == ("not allowed", "refused")


def test_for_a_reader_without_a_name_the_policy_alone_is_asked(stage, browser_of):
    """Anybody may send the question, and what the service and the control database say costs much."""
    world = replace(stage.world, local=False)
    stage.world.control.set_kill_switch(KillSwitch(on=True, by="grace", why="fire"))
    query = "service=gemma4-x&change=restart"
    assert rows(browser_of(world), query)[1]["switch"][0] == "refused"
    reader = browser_of(world, settings=Settings(platform="cloud_run:example", bind="0.0.0.0"))
    _, found = rows(reader, query)
    assert "rules.1 decides: automatic" in found["rule"][1]
    assert (found["limits"][0], "switch" in found) == ("unknown", False)


def test_in_the_cloud_what_only_the_control_database_knows_is_unknown(stage, browser_of):
    world = replace(stage.world, control=None, owner=Owner.INTAKE)
    from tests.agent.entrypoints.console.test_control_access import Nothing

    browser = browser_of(world, control=Nothing())
    assert rows(browser, "service=gemma4-x&change=restart")[1]["limits"][0] == "unknown"


@pytest.mark.parametrize(
    "query",
    ["plan=p-none-1", "plan=rq-000000000000", "change=restart", "service=gemma4-x&change=fly", "service=g&change=scale&value=x",
     "service=g&change=restart&at=soon", f"plan={'x' * 300}"],
)  # fmt: skip
def test_what_is_not_understood_is_said_beside_the_form(browser, query):
    page = browser.get(f"/policy?{query}")
    assert page.status_code == 200
    assert 'role="alert"' in page.get_data(as_text=True)
    assert rows(browser, query) == (None, {})


NAMES = ("gemma4-a", "gemma4-b")
WATCHED = parse_services(
    {"service": [
        {"name": n, "platform": "host", "model": "m", "accelerator": "nvidia-l4", "owner": "console"} for n in NAMES
    ]}
)  # fmt: skip
RULE = Rule(
    services=("gemma4-*",), kinds=("set_model",), mode=Mode.PERSON, approvals=2, groups=("oncall", "leads"),
    escalate_after_min=10, self_approve=False,
)  # fmt: skip
BASE = Policy(
    rules=(RULE, Rule(services=("gemma4-*",), kinds=("restart",), mode=Mode.AUTOMATIC)),
    approvers=(Approver(name="Ada", slack="U0ADA", email="ada@x.io", services=("gemma4-*",)), Approver(name="Ben", email="b@x.io")),
    groups={"oncall": ("Ada",), "leads": ("Ada", "Ben")},
    limits=(ServiceLimit(name="prod", services=("gemma4-a",), changes_per_hour=1, budget_usd_per_h=1),),
    budget_usd_per_h=5,
    changes_per_hour=2,
)  # fmt: skip


class Priced:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def cost_usd_per_h(self, _service, _config):
        return 0.75


class Describing:
    def __init__(self, down):
        self.down = down

    def describe(self, service):
        if service in self.down:
            raise DependencyFailed("x", why="y", hint="z")
        return absent(service, "host").with_(config=ServingConfig(accelerator="nvidia-l4", max_instances=2))


@pytest.fixture
def shown(stage, browser_of):
    """The text of the page under a policy."""

    def page(policy=BASE, *, down=(), **changes):
        rules = replace(stage.world.rules, services=WATCHED, policy=policy, fits=Priced(stage.world.rules.fits))
        world = replace(stage.world, rules=rules, platform_of=lambda _: Describing(down), **changes)
        found = browser_of(world).get("/policy")
        assert found.status_code == 200
        text = found.get_data(as_text=True)
        assert '<form method="post"' not in text
        return " ".join(text.split())

    return page


def window(now, name, starts, ends, **changes):
    wall = {"starts": (now + starts).replace(tzinfo=None), "ends": (now + ends).replace(tzinfo=None), "zone": "UTC"}
    return Freeze(**({"name": name, "stops": "approvals", "reason": f"<b>{name}</b>", "owner": "Cyd"} | wall | changes))


def test_freeze_windows_say_now_next_or_over_the_present_one_first(shown, stage):
    now, hour = stage.clock.now().replace(microsecond=0), timedelta(hours=1)
    windows = (
        window(now, "gone", -2 * hour, -hour),
        window(now, "later", 5 * hour, 6 * hour),
        window(now, "soon", hour, 2 * hour, services=("gemma4-a",)),
        window(now, "present", -hour, hour, stops="non_emergency"),
    )
    text = shown(BASE.with_(freezes=windows))
    places = [text.index(f"{name}") for name in ("present,", "soon,", "later,", "gone:")]
    assert places == sorted(places)
    labels = [text.index(f">{label}</span>") for label in ("now", "next", "over")]
    assert labels == sorted(labels)
    assert "&lt;b&gt;present&lt;/b&gt;" in text
    assert "plans that fix an incident are" in text


def test_a_weekly_window_that_holds_says_when_it_comes_again(shown, stage):
    week = ("Mon 00:00 - Thu 12:00", "Thu 12:00 - Mon 00:00")
    freeze = Freeze(name="year", weekly=week, zone="UTC", stops="approvals", reason="r", owner="Cyd")
    text = shown(BASE.with_(freezes=(freeze,)))
    assert ">now</span>" in text
    assert "Next: " in text


def test_limits_and_budgets_say_what_is_used(shown, stage):
    now = stage.clock.now()
    made = values.intent(service="gemma4-a", applied_at=now - timedelta(minutes=5))
    stage.world.control.begin(made)
    text = shown()
    assert "1 of 2</span> 2 an hour over all; 1 made, the last 5 min ago" in text
    assert "1 of 1</span> prod: 1 an hour; 1 made, the last 5 min ago; the next may begin at" in text
    assert "at most one change of gemma4-a every 900 s; 1 made" in text
    assert "at most one change of gemma4-b" not in text
    assert "3.00 of 5.00 USD/h</span> all watched services" in text
    assert "1.50 of 1.00 USD/h</span> prod" in text


def test_a_price_that_nobody_knows_is_named(shown):
    assert "without gemma4-b, whose price is unknown: what costs more is refused" in shown(down=("gemma4-b",))


def test_rules_people_and_groups_are_in_words_without_identities(shown):
    text = shown()
    assert "rules.0 gemma4-*: set_model" in text
    assert (
        "2 different people; of oncall or leads; the next group is told after 10 min; who asked may not approve" in text
    )
    assert "automatic: no approval" in text
    assert "by slack, email; for gemma4-*" in text
    assert "for no service: may look and stop" in text
    assert "U0ADA" not in text
    assert "ada@x.io" not in text
    assert "Ada, Ben" in text


def test_the_console_of_the_cloud_says_what_it_cannot_know(shown):
    """It has neither the control database nor a platform."""
    text = shown(owner=Owner.INTAKE, control=None)
    assert "What is used of the limits is not known here" in text
    assert "describes no service" in text
    assert "rules.0" in text


def test_an_empty_policy_says_who_decides(shown):
    text = shown(Policy())
    assert "only the operator at their own machine can approve" in text
    assert text.count("None") >= 2


def test_the_page_is_linked_from_the_list(browser):
    assert 'href="/policy"' in browser.get("/").get_data(as_text=True)
