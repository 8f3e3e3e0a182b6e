"""The pages say what a person needs at three in the morning, and nothing in them is alive that came from outside."""

import html
import json
import re
from datetime import timedelta
from html.parser import HTMLParser

import pytest

from agent.core.decision.decision import Choice
from agent.core.diagnosis.diagnosis import Evidence
from agent.core.incident.phase import NEXT, Phase
from agent.errors import DependencyFailed, PolicyRefused, StateConflict
from agent.ports.control import KillSwitch
from agent.ports.decide import NoResponse
from agent.ports.platform import LeaseOver, NotDeployed
from agent.ports.store import Change
from agent.stages.shared import find_incidents
from agent.stages.shared.kill_switch import set_kill_switch

VOID = {"meta", "link", "input", "br"}


class Outline(HTMLParser):
    """Headings, links, ids and unbalanced tags of a page."""

    def __init__(self):
        super().__init__()
        self.headings, self.links, self.tags, self.stack, self.wrong = [], [], [], [], []
        self.ids, self.refs = [], []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append((tag, values))
        if tag not in VOID:
            self.stack.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        self.links += [values[k] for k in ("href", "src", "action", "formaction", "poster", "data") if values.get(k)]
        self.ids += [values["id"]] if "id" in values else []
        self.refs += [values[k] for k in ("for", "aria-labelledby") if k in values]

    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag:
            self.wrong.append(tag)


def outline(page):
    found = Outline()
    found.feed(page)
    return found


def text(browser, path):
    response = browser.get(path)
    assert response.status_code == 200, path
    return response.get_data(as_text=True)


def every_state(stage, scenes):
    """One incident for each state that a page can show."""
    states = {"open": stage.open("s-open"), "diagnosed": stage.diagnosed(stage.open("s-diagnosed"))}
    states["planned"] = stage.planned(stage.diagnosed(stage.open("s-planned")))
    states["asked"] = stage.waiting("s-asked")
    states["memory"] = stage.waiting(
        "s-memory", make=scenes.memory_plan, diagnosis=scenes.memory_diagnosis(stage.clock.now())
    )
    states["person"] = stage.waiting("s-person", make=scenes.person_plan)
    states["approved"] = stage.said(stage.waiting("s-approved"), Choice.APPROVE)
    states["refused"] = stage.move(
        stage.said(stage.waiting("s-refused"), Choice.APPROVE), Phase.REFUSED, "changed since", ended_why="it changed"
    )
    states["rejected"] = stage.said(stage.waiting("s-rejected"), Choice.REJECT, why="no")
    states["expired"] = stage.move(stage.waiting("s-expired"), Phase.EXPIRED, "unanswered")
    states["superseded"] = stage.move(stage.waiting("s-superseded"), Phase.SUPERSEDED, "more was learned")
    states["recovered"] = stage.move(stage.waiting("s-rec"), Phase.SELF_RECOVERED, "closed", ended_why="it closed")
    states["applying"] = stage.applying(stage.said(stage.waiting("s-applying"), Choice.APPROVE))
    states["verifying"] = stage.verifying(stage.applying(stage.said(stage.waiting("s-verifying"), Choice.APPROVE)))
    states["resolved"] = stage.resolved(
        stage.verifying(stage.applying(stage.said(stage.waiting("s-resolved"), Choice.APPROVE)))
    )
    bad = stage.verifying(stage.applying(stage.said(stage.waiting("s-bad"), Choice.APPROVE)), good=False)
    states["rolling"] = stage.move(bad, Phase.ROLLING_BACK, "rolling back: the answer was empty")
    worse = stage.verifying(stage.applying(stage.said(stage.waiting("s-worse"), Choice.APPROVE)), good=False)
    states["rolled_back"] = stage.rolled_back(worse)
    last = stage.rolled_back(
        stage.verifying(stage.applying(stage.said(stage.waiting("s-last"), Choice.APPROVE)), good=False)
    )
    second = stage.asked(last, scenes.memory_plan)
    states["escalated"] = stage.escalated(stage.said(second, Choice.REJECT, why="2 tokens/s is of no use"))
    closed = stage.escalated(stage.said(stage.waiting("closed"), Choice.REJECT, why="no"))
    states["closed"] = stage.move(closed, Phase.CLOSED, "closed: ben closed it", ended_why="ben closed it: fixed")
    return states


