"""People with a token: one decision for one good request, a typed refusal for everything else, and nothing by mistake."""

import json
import random
import threading
from dataclasses import replace
from datetime import timedelta
from urllib.parse import quote

import pytest

from agent.adapters.store.sqlite.in_memory import InMemoryDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.app.redaction import redact
from agent.core.decision.audit import AuditRow, Soundness, verify
from agent.core.decision.decision import Channel, check_receipt
from agent.core.decision.policy import Approver, Mode, Policy, Rule
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.intake import read as intake
from agent.entrypoints.http import operators
from agent.entrypoints.http.authenticator import ASSERTION_HEADER, TOKEN_HEADER
from agent.entrypoints.http.decide_service import Workers
from agent.entrypoints.http.operator_request import BODY_LIMIT
from agent.errors import DependencyFailed
from agent.ports.decide import LIST_LIMIT
from tests.contracts import values
from tests.counts import tries
from tests.http_door import WEBS
from tests.published_http import operation

pytestmark = pytest.mark.slow

TIMES = tries(200, ci=1000, soak=1000)  # that a used token is sent


class TestDecisions:
    def test_an_approvers_word_is_one_signed_decision(self, desk, theatre):
        status, said = desk.say()
        assert (status, said["who"], said["name"], said["verified"]) == (200, "ada@example.com", "Ada", True)
        incident = desk.stage.world.store.load(desk.incident.id)
        assert (incident.phase, incident.decision.channel) == (Phase.APPROVED, Channel.COMMAND_LINE)
        check_receipt(incident.decision, desk.plan, theatre.KEY)

    def test_a_rejection_keeps_its_reason(self, desk):
        assert desk.say("reject", body={"why": "the quota is used up"})[0] == 200
        assert desk.stage.world.store.load(desk.incident.id).decision.why == "the quota is used up"

    def test_the_digest_that_was_shown_must_be_the_plans(self, desk):
        status, said = desk.say(body={"plan_digest": "0" * 64})
        assert (status, desk.phase()) == (403, Phase.ASKED)
        assert "what was shown had digest '00000000'" in said["why"]
        assert desk.say(body={"plan_digest": desk.plan.digest})[0] == 200

    @pytest.mark.parametrize(("claims", "says"), [
        ({"email": "eve@example.com"}, "names no approver with the e-mail 'eve@example.com'"),
        ({"email": "ben@example.com"}, "does not let 'Ben' decide"),
        ({"email": "U0ADA@example.com"}, "names no approver"),
    ], ids=["a stranger", "another service's approver", "a Slack id as a name"])  # fmt: skip
    def test_the_wrong_person_decides_nothing(self, desk, claims, says):
        status, said = desk.say(token=desk.token(**claims))
        assert (status, desk.phase()) == (403, Phase.ASKED)
        assert says in said["why"]
        assert desk.decisions() == []

    def test_who_asks_does_not_approve_but_may_reject(self, desks, theatre, tokens):
        """The one who started the run, under any name of theirs."""
        own = desks.Desk(theatre, tokens, asked_by="U0ADA")
        status, said = own.say()
        assert (status, own.phase()) == (403, Phase.ASKED)
        assert "who asks does not approve" in said["why"]
        assert own.say("reject")[0] == 200

    def test_an_expired_plan_is_not_decided(self, desk):
        desk.stage.clock.at = desk.plan.expires_at
        status, said = desk.say()
        assert (status, desk.phase()) == (403, Phase.ASKED)
        assert "it expired at" in said["why"]

    def test_somebody_was_faster_and_is_named(self, desk):
        assert desk.say("reject", token=desk.token(jti="a"))[0] == 200
        status, said = desk.say(token=desk.token(jti="b"))
        assert (status, desk.phase()) == (409, Phase.REJECTED)
        assert "Ada said reject through command_line" in said["why"]

    def test_the_same_again_with_a_fresh_token_is_the_same_decision(self, desk):
        first, second = (desk.say(jti=jti) for jti in "ab")
        assert first == second
        assert len(desk.decisions()) == 1

    @pytest.mark.parametrize("body", [
        b"", b"{", b"[]", b"null", b"{}", b'{"plan": "p-1"}', b'{"plan": "p-1", "answer": "maybe"}',
        b'{"plan": 1, "answer": "approve"}', b'{"plan": "p-1", "answer": "approve", "who": "ada"}',
        b'{"plan": "p-1", "answer": "approve", "answer": "reject"}', b'{"plan": "p-1\\n", "answer": "approve"}',
        b'{"plan": "../x", "answer": "approve"}', b'{"plan": "p-1", "answer": "approve", "why": NaN}',
        b'{"plan": "p-1", "answer": "approve", "plan_digest": "x"}', b"\xff", b'{"a":' * 500, b" " * (BODY_LIMIT + 1),
    ])  # fmt: skip
    def test_a_body_that_is_none_is_refused_in_words(self, desk, body):
        status, said = desk.ask("POST", "/decisions", body)
        assert status == 400
        assert said["hint"]

    def test_a_body_of_another_type_is_none(self, desk):
        for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
            assert desk.say(headers={"Content-Type": kind})[0] == 400

    def test_every_prefix_of_a_good_body_is_refused(self, desk):
        good = json.dumps({"plan": desk.plan.id, "answer": "approve", "plan_digest": desk.plan.digest}).encode()
        gate = desk.gate()
        for end in range(len(good)):
            assert desk.ask("POST", "/decisions", good[:end], gate=gate)[0] == 400
        assert desk.phase() is Phase.ASKED

    def test_a_plan_that_is_not_there_says_so(self, desk):
        status, said = desk.ask("POST", "/decisions", {"plan": "p-none-1", "answer": "approve"})
        assert (status, said["why"]) == (404, "there is none with that id")


