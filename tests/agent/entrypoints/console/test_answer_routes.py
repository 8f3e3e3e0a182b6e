"""One answer to exactly one plan: only from our own page, only by whom it was made for, only once."""

from datetime import timedelta

import pytest

from agent.core.decision.decision import Channel, Choice, Person, check_receipt
from agent.core.decision.policy import Approver, Policy
from agent.core.incident.phase import Phase
from agent.errors import DependencyFailed
from agent.ports.control import KillSwitch
from agent.stages.plan_to_decision import plan_to_decision


class Known:
    """An identity that is proven, for a person of the test's choice."""

    local = True

    def __init__(self, name):
        self.name = name

    def person(self, headers):
        return Person(who=self.name, channel=Channel.CONSOLE, verified=True)


def text(response):
    return response.get_data(as_text=True)


def test_approving_records_a_signed_decision_for_exactly_that_plan(stage, browser, scenes):
    incident = stage.waiting()
    answered = browser.answer(incident.plan, "approve")
    assert answered.status_code == 303
    after = stage.world.store.load(incident.id)
    assert after.phase is Phase.APPROVED
    assert (after.decision.who, after.decision.verified, after.decision.channel) == ("ada", False, Channel.CONSOLE)
    check_receipt(after.decision, incident.plan, scenes.KEY)
    page = text(browser.get(answered.headers["Location"]))
    assert "Approved by ada (not verified)" in page


def test_rejecting_keeps_the_reason(stage, browser):
    incident = stage.waiting()
    answered = browser.answer(incident.plan, "reject", why="the quota <b>is</b> used up")
    after = stage.world.store.load(incident.id)
    assert (after.phase, after.decision.why) == (Phase.REJECTED, "the quota <b>is</b> used up")
    page = text(browser.get(answered.headers["Location"]))
    assert "Reason given: the quota &lt;b&gt;is&lt;/b&gt; used up" in page


def test_the_result_page_holds_after_the_next_plan_has_come(stage, browser):
    """The agent plans anew within milliseconds; who said no, still sees that they did."""
    incident = stage.waiting()
    answered = browser.answer(incident.plan, "reject")
    stage.asked(stage.world.store.load(incident.id))
    page = text(browser.get(answered.headers["Location"]))
    assert "Rejected by ada" in page
    assert "Look at plan 2 and decide" in page


def test_a_rejection_without_a_reason_is_not_taken(stage, browser):
    incident = stage.waiting()
    answered = browser.answer(incident.plan, "reject", why="   ")
    assert answered.status_code == 403
    assert "a rejection needs a reason" in text(answered)
    assert stage.world.store.load(incident.id).phase is Phase.ASKED