def test_every_state_has_its_page_and_every_page_is_sound(stage, browser, scenes):
    states = every_state(stage, scenes)
    assert {i.phase for i in states.values()} == set(NEXT)
    for name, incident in states.items():
        page = text(browser, f"/incidents/{incident.id}")
        found = outline(page)
        assert not found.stack, name
        assert not found.wrong, (name, found.wrong)
        assert found.headings[0] == 1, name
        assert found.headings.count(1) == 1, name
        assert all(b - a <= 1 for a, b in zip(found.headings, found.headings[1:], strict=False)), (name, found.headings)
        assert len(found.ids) == len(set(found.ids)), name
        assert set(found.refs) <= set(found.ids), name
        scripts = re.findall(r"<script.*?</script>", page, re.DOTALL)  # of a page that follows: our own file alone
        assert all(re.fullmatch(r'<script src="/live-[0-9a-f]{12}\.js" defer></script>', s) for s in scripts), name
        assert page.count("<script") == len(scripts), name
        assert "style=" not in page, name
        assert all(link.startswith(("/", "#", "?")) and not link.startswith("//") for link in found.links), found.links


def test_every_input_has_a_label(stage, browser):
    incident = stage.waiting()
    for path in ("/", f"/incidents/{incident.id}"):
        found = outline(text(browser, path))
        named = {v["for"] for tag, v in found.tags if tag == "label" and "for" in v}
        for tag, values in found.tags:
            if tag in {"input", "textarea", "select"} and values.get("type") not in {"hidden", "checkbox"}:
                assert values["id"] in named


def test_the_incident_page_tells_the_whole_story(stage, browser, scenes):
    incident = stage.waiting(make=scenes.memory_plan, diagnosis=scenes.memory_diagnosis(stage.clock.now()))
    page = text(browser, f"/incidents/{incident.id}")
    for said in (
        "The GPU ran out of memory while loading: 2.62 GiB is the output head",
        "Tried to allocate 2.62 GiB",
        "rules; the model differs",
        "provisional",
        "62 %, not certain",
        "The KV cache does not fit beside the weights.",
        "which vLLM version runs",
        "first signal of the cause (5 times)",
        "flag --cpu-offload-gb",
        "<del>16384</del>",
        "<ins>4096</ins>",
        "Does not fit: the output head needs 2.62 GiB while loading",
        "0.47 GiB missing",
        "0.88 USD/h now, 1.24 USD/h after (+0.36 USD/h)",
        "about 2.0 tokens/s",
        "answers come at 2 tokens/s",
        "The prior template and traffic are put back",
        "If nobody answers, nothing is changed",
        "2026-06-08 15:01:08 UTC",
        "in 29 min",
        "one request may have 4,096 tokens",
        "Approve and apply this change",
        "Recorded then: Asked about plan",
    ):
        assert said in page, said


def test_each_log_line_is_shown_once(stage, browser):
    """The key log line at the top; evidence and signals that say the same refer to it."""
    incident = stage.waiting()
    page = html.unescape(text(browser, f"/incidents/{incident.id}"))
    lines = {e.line for e in incident.diagnosis.evidence} | {s.line for s in incident.correlated}
    assert len(lines) == 4
    assert {line: page.count(line) for line in lines} == dict.fromkeys(lines, 1)
    assert page.index('aria-label="The key log line"') < page.index(incident.diagnosis.decisive.line)
    assert page.count("its line is shown above") == 1


