"""The plan's page where two people must approve or a freeze window holds: what it says, and what its forms do."""

from dataclasses import replace
from datetime import timedelta

import pytest

from agent.core.decision.decision import Channel, Person
from agent.core.decision.freeze import Freeze
from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.core.incident.phase import Phase
from agent.ports.store import Change
from agent.presentation.freeze_text import policy_line
from agent.stages.ask import approvals_for

PEOPLE = tuple(Approver(name=n, email=f"{n.lower()}@x.io", services=("gemma4-*",)) for n in ("Ada", "Ben"))
RULE = Rule(services=("gemma4-*",), kinds=("set_*",), mode=Mode.PERSON, approvals=2)
ALWAYS = Freeze(
    name="year",
    weekly=("Mon 00:00 - Thu 12:00", "Thu 12:00 - Mon 00:00"),
    zone="UTC",
    stops="approvals",
    reason="<b>audit</b>",
    owner="Cyd",
    break_glass="leads",
)
TWO = Policy(approvers=PEOPLE, rules=(RULE,))
FROZEN = Policy(approvers=PEOPLE, freezes=(ALWAYS,), groups={"leads": ("Ada",)})


class Known:
    """An identity that is proven."""

    local = True

    def __init__(self, name):
        self.name = name

    def person(self, _headers):
        return Person(who=self.name, channel=Channel.CONSOLE, verified=True)


@pytest.fixture
def page(scenes, browser_of):
    """A plan asked under a policy, and a browser for each person."""

    class Asked:
        def __init__(self, policy):
            self.stage = scenes.a_stage(policy)
            waiting = self.stage.waiting(plan={"policy": policy.digest})
            shown = approvals_for(self.stage.world, waiting.plan, self.stage.clock.now())
            self.incident = self.stage.world.store.commit(Change(incident=waiting.with_(approvals=shown)))
            self.plan = waiting.plan

        def of(self, name):
            return browser_of(self.stage.world, identity=Known(f"{name}@x.io"))

        def text(self, name):
            return self.of(name).get(f"/plans/{self.plan.id}").get_data(as_text=True)

        def now(self):
            return self.stage.world.store.load(self.incident.id)

    return Asked


def test_the_first_of_two_sees_who_is_missing_and_may_withdraw(page):
    asked = page(TWO)
    answered = asked.of("ada").answer(asked.plan, "approve")
    assert answered.status_code == 303
    assert (asked.now().phase, asked.now().approvals.given_text) == (Phase.ASKED, "1 of 2 approvals")
    shown = asked.text("ada")
    assert "1 of 2 approvals: Ada; needs one more of Ben." in shown
    assert "You approved this plan. Another person has to approve it too." in shown
    assert 'value="approve"' not in shown
    assert asked.of("ada").answer(asked.plan, "withdraw").status_code == 303
    assert asked.now().approvals.given == ()
    assert "Withdraw my approval" not in asked.text("ada")


def test_the_second_of_two_decides(page):
    asked = page(TWO)
    asked.of("ada").answer(asked.plan, "approve")
    assert "Withdraw my approval" not in asked.text("ben")
    answered = asked.of("ben").answer(asked.plan, "approve")
    assert asked.now().phase is Phase.APPROVED
    assert "Approved by Ada and Ben" in asked.of("ada").get(answered.headers["Location"]).get_data(as_text=True)


def test_a_freeze_window_is_read_before_anybody_presses_and_only_its_group_breaks_the_glass(page):
    asked = page(FROZEN)
    for name in ("ada", "ben"):
        shown = asked.text(name)
        assert "Freeze window now: year" in shown
        assert shown.count("&lt;b&gt;audit&lt;/b&gt; (owner Cyd; leads may break the glass)") == 1, "said once"
        assert "Approve and apply this change" not in shown
    assert "Break the glass and approve" not in asked.text("ben")
    ada = asked.of("ada")
    form = ada.fields(f"/plans/{asked.plan.id}")["approve"]
    assert form["break_glass"] == "1"
    refused = ada.post(f"/plans/{asked.plan.id}/decision", form)
    assert (refused.status_code, asked.now().phase) == (403, Phase.ASKED)
    assert ada.post(f"/plans/{asked.plan.id}/decision", form | {"why": "users wait"}).status_code == 303
    assert (asked.now().phase, asked.now().decision.breaks) == (Phase.APPROVED, ("year",))
    rows = [(row.kind, row.body) for row in asked.stage.world.control.audit()]
    assert ("freeze.break_glass", "year: users wait") in rows


def test_who_approved_before_the_window_is_offered_to_break_its_glass(page, scenes):
    """Their approval stands, and another person's word alone would not be enough."""
    starts = (scenes.START + timedelta(minutes=10)).replace(tzinfo=None)
    soon = ALWAYS.with_(weekly=(), starts=starts, ends=starts + timedelta(hours=9))
    asked = page(FROZEN.with_(rules=(RULE,), freezes=(soon,)))
    ada = asked.of("ada")
    assert ada.answer(asked.plan, "approve").status_code == 303
    assert "Break the glass" not in asked.text("ada")
    asked.stage.clock.step(700)
    form = ada.fields(f"/plans/{asked.plan.id}")["approve"]
    assert ada.post(f"/plans/{asked.plan.id}/decision", form | {"why": "users wait"}).status_code == 303
    assert asked.now().approvals.given[0].breaks == ("year",)
    assert "Break the glass" not in asked.text("ada")
    assert asked.of("ben").answer(asked.plan, "approve").status_code == 303
    assert (asked.now().phase, asked.now().decision.breaks) == (Phase.APPROVED, ("year",))


def test_a_form_of_another_person_breaks_no_glass(page):
    asked = page(FROZEN)
    form = asked.of("ada").fields(f"/plans/{asked.plan.id}")["approve"] | {"why": "users wait"}
    assert asked.of("ben").post(f"/plans/{asked.plan.id}/decision", form).status_code == 403
    assert asked.now().phase is Phase.ASKED


def test_a_plan_over_budget_says_the_figures_and_has_no_button(page):
    asked = page(TWO)
    over = asked.incident.approvals.with_(over_budget="all would cost 9.00 USD/h, the budget is 5.00 USD/h")
    asked.stage.world.store.commit(Change(incident=asked.now().with_(approvals=over)))
    shown = asked.text("ada")
    assert "Over budget: all would cost 9.00 USD/h, the budget is 5.00 USD/h." in shown
    assert "Approve and apply this change" not in shown
    assert replace(asked.stage.world).store.load(asked.incident.id).phase is Phase.ASKED


def test_one_line_says_what_policy_asks_and_what_stands_in_the_way(page):
    """Of a plan that was asked about before approvals were kept, what one person may do is all that is known."""
    asked = page(FROZEN)
    assert policy_line(asked.incident.approvals.with_(needed=2)) == "Policy: 0 of 2 approvals; freeze window year"
    assert policy_line(None) == "Policy: one approval"
    over = asked.incident.approvals.with_(needed=1, freezes=(), over_budget="all would cost 9 USD/h")
    assert policy_line(over) == "Policy: one approval; no freeze window; over budget"