class TestTokens:
    def test_hundreds_of_mutants_get_nobody_in(self, desk):
        """Struck out, put in, exchanged, cut, doubled, in other places: 0 accepted, 0 exceptions, 0 of 5xx."""
        dice, good, gate, answers = random.Random(11), desk.token(), desk.gate(), []
        for _ in range(tries(100, ci=600, soak=6_000)):
            made = list(good)
            place = dice.randrange(len(made))
            match dice.randrange(5):
                case 0:
                    del made[place]
                case 1:
                    made.insert(place, dice.choice("Ax9-_.= \n\0é"))
                case 2:
                    made[place] = dice.choice("ABCDEFGH".replace(made[place], ""))
                case 3:
                    made = made[:place]
                case _:
                    made = made * 2
            answers.append(desk.say(token="".join(made) or ".", gate=gate)[0])
        assert set(answers) == {401}
        assert desk.phase() is Phase.ASKED

    def test_a_token_elsewhere_proves_nothing(self, desk):
        """In Authorization, in a cookie, in the body's other words, twice: the request carries none, or too many."""
        good = desk.token()
        for headers in (
            {"Authorization": f"Bearer {good}"}, {"Cookie": f"token={good}"}, {"X-Goog-IAP-JWT-Assertion": good},
            {"X-Goog-Authenticated-User-Email": "accounts.google.com:ada@example.com"}, {"X-Forwarded-User": "ada@example.com"},
            {TOKEN_HEADER: good, TOKEN_HEADER.lower(): good}, {TOKEN_HEADER: f"Bearer {good}"},
        ):  # fmt: skip
            assert desk.say(token="", headers=headers)[0] == 401
        assert desk.say(token="", body={"assertion": good})[0] in {400, 401}
        assert desk.phase() is Phase.ASKED

    def test_a_token_and_plan_are_used_once(self, desk):
        """Many times the same request, a thousand under CI: one decision, everything else refused, across workers."""
        token, workers = desk.token(), [desk.gate() for _ in range(WEBS)]
        answers = [desk.say(token=token, gate=workers[n % WEBS])[0] for n in range(TIMES)]
        assert answers == [200] + [409] * (TIMES - 1)
        assert len(desk.decisions()) == 1

    def test_racers_with_one_token_are_one_decision(self, desk):
        token, gate, answers = desk.token(), desk.gate(), []
        racers = [
            threading.Thread(target=lambda: answers.append(desk.say(token=token, gate=gate)[0])) for _ in range(12)
        ]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        assert sorted(answers) == [200] + [409] * 11
        assert len(desk.decisions()) == 1

    def test_what_came_to_nothing_may_be_tried_again_with_the_same_token(self, desk):
        """The store was away: not recorded, and the token is not used up."""
        token, world = desk.token(), desk.stage.world

        class Away:
            def __getattr__(self, name):
                def fail(*_args, **_more):
                    raise DependencyFailed("not read", why="the disk is gone", hint="press again")

                return fail

        status, said = desk.say(token=token, gate=desk.gate(context=replace(world, store=Away())))
        assert (status, said["why"]) == (503, "the disk is gone")
        assert desk.say(token=token)[0] == 200

    def test_a_token_for_others_too_is_good_for_one_act_and_ten_minutes(self, desk):
        """Whose audience is gcloud's own can be sent on by whoever else was given it."""
        shared = desk.token(aud=desk.tokens.GCLOUD)
        assert desk.ask("POST", "/kill-switch", {"on": False}, token=shared)[0] == 200
        status, said = desk.say(token=shared)
        assert (status, said["why"]) == (409, "this token was used before")
        at = desk.tokens.seconds(desk.now())
        old = desk.token(aud=desk.tokens.GCLOUD, iat=at - 601, exp=at + 2999)
        status, said = desk.say(token=old)
        assert (status, "more than 600 s old" in said["why"]) == (401, True)
        assert desk.phase() is Phase.ASKED
        ours = desk.token(iat=at - 601, exp=at + 2999)
        assert desk.say(token=ours)[0] == 200

    def test_without_audiences_nobody_is_heard_and_is_told_which_setting(self, desk):
        gate = desk.gate()
        gate = replace(gate, authenticator=replace(gate.authenticator, audiences=()))
        status, said = desk.say(gate=gate)
        assert (status, "ID_TOKEN_AUDIENCES" in said["hint"]) == (401, True)

    def test_keys_that_cannot_be_had_are_no_yes(self, desk):
        def down(_kid):
            raise DependencyFailed("the keys were not read", why="HTTP 500", hint="try again")

        gate = desk.gate()
        assert desk.say(gate=replace(gate, authenticator=replace(gate.authenticator, google=down)))[0] == 503
        assert desk.phase() is Phase.ASKED

    def test_a_store_that_hangs_is_not_waited_for(self, desk):
        """The request is answered within its time, and the decision is not made later by whoever gave up."""
        gone, world = threading.Event(), desk.stage.world

        class Slow:
            def __getattr__(self, name):
                def wait(*args, **more):
                    gone.wait(10)
                    return getattr(world.store, name)(*args, **more)

                return wait

        gate = desk.gate(context=replace(world, store=Slow()), answer_s=0.05, workers=Workers(1))
        status, said = desk.say(gate=gate)
        assert (status, said["what"]) == (503, "the answer was not recorded")
        gone.set()
        gate.workers.within(10, lambda: None)  # the one thread has ended what it was given before
        assert desk.phase() is Phase.ASKED