def test_what_follows_a_failed_change_is_told(stage, browser, scenes):
    incident = every_state(stage, scenes)["escalated"]
    page = text(browser, f"/incidents/{incident.id}")
    assert "Why it was escalated" in page
    assert "2 remedies for the same cause were tried, and none is known to have helped" in page
    assert "approved, then not recovered" in page
    assert "2 tokens/s is of no use" in page
    assert "/decision" not in page


@pytest.mark.parametrize(("count", "said"), [(1, "1 signal; each kind"), (2, "at least 2 signals; each kind")])
def test_a_count_that_is_written_now_and_then_says_so(stage, browser, count, said):
    """The incident is written at powers of two only, so that a storm costs little; three are kept as two."""
    incident = stage.waiting()
    stage.world.store.commit(Change(incident=incident.with_(signal_count=count)))
    assert said in text(browser, f"/incidents/{incident.id}")


def test_measurements_say_what_could_not_be_measured(stage, browser, scenes):
    incident = every_state(stage, scenes)["resolved"]
    page = text(browser, f"/incidents/{incident.id}")
    assert "recovered" in page
    assert "not measured</span> <b>speed</b>: the metrics could not be read" in page
    assert "Approved by <strong>maria</strong>" in page


def test_what_the_start_printed_stands_beside_what_was_predicted(stage, browser, scenes):
    incident = every_state(stage, scenes)["resolved"]
    page = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text(browser, f"/incidents/{incident.id}")))
    assert "(vLLM 0.22.1), compared with the plan's prediction Figure Predicted Observed" in page
    assert "weights (GiB) 15.7 (+0.5%) 15.62 kv tokens 75,000 (-34.0%) 113,552 outside the predicted range" in page
    assert "num gpu blocks nothing 7,097" in page
    assert "deviates prediction : slower than predicted" in page


HOSTILE = {
    "markup": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "an attribute": '" onmouseover="alert(1)" x="',
    "a link": "see https://evil.example.com/login and http://evil.com and javascript:alert(1) //evil.com www.evil.com",
    "a template": "{{ 7*7 }} {% include '/etc/passwd' %} ${7*7}",
    "bidi": "invoice\u202egnp.exe \u2066hidden\u2069",
    "invisible": "a\u200bb\u2060c\ufeffd\U000e0041",
    "controls": "\x1b[31mred\x1b]8;;http://evil.com\x07click\x1b]8;;\x07\x07\x00\x9b2J",
    "a closing tag": "</code></pre></main><form action=//evil.com method=post><input name=x>",
    "entities": "&lt;script&gt; &#60;b&#62;",
    "accents": "Z" + "\u0301" * 200,
}


@pytest.mark.parametrize("evil", HOSTILE.values(), ids=HOSTILE.keys())
def test_text_from_outside_is_never_alive(stage, browser, scenes, evil):
    """The same text in every field that can carry it: no tag, no link, no hidden letter comes through."""
    diagnosis = scenes.memory_diagnosis(stage.clock.now())
    diagnosis = diagnosis.with_(
        root_cause=evil,
        class_=evil,
        signature=evil,
        evidence=(Evidence(signal=evil, line=evil, decisive=True), Evidence(signal="s2", line=evil)),
        fields={evil: evil},
        unknown=(evil,),
        model_word=diagnosis.model_word.with_(root_cause=evil, class_=evil, unknown=(evil,), model=evil, prompt=evil),
    )
    plan = {"why": evil, "risk_reasons": (evil,), "notes": (evil,), "undo": evil, "if_unanswered": evil}
    incident = stage.waiting(f"svc {evil}"[:253], diagnosis=diagnosis, plan=plan)
    incident = stage.said(incident, Choice.REJECT, who=evil, why=evil)
    clean = stage.waiting("clean")
    shape = [t for t, _ in outline(text(browser, f"/incidents/{clean.id}")).tags]
    plan = f"/plans/{incident.plan.id}"
    for path in (
        "/",
        f"/incidents/{incident.id}?still=1",
        plan,
        f"{plan}/answer",
    ):  # held still: without our own script
        page = text(browser, path)
        found = outline(page)
        assert not found.wrong, path
        assert {t for t, _ in found.tags} <= set(shape) | {"datalist", "option", "select", "ul"}, path
        assert not [k for _, v in found.tags for k in v if k.startswith("on")], path
        assert all(link.startswith(("/", "#", "?")) and not link.startswith("//") for link in found.links), path
        assert "://" not in page, path
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\u2060\u2066\u2069\ufeff\U000e0041]", page), path
        assert "49" not in re.findall(r"\{\{ 7\*7 \}\}|49(?= )", page) if "7*7" in evil else True
        assert "javascript:alert" not in page, path
    assert shape