@pytest.mark.parametrize("path", ["", "/decision", "/answer", "?answer=approve", "/decision?answer=approve"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_following_a_link_decides_nothing(stage, browser, method, path):
    """Mail scanners and chat previews open every link they see."""
    incident = stage.waiting()
    for _ in range(3):
        response = browser.client.open(
            f"/plans/{incident.plan.id}{path}", method=method, base_url="http://127.0.0.1:8080", follow_redirects=True
        )
        assert response.status_code == 200
    assert stage.world.store.load(incident.id).version == incident.version


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_other_methods_decide_nothing(stage, browser, method):
    incident = stage.waiting()
    data = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    response = browser.client.open(
        f"/plans/{incident.plan.id}/decision", method=method, data=data, base_url="http://127.0.0.1:8080"
    )
    assert response.status_code == 405
    assert stage.world.store.load(incident.id).phase is Phase.ASKED


FOREIGN = {
    "another origin": {"Origin": "https://evil.example"},
    "another port": {"Origin": "http://127.0.0.1:9999"},
    "another scheme": {"Origin": "https://127.0.0.1:8080"},
    "no origin at all": {"Origin": None, "Sec-Fetch-Site": None},
    "null origin": {"Origin": "null"},
    "cross-site by its own word": {"Sec-Fetch-Site": "cross-site"},
    "same site, not same origin": {"Sec-Fetch-Site": "same-site"},
    "typed by nobody": {"Sec-Fetch-Site": "none"},
    "a foreign referer": {"Origin": None, "Sec-Fetch-Site": None, "Referer": "https://evil.example/plans"},
    "a referer that only looks like ours": {
        "Origin": None, "Sec-Fetch-Site": None, "Referer": "http://127.0.0.1:8080.evil.example/",
    },
}  # fmt: skip


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_post_from_elsewhere_is_not_taken(stage, browser, headers):
    incident = stage.waiting()
    answered = browser.answer(incident.plan, "approve", **headers)
    assert answered.status_code == 403
    assert stage.world.store.load(incident.id).version == incident.version


def test_an_old_browser_that_sends_only_a_referer_is_heard(stage, browser):
    incident = stage.waiting()
    own = {"Origin": None, "Sec-Fetch-Site": None, "Referer": f"http://127.0.0.1:8080/plans/{incident.plan.id}"}
    assert browser.answer(incident.plan, "approve", **own).status_code == 303


@pytest.mark.parametrize("field", ["token", "digest", "answer"])
@pytest.mark.parametrize("how", ["missing", "empty", "changed", "strange"])
def test_a_form_with_a_field_changed_is_not_taken(stage, browser, field, how):
    incident = stage.waiting()
    data = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    value = {"missing": None, "empty": "", "changed": data[field][:-1] + "x", "strange": "\ud7ff\U0001f600" * 50}[how]
    data = {k: v for k, v in (data | {field: value}).items() if v is not None}
    answered = browser.post(f"/plans/{incident.plan.id}/decision", data)
    assert answered.status_code == 403
    assert stage.world.store.load(incident.id).version == incident.version


def test_a_form_is_good_for_its_own_plan_only(stage, browser):
    one, other = stage.waiting("one"), stage.waiting("other")
    data = browser.fields(f"/plans/{one.plan.id}")["approve"]
    assert browser.post(f"/plans/{other.plan.id}/decision", data).status_code == 403
    assert stage.world.store.load(other.id).phase is Phase.ASKED


def test_a_form_is_good_for_its_own_browser_only(stage, browser, browser_of):
    """Same server key, another cookie: what an attacker reads on their own page is of no use on ours."""
    incident = stage.waiting()
    data = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    attacked = browser_of(stage.world)
    attacked.get("/incidents/" + incident.id)
    assert attacked.post(f"/plans/{incident.plan.id}/decision", data).status_code == 403
    fresh = browser_of(stage.world)
    assert fresh.post(f"/plans/{incident.plan.id}/decision", data).status_code == 403


def test_a_form_is_good_for_its_own_person_only(stage, browser_of, scenes):
    incident = stage.waiting()
    ada = browser_of(stage.world, operator="ada")
    data = ada.fields(f"/plans/{incident.plan.id}")["approve"]
    bob = browser_of(stage.world, operator="bob")
    cookie = ada.client.get_cookie("sre-console", domain="127.0.0.1")
    bob.client.set_cookie("sre-console", cookie.value, domain="127.0.0.1")
    assert bob.post(f"/plans/{incident.plan.id}/decision", data).status_code == 403


def test_a_form_outlives_a_restart_of_the_console(stage, browser, browser_of):
    """The key of the forms comes from the receipt key: `sre-agent up` again does not void an open page."""
    incident = stage.waiting()
    data = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    cookie = browser.client.get_cookie("sre-console", domain="127.0.0.1")
    again = browser_of(stage.world)
    again.client.set_cookie("sre-console", cookie.value, domain="127.0.0.1")
    assert again.post(f"/plans/{incident.plan.id}/decision", data).status_code == 303


def test_pressing_twice_is_one_decision(stage, browser):
    incident = stage.waiting()
    data = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    path = f"/plans/{incident.plan.id}/decision"
    assert [browser.post(path, data).status_code for _ in range(3)] == [303, 303, 303]
    kinds = [row.kind for row in stage.world.control.audit()]
    assert kinds == ["decision.approve"]


def test_somebody_was_faster_and_is_named(stage, browser, scenes):
    incident = stage.waiting()
    data = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    stage.said(incident, Choice.REJECT, who="maria", why="no")
    answered = browser.post(f"/plans/{incident.plan.id}/decision", data)
    assert answered.status_code == 409
    assert "maria was faster" in text(answered)
    assert "maria rejected this plan through command line" in text(answered)
    assert "Your answer was not taken" in text(answered)


def test_somebody_was_faster_and_the_agent_has_planned_anew(stage, browser):
    incident = stage.waiting()
    data = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    stage.asked(stage.said(incident, Choice.REJECT, who="maria", why="no"))
    answered = browser.post(f"/plans/{incident.plan.id}/decision", data)
    assert answered.status_code == 409
    assert "maria was faster" in text(answered)
    assert "Look at plan 2 and decide" in text(answered)


def test_an_expired_plan_is_not_approved(stage, browser):
    incident = stage.waiting()
    data = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    stage.clock.at = incident.plan.expires_at
    answered = browser.post(f"/plans/{incident.plan.id}/decision", data)
    assert answered.status_code == 410
    assert "This plan has expired" in text(answered)
    assert stage.world.store.load(incident.id).phase is Phase.ASKED


def test_an_expired_plan_that_the_tick_has_closed_says_the_same(stage, browser):
    incident = stage.waiting()
    data = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    stage.move(incident, Phase.EXPIRED, "expired unanswered")
    answered = browser.post(f"/plans/{incident.plan.id}/decision", data)
    assert (answered.status_code, "This plan has expired" in text(answered)) == (410, True)


def test_a_withdrawn_plan_shows_what_is_offered_instead(stage, browser, scenes):
    incident = stage.waiting()
    data = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    superseded = stage.move(incident, Phase.SUPERSEDED, "more was learned")
    stage.asked(superseded, scenes.memory_plan)
    answered = browser.post(f"/plans/{incident.plan.id}/decision", data)
    assert answered.status_code == 409
    page = text(answered)
    assert "This is not the plan any more" in page
    assert "flag --max-model-len" in page
    assert "Look at plan 2 and decide" in page


def test_who_is_no_approver_sees_why_and_is_refused(stage, browser_of, scenes):
    policy = Policy(approvers=(Approver(name="Ada", email="ada@example.com", services=("gemma4-*",)),))
    staged = scenes.a_stage(policy)
    incident = staged.waiting()
    eve = browser_of(staged.world, identity=Known("eve@example.com"))
    assert eve.fields(f"/plans/{incident.plan.id}") == {}
    assert "names no approver with the e-mail" in text(eve.get(f"/plans/{incident.plan.id}"))
    ada = browser_of(staged.world, identity=Known("ADA@example.com"))
    assert ada.answer(incident.plan, "approve").status_code == 303


def test_an_approver_of_other_services_is_refused_even_with_a_good_form(stage, browser_of, scenes):
    """The form was made while the policy still allowed it."""
    staged = scenes.a_stage(Policy(approvers=(Approver(name="A", email="a@x.io", services=("gemma4-*",)),)))
    incident = staged.waiting()
    ada = browser_of(staged.world, identity=Known("a@x.io"))
    data = ada.fields(f"/plans/{incident.plan.id}")["approve"]
    narrower = staged.world.rules.policy.with_(approvers=(Approver(name="A", email="a@x.io", services=("other-*",)),))
    knowledge = type(staged.world.rules)(**(vars(staged.world.rules) | {"policy": narrower}))
    later = browser_of(scenes.another_world(staged, rules=knowledge), identity=Known("a@x.io"))
    cookie = ada.client.get_cookie("sre-console", domain="127.0.0.1")
    later.client.set_cookie("sre-console", cookie.value, domain="127.0.0.1")
    answered = later.post(f"/plans/{incident.plan.id}/decision", data)
    assert answered.status_code == 403
    assert "Your answer does not count here" in text(answered)
    assert staged.world.store.load(incident.id).phase is Phase.ASKED


def test_who_started_a_live_replay_may_reject_but_not_approve(stage, browser):
    incident = stage.waiting(run="replay-1", live_replay=True, plan={"asked_by": "ada"})
    assert set(browser.fields(f"/plans/{incident.plan.id}")) == {"reject"}
    assert "who asks does not approve" in text(browser.get(f"/incidents/{incident.id}"))
    forged = browser.fields(f"/plans/{incident.plan.id}")["reject"] | {"answer": "approve"}
    answered = browser.post(f"/plans/{incident.plan.id}/decision", forged)
    assert answered.status_code == 403
    assert "who asks does not approve" in text(answered)


def test_a_replay_that_changes_nothing_offers_no_approval(stage, browser):
    incident = stage.waiting(run="replay-1")
    assert set(browser.fields(f"/plans/{incident.plan.id}")) == {"reject"}
    assert "it changes nothing" in text(browser.get(f"/incidents/{incident.id}"))


def test_an_approval_under_the_kill_switch_names_the_switch_and_not_the_person(stage, browser):
    """Whoever reads "does not count" looks for another approver, who would read the same."""
    incident = stage.waiting()
    shown_before = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    stage.world.control.set_kill_switch(KillSwitch(on=True, by="grace", why="freeze"))
    answered = browser.post(f"/plans/{incident.plan.id}/decision", shown_before)
    assert answered.status_code == 403
    page = text(answered)
    assert "Your answer was not taken" in page
    assert "The kill switch is on (by grace: freeze). Your answer was not taken" in page
    assert "does not count" not in page
    assert stage.world.store.load(incident.id).phase is Phase.ASKED


def test_where_the_store_does_not_answer_it_says_press_again(stage, browser_of):
    incident = stage.waiting()

    def down(word):
        raise DependencyFailed("the decision was not stored", why="the disk is full", hint="make room")

    ada = browser_of(stage.world, decide=down)
    answered = ada.answer(incident.plan, "approve")
    assert answered.status_code == 503
    assert "Press again in a moment" in text(answered)


def test_a_mistake_of_ours_after_the_word_says_that_nobody_knows(stage, browser_of):
    """It may have been recorded before; that nothing was decided would be a guess."""
    incident = stage.waiting()

    def recorded_and_broken(word):
        plan_to_decision(stage.world, word)
        raise ZeroDivisionError

    answered = browser_of(stage.world, decide=recorded_and_broken).answer(incident.plan, "approve")
    assert answered.status_code == 500
    assert "Nothing was decided" not in text(answered)
    assert "Nobody knows whether your answer was recorded" in text(answered)
    assert stage.world.store.load(incident.id).phase is Phase.APPROVED


def test_where_decide_is_another_service_this_one_writes_nothing(stage, browser_of):
    """In the cloud the console only reads; the word goes to the function that holds the key."""
    incident = stage.waiting()
    heard = []
    ada = browser_of(stage.world, decide=heard.append)
    ada.answer(incident.plan, "approve")
    assert [(w.plan, w.plan_digest, w.by.who) for w in heard] == [(incident.plan.id, incident.plan.digest, "ada")]
    assert stage.world.store.load(incident.id).version == incident.version


def test_a_plan_for_a_person_is_taken_on(stage, browser, scenes):
    incident = stage.waiting(make=scenes.person_plan)
    assert "Assign to me" in text(browser.get(f"/plans/{incident.plan.id}"))
    answered = browser.answer(incident.plan, "approve")
    assert "took the task on; the agent begins to watch" in text(browser.get(answered.headers["Location"]))


def test_an_unknown_plan_is_not_found(browser):
    for path in ("/plans/p-none-1", "/plans/p-none-1/answer", "/plans/p-none-1/decision", "/incidents/inc-none"):
        assert browser.get(path).status_code == 404
    assert browser.post("/plans/p-none-1/decision", {}).status_code == 404


@pytest.mark.parametrize("size", [16_385, 10_000_000])
def test_a_huge_body_is_refused_unread(stage, browser, size):
    incident = stage.waiting()
    answered = browser.post(f"/plans/{incident.plan.id}/decision", {"why": "x" * size})
    assert answered.status_code == 413
    assert stage.world.store.load(incident.id).version == incident.version


def test_a_long_reason_is_cut(stage, browser):
    incident = stage.waiting()
    browser.answer(incident.plan, "reject", why="x" * 5000)
    assert len(stage.world.store.load(incident.id).decision.why) == 1000


def test_the_second_before_expiry_still_counts(stage, browser):
    incident = stage.waiting()
    data = browser.fields(f"/plans/{incident.plan.id}")["approve"]
    stage.clock.at = incident.plan.expires_at - timedelta(seconds=1)
    assert browser.post(f"/plans/{incident.plan.id}/decision", data).status_code == 303


def test_the_page_of_an_answer_leads_on_to_the_incident(stage, browser):
    """Whoever pressed sees what follows without looking for it, and may stay."""
    incident = stage.waiting()
    answered = browser.answer(incident.plan, "approve").headers["Location"]
    page = browser.get(answered).get_data(as_text=True)
    assert f'http-equiv="refresh" content="5; url=/incidents/{incident.id}"' in page
    assert "Goes on to the incident in 5 s." in page
    still = browser.get(f"{answered}?still=1").get_data(as_text=True)
    assert 'http-equiv="refresh"' not in still
    nowhere = browser.get("/plans/p-none-1/answer").get_data(as_text=True)
    assert 'http-equiv="refresh"' not in nowhere