class TestConsole:
    def hand_on(self, desk, assertion=None, **more):
        body = {"plan_digest": desk.plan.digest, "assertion": assertion or desk.tokens.assertion(desk.now())} | more
        return desk.say(body={k: v for k, v in body.items() if v is not ...}, token="")

    def test_the_persons_own_assertion_decides(self, desk):
        status, said = self.hand_on(desk)
        assert (status, said["who"]) == (200, "ada@example.com")
        decision = desk.stage.world.store.load(desk.incident.id).decision
        assert (decision.channel, decision.verified) == (Channel.CONSOLE, True)

    def test_an_assertion_is_used_once_for_a_plan(self, desk):
        assertion = desk.tokens.assertion(desk.now())
        assert [self.hand_on(desk, assertion)[0] for _ in range(3)] == [200, 409, 409]

    def test_no_other_assertion_does(self, desk):
        at, tokens = desk.now(), desk.tokens
        good = tokens.assertion(at)
        mutants = [good[:end] for end in range(1, len(good), 7)]
        mutants += [good[:n] + ("B" if good[n] != "B" else "C") + good[n + 1 :] for n in range(0, len(good), 5)]
        mutants += [
            tokens.assertion(at, aud="/projects/124/locations/us-central1/services/sre-console"),
            tokens.assertion(at, iss="https://accounts.google.com"), tokens.assertion(at - timedelta(hours=1)),
            tokens.assertion(at, email="eve@example.com"), desk.token(), tokens.assertion(at, private=_other_key()),
        ]  # fmt: skip
        assert {self.hand_on(desk, mutant)[0] for mutant in mutants} <= {401, 403}
        assert len(mutants) > 100
        assert desk.phase() is Phase.ASKED

    def test_it_says_which_plan_was_shown(self, desk):
        assert self.hand_on(desk, plan_digest=...)[0] == 400
        assert self.hand_on(desk, plan_digest="0" * 64)[0] == 403

    def test_without_the_proxys_audience_no_assertion_counts(self, desk):
        gate = desk.gate()
        gate = replace(gate, authenticator=replace(gate.authenticator, iap_audience=None))
        body = {"plan_digest": desk.plan.digest, "assertion": desk.tokens.assertion(desk.now())}
        assert desk.say(body=body, token="", gate=gate)[0] == 401

    def test_an_approvers_assertion_turns_the_kill_switch(self, desk):
        """On as often as one likes; off once, because whoever was given an assertion can send it on."""
        assertion = desk.tokens.assertion(desk.now())
        said = [
            desk.ask("POST", "/kill-switch", {"on": on, "why": "fire", "assertion": assertion}, token="")[0]
            for on in (True, True, False, True, False)
        ]
        assert said == [200, 200, 200, 200, 409]
        assert (desk.stage.world.control.kill_switch().on, desk.stage.world.control.kill_switch().by) == (
            True,
            "ada@example.com",
        )

    @pytest.mark.parametrize("who", ["eve@example.com", None], ids=["nobody's approver", "not signed by the proxy"])
    def test_nobody_elses_assertion_turns_it(self, desk, who):
        assertion = desk.tokens.assertion(desk.now(), email=who) if who else desk.token()
        body = {"on": True, "assertion": assertion}
        assert desk.ask("POST", "/kill-switch", body, token="")[0] in {401, 403}
        assert not desk.stage.world.control.kill_switch().on

    def test_an_assertion_looks_at_the_switch_and_an_approvers_at_the_rest(self, desk):
        """Every visitor of the console reads on every page whether changes are stopped; the record is for approvers."""
        ada, eve = (
            {ASSERTION_HEADER: desk.tokens.assertion(desk.now(), email=who)}
            for who in ("ada@example.com", "eve@example.com")
        )
        looked = [
            desk.ask("GET", path, token="", headers=who)[0]
            for path in ("/kill-switch", "/audit", "/databases", "/incidents")
            for who in (ada, eve)
        ]
        assert looked == [200, 200, 200, 403, 200, 403, 200, 403]
        assert desk.ask("GET", "/kill-switch", token="", headers={ASSERTION_HEADER: desk.token()})[0] == 401