def test_a_source_that_all_figures_of_a_proof_share_is_named_once(stage, browser, scenes):
    incident = stage.waiting(make=scenes.memory_plan, diagnosis=scenes.memory_diagnosis(stage.clock.now()))
    page = text(browser, f"/incidents/{incident.id}")
    assert "Source of these figures: config.json of the checkpoint" in page
    assert page.count("config.json of the checkpoint") == 1


def test_the_list_has_what_waits_first_then_what_nobody_took_on_then_open_then_ended(stage, browser, scenes):
    states = every_state(stage, scenes)
    states |= {name: stage.waiting(f"late-{name}") for name in ("one", "two")}
    page = text(browser, "/")
    order = re.findall(r"/incidents/(inc-[0-9a-f]+)", page)
    by_id = {i.id: i for i in states.values()}
    now = stage.clock.now()

    def kind(i):
        if i.phase is Phase.ASKED and now < i.plan.expires_at:
            return 0
        return 1 if i.phase is Phase.ESCALATED else 3 if i.ended else 2

    kinds = [kind(by_id[o]) for o in order]
    assert kinds == sorted(kinds)
    assert {0, 1, 2, 3} <= set(kinds)
    assert len(order) == len(states)


def test_of_the_plans_that_wait_the_soonest_to_expire_is_on_top(stage, browser):
    later = stage.waiting("a", plan={"expires_at": stage.clock.now() + timedelta(minutes=40)})
    soon = stage.waiting("b", plan={"expires_at": stage.clock.now() + timedelta(minutes=10)})
    middle = stage.waiting("c", plan={"expires_at": stage.clock.now() + timedelta(minutes=20)})
    assert re.findall(r"/incidents/(inc-[0-9a-f]+)", text(browser, "/")) == [soon.id, middle.id, later.id]


def test_an_expired_question_does_not_wait_any_more(stage, browser):
    incident = stage.waiting()
    assert "Answer by" in text(browser, "/")
    stage.clock.at = incident.plan.expires_at
    assert "Answer by" not in text(browser, "/")
    page = text(browser, f"/incidents/{incident.id}")
    assert "/decision" not in page
    assert "Nobody answered the plan by" in page


def test_the_list_is_filtered_by_service_and_by_open(stage, browser, scenes):
    every_state(stage, scenes)
    assert "s-asked" in text(browser, "/?service=s-asked")
    assert "s-open" not in text(browser, "/?service=s-asked").replace("s-opened", "")
    assert len(re.findall(r'<li class="card', text(browser, "/?service=ASK"))) == 1
    page = text(browser, "/?open=1")
    assert "<b>s-resolved</b>" not in page
    assert "<b>s-asked</b>" in page
    nothing = text(browser, "/?service=%3Cb%3Enone&open=1")
    assert "No incident matches" in nothing
    assert "<b>none" not in nothing


def test_an_empty_list_says_what_to_do(browser):
    page = text(browser, "/")
    assert "No incidents yet" in page
    assert "sre-agent replay gemma4-26b-l4-startup-probe --publish" in page
    assert 'http-equiv="refresh"' in page
    assert "sre-agent doctor" in page


