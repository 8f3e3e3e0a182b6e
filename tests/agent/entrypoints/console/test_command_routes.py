"""What people do about an incident on its page: one form one button, from our own page, by who may, said afterwards."""

import html
import re
from dataclasses import replace

from agent.core.decision.decision import Channel, Choice, Person
from agent.core.decision.policy import Approver, Policy
from agent.core.incident.command import Command
from agent.core.incident.phase import Phase


def forms(browser, incident, **query):
    """The hidden fields of each form on the page, by command; what is typed in is not filled."""
    page = browser.get(f"/incidents/{incident.id}", query_string={"still": "1"} | query).get_data(as_text=True)
    found = re.findall(r'<form method="post" action="/incidents/[^"]+/commands".*?</form>', page, re.DOTALL)
    fields = [dict(re.findall(r'name="(\w+)" value="([^"]*)"', form)) for form in found]
    return {f["command"]: f for f in fields}


def act(browser, incident, command, text="", *, fields=None, **headers):
    given = fields if fields is not None else forms(browser, incident)[command]
    return browser.post(f"/incidents/{incident.id}/commands", given | ({"text": text} if text else {}), **headers)


def text_of(answer):
    return html.unescape(answer.get_data(as_text=True))


def escalated(stage, service="svc"):
    return stage.escalated(stage.said(stage.waiting(service), Choice.REJECT, why="no"))


def verifying(stage):
    return stage.verifying(stage.applying(stage.said(stage.waiting(), Choice.APPROVE)))


def test_a_page_offers_what_goes_with_its_phase_and_nothing_else(stage, browser, scenes):
    everywhere = {"acknowledge", "assign", "comment"}
    cases = {
        "asked": (stage.waiting("a"), everywhere),
        "task": (stage.waiting("t", make=scenes.person_plan), everywhere | {"done"}),
        "verifying": (verifying(stage), everywhere | {"roll_back"}),
        "escalated": (escalated(stage), everywhere | {"close", "replan"}),
    }
    assert {command for _, commands in cases.values() for command in commands} == set(Command)
    for name, (incident, commands) in cases.items():
        assert set(forms(browser, incident)) == commands, name


def test_a_page_that_reads_itself_anew_takes_no_text_from_under_the_typist(stage, browser):
    """While it moves, what needs words leads to the page that stands still."""
    incident = verifying(stage)
    assert set(forms(browser, incident, still="0")) == {"acknowledge"}
    page = text_of(browser.get(f"/incidents/{incident.id}"))
    assert f'href="/incidents/{incident.id}?still=1#do-roll_back">Roll back now</a>' in page


def test_what_was_done_is_on_the_page_afterwards(stage, browser):
    incident = escalated(stage)
    for command, text in (("acknowledge", ""), ("assign", "Ben"), ("comment", "the <b>quota</b> is raised")):
        answer = act(browser, incident, command, text)
        assert (answer.status_code, answer.headers["Location"]) == (303, f"/incidents/{incident.id}#people")
    page = browser.get(f"/incidents/{incident.id}").get_data(as_text=True)
    assert "Acknowledged by ada (not verified) at " in page
    assert "assigned to Ben." in page
    assert "<b>quota</b>" not in page
    assert "Comment by ada (not verified): the &lt;b&gt;quota&lt;/b&gt; is raised" in page
    assert act(browser, incident, "close", "the node was replaced").status_code == 303
    closed = stage.world.store.load(incident.id)
    assert (closed.phase, closed.closed.channel) == (Phase.CLOSED, "console")
    assert "How it ended" in text_of(browser.get(f"/incidents/{incident.id}"))
    assert set(forms(browser, incident)) == {"comment"}


def test_every_form_of_a_first_visit_is_good_with_the_one_cookie_that_it_got(stage, browser):
    """The plan's form and those of the phase stand on one page; a browser that comes for the first time may send any."""
    incident = stage.waiting("first-visit")
    page = browser.get(f"/incidents/{incident.id}").get_data(as_text=True)
    sent = {}
    for form in re.findall(r'<form method="post".*?</form>', page, re.DOTALL):
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
        sent[fields.get("answer") or fields["command"]] = (re.search(r'action="([^"]+)"', form)[1], fields)
    for name in ("acknowledge", "approve"):
        path, fields = sent[name]
        assert browser.post(path, fields).status_code == 303, name


def test_another_sites_form_another_incident_or_no_command_does_nothing(stage, browser, browser_of):
    incident, other = escalated(stage), escalated(stage, "other")
    good = forms(browser, incident)["close"] | {"text": "over"}
    wrong = (
        act(browser, incident, "close", fields=good, Origin="https://evil.example", **{"Sec-Fetch-Site": "cross-site"}),
        act(browser, other, "close", fields=good),
        act(browser, incident, "close", fields=good | {"command": "explode"}),
        act(browser, incident, "close", fields=good | {"token": "0" * 64}),
        act(browser_of(stage.world, operator="eve"), incident, "close", fields=good),
    )
    assert [answer.status_code for answer in wrong] == [403] * 5
    assert {stage.world.store.load(i.id).phase for i in (incident, other)} == {Phase.ESCALATED}
    assert browser.post("/incidents/inc-none/commands", good).status_code == 404


def test_what_does_not_go_any_more_says_what_does(stage, browser):
    """The page is old: meanwhile somebody closed it."""
    incident = escalated(stage)
    old = forms(browser, incident)
    act(browser, incident, "close", "over")
    answer = act(browser, incident, "replan", fields=old["replan"])
    assert (answer.status_code, "It is CLOSED" in text_of(answer)) == (403, True)
    assert act(browser, incident, "comment", "x" * 1001, fields=old["comment"]).status_code == 400


def test_a_task_is_marked_as_done_for_the_plan_that_the_page_showed(stage, browser, scenes):
    """Another plan may have taken its place, and the word would approve that one."""
    incident = stage.waiting(make=scenes.person_plan)
    shown = forms(browser, incident)["done"]
    assert shown["digest"] == incident.plan.digest
    for digest, why in (("0" * 64, "What was shown had digest '00000000'"), ("", "does not say which task")):
        answer = act(browser, incident, "done", fields=shown | {"digest": digest})
        assert (answer.status_code, why in text_of(answer)) == (403, True)
        assert stage.world.store.load(incident.id).phase is Phase.ASKED
    assert act(browser, incident, "done", fields=shown).status_code == 303
    assert stage.world.store.load(incident.id).task_done.who == "ada"


class Proved:
    """An identity that is proven."""

    local = True

    def __init__(self, name):
        self.name = name

    def person(self, _headers):
        return Person(who=self.name, channel=Channel.CONSOLE, verified=True)


def test_a_reader_whom_policy_does_not_name_for_the_service_may_do_nothing(stage, browser_of):
    incident = escalated(stage)
    policy = Policy(approvers=(Approver(name="Ada", email="ada@example.com", services=("other",)),))
    world = replace(stage.world, rules=replace(stage.world.rules, policy=policy))
    for name, why in (("ada@example.com", "does not let 'Ada' decide"), ("eve@example.com", "names no approver")):
        browser = browser_of(world, identity=Proved(name))
        page = text_of(browser.get(f"/incidents/{incident.id}"))
        assert "/commands" not in page
        assert f"Policy.toml {why}" in page