class TestKillSwitch:
    def test_an_approver_turns_it_and_the_record_says_so(self, desk):
        status, said = desk.ask("POST", "/kill-switch", {"on": True, "why": "it burns"})
        assert (status, said["on"], said["by"], said["why"]) == (200, True, "ada@example.com", "it burns")
        assert desk.ask("GET", "/kill-switch")[1]["on"] is True
        assert desk.ask("POST", "/kill-switch", {"on": False})[1]["on"] is False
        rows = desk.stage.world.control.audit()
        assert [(row.kind, row.who, row.body) for row in rows] == [
            ("kill_switch.on", "ada@example.com", "it burns"),
            ("kill_switch.off", "ada@example.com", ""),
        ]

    def test_a_secret_in_the_reason_is_neither_kept_nor_recorded(self, desk):
        secret = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH"
        world = desk.stage.world
        gate = desk.gate(context=replace(world, rules=replace(world.rules, redact=redact)))
        said = desk.ask("POST", "/kill-switch", {"on": True, "why": f"leaked {secret}"}, gate=gate)[1]
        control = world.control
        kept = (said["why"], control.kill_switch().why, control.audit()[-1].body)
        assert all(text.startswith("leaked [redacted:") for text in kept), kept

    def test_any_approver_may_whatever_their_services_and_nobody_else(self, desk):
        assert desk.ask("POST", "/kill-switch", {"on": True}, token=desk.token(email="ben@example.com"))[0] == 200
        assert desk.ask("POST", "/kill-switch", {"on": False}, token=desk.token(email="eve@example.com"))[0] == 403
        assert desk.stage.world.control.kill_switch().on

    def test_a_token_for_us_alone_turns_it_as_often_as_is_needed(self, desk):
        """A machine's own token is kept for an hour, and an hour can bring more than one alarm."""
        token = desk.token()
        turned = [desk.ask("POST", "/kill-switch", {"on": on}, token=token)[1]["on"] for on in (True, False) * 2]
        assert turned == [True, False, True, False]

    def test_on_can_be_said_again_and_again_with_one_token(self, desk):
        shared = desk.token(aud=desk.tokens.GCLOUD)
        assert [desk.ask("POST", "/kill-switch", {"on": True}, token=shared)[0] for _ in range(3)] == [200] * 3

    @pytest.mark.parametrize("body", [{}, {"on": "yes"}, {"on": 1}, {"on": None}, {"on": True, "by": "ada"}, []])
    def test_what_says_neither_on_nor_off_turns_nothing(self, desk, body):
        assert desk.ask("POST", "/kill-switch", body)[0] == 400
        assert desk.stage.world.control.audit() == ()

    def test_it_goes_on_only_once_the_record_says_so_but_stops_at_once(self, desk):
        class Unwritten(type(desk.stage.world.control)):
            def append(self, **_more):
                raise DependencyFailed("not written", why="the disk is full", hint="later")

        control = Unwritten(InMemoryDatabase(Kind.CONTROL))
        gate = desk.gate(context=replace(desk.stage.world, control=control))
        assert desk.ask("POST", "/kill-switch", {"on": True}, gate=gate)[0] == 503
        assert control.kill_switch().on
        assert desk.ask("POST", "/kill-switch", {"on": False}, gate=gate)[0] == 503
        assert control.kill_switch().on