def test_older_incidents_are_one_page_further(stage, browser):
    for n in range(53):
        stage.clock.step(60)
        stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting(f"svc-{n}"), Choice.APPROVE))))
    first = text(browser, "/")
    older = re.search(r'href="(/\?before=[^"]+)"', first)[1].replace("&amp;", "&")
    second = text(browser, older)
    shown = [set(re.findall(r"<b>(svc-\d+)</b>", page)) for page in (first, second)]
    assert [len(s) for s in shown] == [50, 3]
    assert not shown[0] & shown[1]


def test_many_newer_ends_hide_no_open_incident(stage, browser):
    waits = stage.waiting("patient")
    for n in range(55):
        stage.clock.step(1)
        stage.move(stage.diagnosed(stage.open(f"svc-{n}")), Phase.SELF_RECOVERED, "closed", ended_why="it closed")
    page = text(browser, "/")
    assert f"/incidents/{waits.id}" in page
    assert "<b>svc-54</b>" in page
    assert "Older incidents" in page


def test_many_newer_ends_hide_nothing_that_was_escalated_to_nobody(stage, browser):
    """It stays on the first page until somebody takes it, and is found once on the pages of its time as well."""
    escalated = stage.escalated(stage.said(stage.waiting("patient"), Choice.REJECT, why="no"))
    for n in range(55):
        stage.clock.step(1)
        stage.move(stage.diagnosed(stage.open(f"svc-{n}")), Phase.SELF_RECOVERED, "closed", ended_why="it closed")
    assert text(browser, "/").count(f'href="/incidents/{escalated.id}"') == 1
    assert f"/incidents/{escalated.id}" in text(browser, "/?service=patient")
    assert f"/incidents/{escalated.id}" not in text(browser, "/?service=svc-3")
    taken = stage.world.store.load(escalated.id).with_(assignee="ben")
    stage.world.store.commit(Change(incident=taken))
    assert f"/incidents/{escalated.id}" not in text(browser, "/")


def test_many_newer_open_incidents_hide_no_plan_that_waits_for_an_answer(stage, browser, monkeypatch):
    """Nor do escalated ones that somebody has, or that nobody has; a service's own page of the list has it too."""
    monkeypatch.setattr(find_incidents, "LOOKED_THROUGH", 3)
    asked = stage.waiting("patient")
    for n in range(4):
        stage.clock.step(1)
        stage.open(f"open-{n}")
        stage.escalated(stage.said(stage.waiting(f"escalated-{n}"), Choice.REJECT, why="no"))
    for query in ("", "?open=1", "?service=patient", "?service=pati", "?open=1&service=pati"):
        assert text(browser, f"/{query}").count(f'href="/incidents/{asked.id}"') == 1, query
    assert f"/incidents/{asked.id}" not in text(browser, "/?service=open-3")


def test_while_what_waits_cannot_be_looked_up_the_page_says_so_and_shows_the_rest(stage, browser, monkeypatch):
    """Firestore refuses a question whose index is still being built, and answers every other one."""
    asked, real = stage.waiting("gemma"), stage.world.store.incidents

    def without_index(query):
        if query.waits_in is not None:
            raise DependencyFailed("Firestore 'p' did not answer", why="FailedPrecondition: building", hint="wait")
        return real(query)

    monkeypatch.setattr(stage.world.store, "incidents", without_index)
    page = text(browser, "/")
    assert f"/incidents/{asked.id}" in page
    assert "may be missing here: Firestore &#39;p&#39; did not answer: FailedPrecondition: building" in page


@pytest.mark.parametrize("before", ["x", "2026", "2026-01-01T00:00:00", "9" * 500, "%00"])
def test_a_strange_page_is_refused_in_words(browser, before):
    assert browser.get(f"/?before={before}").status_code == 400


def test_the_page_follows_only_while_something_moves(stage, browser, scenes):
    states = every_state(stage, scenes)
    follows = {name: 'http-equiv="refresh"' in text(browser, f"/incidents/{i.id}") for name, i in states.items()}
    still = {name for name, moving in follows.items() if not moving}
    assert still == {
        "closed",
        "resolved",
        "escalated",
        "recovered",
        *(n for n in ("asked", "memory", "person") if not follows[n]),
    }
    assert not follows["memory"] or stage.clock.now() >= states["memory"].plan.expires_at
    held = text(browser, f"/incidents/{states['applying'].id}?still=1")
    assert 'http-equiv="refresh"' not in held
    assert "Auto-refresh is paused" in held


def test_a_page_with_a_form_is_never_taken_from_under_the_hands(stage, browser):
    incident = stage.waiting()
    assert 'http-equiv="refresh"' not in text(browser, f"/incidents/{incident.id}")
    assert 'http-equiv="refresh"' not in text(browser, f"/plans/{incident.plan.id}")


def test_the_rehearsal_says_so_on_every_page(stage, browser_of):
    from agent.settings import Settings

    incident = stage.waiting()
    ada = browser_of(stage.world, settings=Settings(compression=60, rehearse_by_fit=True))
    for path in ("/", f"/incidents/{incident.id}", f"/plans/{incident.plan.id}", f"/plans/{incident.plan.id}/answer"):
        page = ada.client.get(path, base_url="http://127.0.0.1:8080", follow_redirects=True).get_data(as_text=True)
        assert "Rehearsal: a simulated platform replays recorded outcomes, 60 times faster" in page
        assert "computed, not recorded" in page
    real = browser_of(stage.world)
    assert "Rehearsal" not in text(real, "/")


def test_a_kill_switch_that_was_turned_is_said_on_every_page(stage, browser):
    """Whoever is about to approve reads that nothing would be applied, and why."""
    incident = stage.waiting()
    stage.world.control.set_kill_switch(KillSwitch(on=True, by="grace", why="<b>fire</b>", at=stage.clock.now()))
    for path in ("/", f"/incidents/{incident.id}", f"/plans/{incident.plan.id}"):
        page = text(browser, path)
        assert (
            "The kill switch is on (by grace: &lt;b&gt;fire&lt;/b&gt;). No change is made meanwhile, whatever is approved"
            in page
        )
    stage.world.control.set_kill_switch(KillSwitch(on=False))
    assert "kill switch" not in text(browser, "/")


def test_an_earlier_plan_has_its_own_page_and_cannot_be_answered(stage, browser, scenes):
    incident = stage.waiting()
    first = incident.plan
    again = stage.asked(stage.said(incident, Choice.REJECT, why="no"), scenes.memory_plan)
    page = text(browser, f"/plans/{first.id}")
    assert "Rejected" in page
    assert "/decision" not in page
    assert f"/plans/{first.id}" in text(browser, f"/incidents/{again.id}")


def test_a_recurrence_links_to_the_incident_before(stage, browser):
    first = stage.waiting("a")
    second = stage.waiting("b", linked_to=first.id)
    assert f'href="/incidents/{first.id}"' in text(browser, f"/incidents/{second.id}")


@pytest.mark.parametrize(
    ("error", "status"),
    [(NoResponse, 503), (NotDeployed, 400), (StateConflict, 409), (LeaseOver, 409), (PolicyRefused, 403)],
)
def test_each_kind_of_error_has_the_status_of_its_kind(stage, browser_of, scenes, error, status):
    """Whatever it is called in particular."""

    class Failing:
        def __getattr__(self, name):
            return getattr(stage.world.store, name)

        def incidents(self, _query):
            raise error("it was not read", why="it is so", hint="look")

    answer = browser_of(scenes.another_world(stage, store=Failing())).get("/incidents")
    assert (answer.status_code, "it is so" in answer.get_data(as_text=True)) == (status, True)