NAMELESS = {
    "plan": ("/decisions", {"plan": "p-none-1", "answer": "approve"}),
    "request": ("/requests/withdraw", {"request": "rq-000000000000", "why": "not needed"}),
    "incident": ("/commands", {"incident": "inc-none", "command": "acknowledge"}),
    "sweep": ("/sweeps/decisions", {"sweep": "sweep-000000", "answer": "reject"}),
}


@pytest.mark.parametrize(("path", "body"), NAMELESS.values(), ids=NAMELESS)
def test_what_does_not_exist_is_404_with_what_to_do(desk, path, body):
    """The body was understood; nothing has the ID that it names, which another body of that form does not change."""
    status, said = desk.ask("POST", path, body)
    assert (status, set(said)) == (404, {"error", "what", "why", "hint"})


@pytest.mark.parametrize("path", ["/decisions", "/kill-switch", "/webhooks/pager", "/slack/actions"])
def test_a_body_that_is_too_large_is_413_and_never_a_failure_of_ours(desk, path):
    """Where what serves the application lets more through than it takes."""
    assert desk.ask("POST", path, b" " * (intake.BODY_LIMIT + 1))[0] == 413


class TestLooking:
    def test_an_approver_reads_what_the_command_line_shows(self, desk):
        status, rows = desk.ask("GET", "/incidents", query="open=1&limit=5")
        assert (status, [Incident.model_validate(row).id for row in rows]) == (200, [desk.incident.id])
        assert desk.ask("GET", "/incidents", query="service=other")[1] == []
        whole = desk.ask("GET", f"/incidents/{desk.incident.id}")[1]
        assert Incident.model_validate(whole) == desk.stage.world.store.load(desk.incident.id)
        events = desk.ask("GET", f"/incidents/{desk.incident.id}/timeline")[1]
        assert tuple(Event.model_validate(e) for e in events) == desk.stage.world.store.timeline(desk.incident.id)

    def test_no_more_are_sent_than_the_published_maximum(self, desk, monkeypatch):
        """Our own clients may ask for more and get what there is to get; the document names no more than is sent."""
        (limit,) = [asked for asked in operation("GET", "/incidents")["parameters"] if asked["name"] == "limit"]
        assert limit["schema"]["maximum"] == LIST_LIMIT
        monkeypatch.setattr(operators, "LIST_LIMIT", 2)
        for number in range(3):
            desk.stage.world.store.commit(values.change(values.incident(f"inc-{number}")))
        assert [len(desk.ask("GET", "/incidents", query=f"limit={n}")[1]) for n in (1, 2, 3, 1000)] == [1, 2, 2, 2]

    def test_a_list_goes_on_page_by_page(self, desk):
        for number in range(4):
            opened = values.T0 + timedelta(seconds=number)
            desk.stage.world.store.commit(values.change(values.incident(f"inc-{number}", opened_at=opened)))
        asked = f"service=gemma&since={quote(values.T0.isoformat())}"
        first = desk.ask("GET", "/incidents", query=f"{asked}&limit=3")[1]
        assert [row["id"] for row in first] == ["inc-3", "inc-2", "inc-1"]
        before = quote(first[-1]["opened_at"])
        assert [row["id"] for row in desk.ask("GET", "/incidents", query=f"{asked}&before={before}")[1]] == ["inc-0"]
        assert desk.ask("GET", "/incidents", query="before=yesterday")[0] == 400

    def test_the_record_arrives_sound(self, desk):
        desk.say("reject")
        desk.ask("POST", "/kill-switch", {"on": True, "why": "x"})
        status, rows = desk.ask("GET", "/audit", query="limit=5000")
        found = verify([AuditRow.model_validate(row) for row in rows])
        assert (status, found.soundness, found.number) == (200, Soundness.SOUND, 2)

    @pytest.mark.parametrize("query", ["before=0", "before=x", "run=live", "limit=5001", "before=99999999999999999999"])
    def test_a_strange_piece_of_the_record_is_refused(self, desk, query):
        assert desk.ask("GET", "/audit", query=query)[0] == 400

    @pytest.mark.parametrize(
        "path",
        ["/incidents", "/incidents/{}", "/incidents/{}/timeline", "/audit", "/kill-switch", "/services/{}/changes"],
    )
    def test_nobody_else_reads_anything(self, desk, path):
        place = path.format(desk.incident.id)
        for token, status in (("", 401), ("x.y.z", 401), (desk.token(email="eve@example.com"), 403)):
            answer = desk.ask("GET", place, token=token)
            assert answer[0] == status
            assert desk.incident.service not in json.dumps(answer[1])

    def test_when_changes_began_is_told_for_the_limits(self, desk):
        began = desk.now() - timedelta(minutes=5)
        desk.stage.world.control.begin(values.intent(service="gemma", applied_at=began))
        since = quote((began - timedelta(minutes=1)).isoformat())
        status, told = desk.ask("GET", "/services/gemma/changes", query=f"since={since}")
        assert (status, told["services"], len(told["service_changes"])) == (200, ["gemma"], 1)
        assert desk.ask("GET", "/services/other/changes", query=f"since={since}")[1]["service_changes"] == []
        for query in ("", "since=yesterday", "since=2026-11-21T03:00:00", f"since={since}&more=1"):
            assert desk.ask("GET", "/services/gemma/changes", query=query)[0] == 400
        assert desk.ask("GET", "/services/gem%20ma/changes", query=f"since={since}")[0] == 404

    @pytest.mark.parametrize(
        "query", ["limit=0", "limit=x", "limit=9999999", "colour=red", "open=maybe", "a&b", "limit"]
    )
    def test_a_strange_question_is_refused(self, desk, query):
        assert desk.ask("GET", "/incidents", query=query)[0] == 400

    @pytest.mark.parametrize(("method", "path", "status"), [
        ("GET", "/decisions", 405), ("PUT", "/decisions", 405), ("DELETE", "/kill-switch", 405), ("POST", "/audit", 405),
        ("POST", "/incidents", 405), ("HEAD", "/audit", 405), ("OPTIONS", "/decisions", 405), ("GET", "/incidents/a/b", 404),
        ("GET", "/incidentsx", 404), ("GET", "/incidents/..%2Fx", 404), ("GET", "/audit/1", 404), ("POST", "/decisions/p-1", 404),
        ("GET", "/incidents/none", 404), ("GET", "/incidents/none/timeline", 404),
    ])  # fmt: skip
    def test_other_methods_and_places_do_nothing(self, desk, method, path, status):
        assert desk.ask(method, path)[0] == status
        assert desk.phase() is Phase.ASKED

    def test_readers_take_nothing_from_those_who_decide(self, desk):
        """Four readers hang; a decision goes through."""
        gone, world = threading.Event(), desk.stage.world

        class Slow:
            def incidents(self, _query):
                gone.wait(10)
                return ()

        def slow(name):
            return getattr(world.store, name)

        store = Slow()
        for name in ("plan", "load", "commit", "sent", "outbox", "latest_time", "mark", "first_mark", "reach"):
            setattr(store, name, slow(name))
        gate = desk.gate(context=replace(world, store=store), read_s=0.05, workers=Workers(1))
        for _ in range(4):
            status, said = desk.ask("GET", "/incidents", gate=gate)
            assert (status, said["what"]) == (503, "nothing was read")
        assert desk.say(gate=gate)[0] == 200
        gone.set()