def test_where_the_store_does_not_answer_the_page_says_so(stage, browser_of, scenes):
    class Down:
        def __getattr__(self, name):
            def fail(*args):
                raise DependencyFailed("the store was not read", why="the disk is gone", hint="look at the disk")

            return fail

    ada = browser_of(scenes.another_world(stage, store=Down()))
    for path in ("/", "/incidents/x", "/plans/x", "/metrics"):
        answer = ada.get(path)
        assert answer.status_code == 503
        assert "the disk is gone" in answer.get_data(as_text=True)
    assert ada.get("/healthz").status_code == 503
    assert "Press again" in ada.post("/plans/x/decision", {}).get_data(as_text=True)


def test_a_page_is_small(stage, browser, scenes):
    """A whole incident with a plan is read over a bad line: at most 40 kB."""
    incident = stage.waiting()
    assert len(browser.get(f"/incidents/{incident.id}").data) <= 40_000


def test_relative_times_read_well(stage, browser):
    incident = stage.waiting()
    stage.clock.step(timedelta(minutes=25).total_seconds())
    assert "in 4 min" in text(browser, f"/incidents/{incident.id}")


def cards(page):
    return re.findall(r"<b>([\w-]+)</b>", page)


def test_the_list_is_searched_by_words_class_and_time(stage, browser, scenes):
    stage.waiting("gemma-a")
    stage.clock.step(86_400 * 3)
    stage.waiting("gemma-b", diagnosis=scenes.memory_diagnosis(stage.clock.now()))
    assert cards(text(browser, "/?q=PROBE+startup+gemma-a")) == ["gemma-a"]
    assert cards(text(browser, "/?class=gpu_oom_weights")) == ["gemma-b"]
    assert cards(text(browser, f"/?until={scenes.START:%Y-%m-%d}")) == ["gemma-a"]
    assert cards(text(browser, f"/?since={stage.clock.now():%Y-%m-%d}&service=gemma")) == ["gemma-b"]
    nothing = text(browser, "/?q=banana&class=gpu_oom_weights")
    assert "No incident matches" in nothing
    assert "with “banana” of class gpu oom weights" in nothing


def test_a_search_keeps_what_was_typed_and_goes_on_page_by_page(stage, browser):
    for n in range(53):
        stage.clock.step(1)
        stage.open(f"svc-{n}")
    first = text(browser, "/?q=svc&since=2026-06-01")
    assert 'value="svc"' in first
    assert 'value="2026-06-01"' in first
    further = re.search(r'href="(/\?before=[^"]+)"', first)[1].replace("&amp;", "&")
    assert "q=svc" in further
    second = text(browser, further)
    assert sorted({*cards(first), *cards(second)}) == sorted(f"svc-{n}" for n in range(53))


@pytest.mark.parametrize("query", ["since=x", "until=9999-12-31", "since=2026-13-01"])
def test_a_strange_day_is_refused_in_words(browser, query):
    assert browser.get(f"/?{query}").status_code == 400


def test_the_page_of_an_incident_shows_similar_earlier_ones_and_what_helped(stage, browser):
    earlier = stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting("gemma-a"), Choice.APPROVE))))
    stage.clock.step(3600)
    page = text(browser, f"/incidents/{stage.waiting('gemma-b').id}")
    assert "Similar earlier incidents" in page
    assert f"/incidents/{earlier.id}" in page
    assert "This helped: " in page
    assert "Similar earlier incidents" not in text(browser, f"/incidents/{earlier.id}")


def test_a_page_that_is_read_every_few_seconds_does_not_look_for_similar_ones(stage, browser):
    """It reads a hundred incidents for them; whoever holds the page still, or has to decide, sees them."""
    stage.resolved(stage.verifying(stage.applying(stage.said(stage.waiting("gemma-a"), Choice.APPROVE))))
    stage.clock.step(3600)
    moving = stage.applying(stage.said(stage.waiting("gemma-b"), Choice.APPROVE))
    assert "Similar earlier incidents" not in text(browser, f"/incidents/{moving.id}")
    assert "Similar earlier incidents" in text(browser, f"/incidents/{moving.id}?still=1")