def test_beside_the_local_console_there_is_no_such_place(desk):
    """Without proofs the deciding function knows Slack and webhooks alone."""
    assert (
        desk.ask("POST", "/decisions", {"plan": "p-1", "answer": "approve"}, gate=desk.gate(authenticator=None))[0]
        == 404
    )


def _other_key():
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


class TestVotes:
    """Where two people must approve, through the door of people with a token."""

    PEOPLE = (
        Approver(name="Ada", email="ada@example.com", services=("gemma4-*",)),
        Approver(name="Ben", email="ben@example.com", services=("gemma4-*",)),
    )
    RULE = Rule(services=("gemma4-*",), kinds=("*e*",), mode=Mode.PERSON, approvals=2)

    @pytest.fixture
    def two(self, desks, theatre, tokens):
        policy = Policy(approvers=self.PEOPLE, rules=(self.RULE,))
        desk = desks.Desk(theatre, tokens, policy=policy.digest)
        desk.stage.world = replace(desk.stage.world, rules=replace(desk.stage.world.rules, policy=policy))
        return desk

    def test_the_answer_says_whether_the_plan_is_decided(self, two):
        status, said = two.say(jti="1")
        assert (status, said["decided"], two.phase()) == (200, False, Phase.ASKED)
        status, said = two.say(body={"withdraw": True, "why": "wrong one"}, jti="2")
        assert (status, said["withdrawn"], two.phase()) == (200, True, Phase.ASKED)
        two.say(jti="3")
        ben = two.token(email="ben@example.com", jti="4")
        status, said = two.say(token=ben)
        assert (status, said["decided"], said["name"], two.phase()) == (200, True, "Ada and Ben", Phase.APPROVED)

    def test_after_the_decision_nothing_is_taken_back(self, two):
        two.say(jti="1")
        two.say(token=two.token(email="ben@example.com", jti="2"))
        status, said = two.say(body={"withdraw": True}, jti="3")
        assert (status, "the plan is decided: approve" in said["why"]) == (409, True)