def test_an_address_that_is_looked_for_stays_as_it_was_typed(stage, browser):
    """In the fields, in the link to older ones, and where the refresh is paused; disarmed it would find nothing."""
    for n in range(53):
        stage.clock.step(1)
        stage.open(f"svc-{n}", ended_why="alice@example.com asked")
    page = text(browser, "/?q=alice%40example.com")
    assert 'value="alice@example.com"' in page
    assert 'href="?q=alice%40example.com&amp;still=1"' in page
    further = re.search(r'href="(/\?before=[^"]+)"', page)[1].replace("&amp;", "&")
    assert further.endswith("&q=alice%40example.com")
    assert sorted({*cards(page), *cards(text(browser, further))}) == sorted(f"svc-{n}" for n in range(53))
    assert 'value="bob@example.com"' in text(browser, "/?service=bob%40example.com")


def test_auto_refresh_keeps_the_search(stage, browser):
    stage.open("moving")
    page = text(browser, "/?q=moving")
    assert 'href="?q=moving&amp;still=1"' in page


def test_what_was_escalated_and_nobody_took_on_stands_in_the_first_line_and_above_the_rest(stage, browser):
    """An escalated incident has ended for the agent, and for nobody else."""
    taken = stage.escalated(stage.said(stage.waiting("s-taken"), Choice.REJECT, why="no"))
    stage.escalated(stage.said(stage.waiting("s-alone"), Choice.REJECT, why="no"))
    stage.open("s-open")
    stage.world.store.commit(Change(incident=taken.with_(assignee="Ben")))
    page = text(browser, "/")
    assert "1 escalated incident has nobody yet." in page
    assert page.index("<b>s-alone</b>") < page.index("<b>s-open</b>") < page.index("<b>s-taken</b>")


def test_nothing_is_called_over_while_an_escalated_incident_has_nobody(stage, browser):
    stage.escalated(stage.said(stage.waiting("s-alone"), Choice.REJECT, why="no"))
    page = text(browser, "/")
    assert ("1 escalated incident has nobody yet." in page, "Nothing is open." in page) == (True, False)


def test_while_the_kill_switch_is_on_no_button_approves(stage, browser):
    """An approval would be refused; to reject stays possible, and so does a task, which the agent does not carry out."""
    plan = stage.waiting("s-a").require_plan()
    assert "Approve and apply this change" in text(browser, f"/plans/{plan.id}")
    set_kill_switch(stage.world.store, stage.world.control_store(), on=True, by="ana", why="x", at=stage.clock.now())
    page = text(browser, f"/plans/{plan.id}")
    assert "An approval is refused meanwhile." in page
    assert ("Approve and apply this change" in page, "Reject this plan" in page) == (False, True)


@pytest.mark.parametrize("form", ["md", "json", "html"])
def test_each_form_is_a_download_that_the_page_links_to(stage, browser, form):
    asked = stage.waiting("s-report")
    path = f"/incidents/{asked.id}/report.{form}"
    page = browser.get(f"/incidents/{asked.id}").get_data(as_text=True)
    assert page.rindex("</details>") < page.index(f'href="{path}"')  # in sight, not folded away
    response = browser.get(path)
    assert response.status_code == 200
    assert response.headers["Content-Disposition"] == f'attachment; filename="incident-{asked.id}.{form}"'
    assert "script-src" not in response.headers["Content-Security-Policy"]
    assert asked.service in response.get_data(as_text=True)


def test_the_json_is_that_of_the_command_line(stage, browser):
    asked = stage.waiting("s-json")
    assert json.loads(browser.get(f"/incidents/{asked.id}/report.json").data)["incident"] == asked.id


@pytest.mark.parametrize("path", ["/incidents/inc-nope/report.md", "/incidents/inc-nope/report.pdf"])
def test_what_is_not_there_is_not_found(browser, path):
    assert browser.get(path).status_code == 404
