"""A console without a key hands answers on to `decide`: two real web servers, and the person's assertion between them."""

import re
import socket
import threading
from dataclasses import replace

import pytest
import requests
from werkzeug.serving import make_server

from agent.adapters.google.key_set import KeySet
from agent.core.decision.decision import Channel, Person
from agent.core.incident.command import Command
from agent.core.incident.phase import Phase
from agent.entrypoints.console.app import make_app
from agent.entrypoints.console.forwarding import Forwarding
from agent.entrypoints.console.identity import ASSERTION, IapPerson
from agent.errors import DependencyFailed, PolicyRefused, SettingsRejected
from agent.ports.stage_context import Owner
from agent.settings import Settings
from agent.stages.incident_command import CommandRequest

ORIGIN = "https://sre.example.com"


class Front:
    """The console as the cloud has it: it reads the same store, and holds neither key nor control store."""

    def __init__(self, desk, key_server, decide_url, *, form_key="f" * 32):
        settings = Settings(
            store="firestore:p", bus="pubsub:p", platform="cloud_run:p", iap_audience=desk.tokens.IAP, public_url=ORIGIN,
            decide_url=decide_url, form_key=form_key,
        )  # fmt: skip
        clock = desk.stage.clock
        world = replace(desk.stage.world, owner=Owner.INTAKE, receipt_key=None, control=None)
        keys = KeySet(clock, url=f"{key_server.url}/iap", holder="Identity-Aware Proxy")
        identity = IapPerson(audience=desk.tokens.IAP, keys=keys, clock=clock)
        to = Forwarding(settings)
        hands_on = {"ask": to.ask, "withdraw": to.withdraw, "carry_out": to.carry_out}
        app = make_app(world, settings=settings, identity=identity, decide=to.decide, **hands_on)
        self._server = make_server("127.0.0.1", 0, app, threaded=True)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.desk, self.session, self.cookie = desk, requests.Session(), ""

    def get(self, path, **headers):
        assertion = headers.pop("assertion", None) or self.desk.tokens.assertion(self.desk.now())
        sent = {ASSERTION: assertion, "Cookie": f"sre-console={self.cookie}"} | headers
        answer = self.session.get(self.url + path, headers=sent, allow_redirects=False)
        found = re.search(r"sre-console=([^;]+)", answer.headers.get("Set-Cookie", ""))
        self.cookie = found[1] if found else self.cookie
        return answer

    def form(self, answer, *, person="ada@example.com"):
        """The hidden fields of the page's form."""
        assertion = self.desk.tokens.assertion(self.desk.now(), email=person)
        page = self.get(f"/plans/{self.desk.plan.id}", assertion=assertion).text
        forms = re.findall(r"<form method=\"post\".*?</form>", page, re.DOTALL)
        fields = [dict(re.findall(r'name="(\w+)" value="([^"]*)"', form)) for form in forms]
        return next(f for f in fields if f.get("answer") == answer)

    def post(self, fields, *, assertion=None, why="not now", to=None):
        given = assertion or self.desk.tokens.assertion(self.desk.now())
        sent = {ASSERTION: given, "Origin": ORIGIN, "Cookie": f"sre-console={self.cookie}"}
        data = fields | ({"why": why} if fields["answer"] == "reject" else {})
        place = f"{(to or self).url}/plans/{self.desk.plan.id}/decision"
        return self.session.post(place, data=data, headers=sent, allow_redirects=False)

    def send(self, fields, *, person="ada@example.com", to=""):
        """Fill in the first form of a page and send it; fields name the page, and what is typed."""
        page, typed = fields
        form = re.search(rf'<form method="post" action="([^"]+{to})".*?</form>', self.get(page).text, re.DOTALL)
        given = self.desk.tokens.assertion(self.desk.now(), email=person)
        sent = {ASSERTION: given, "Origin": ORIGIN, "Cookie": f"sre-console={self.cookie}"}
        data = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form[0])) | typed
        return self.session.post(self.url + form[1], data=data, headers=sent, allow_redirects=False)

    def close(self):
        self.session.close()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def front(desk, served, key_server):
    made = Front(desk, key_server, served.url)
    yield made
    made.close()


def test_an_answer_in_the_console_is_a_decision_of_decide(front, desk, served):
    answered = front.post(front.form("approve"))
    assert (answered.status_code, desk.phase()) == (303, Phase.APPROVED)
    decision = desk.stage.world.store.load(desk.incident.id).decision
    assert (decision.who, decision.channel, decision.verified) == ("ada@example.com", Channel.CONSOLE, True)
    assert served.asked == [("POST", "/decisions")]
    page = front.get(answered.headers["Location"])
    assert (page.status_code, "Approved by Ada at" in page.text) == (200, True)


def test_a_rejection_brings_its_reason(front, desk):
    assert front.post(front.form("reject"), why="the quota is used up").status_code == 303
    assert desk.stage.world.store.load(desk.incident.id).decision.why == "the quota is used up"


def test_a_request_of_the_console_is_recorded_and_withdrawn_by_decide(desk, desks, key_server):
    """The console holds no key and no control store: the person's own assertion says whose word it is."""
    desk.watch("gemma4-asked")
    served = desks.Served(desk, key_server)
    front = Front(desk, key_server, served.url)
    asked = front.send(("/services/gemma4-asked", {"set_flag": "max-model-len=4096", "why": "longer"}))
    request = asked.headers["Location"].rpartition("/")[2]
    page = f"/incidents/{request}"
    assert (
        "/withdrawal" not in front.get(page, assertion=desk.tokens.assertion(desk.now(), email="ben@example.com")).text
    )
    assert front.send((page, {"why": ""}), person="ben@example.com", to="/withdrawal").status_code == 403
    assert desk.stage.world.store.load(request).phase is Phase.OPEN
    assert front.send((page, {"why": ""}), to="/withdrawal").status_code == 303
    life = desk.stage.world.store.load(request)
    assert (life.phase, life.ended_why) == (Phase.WITHDRAWN, "ada@example.com took it back: no reason given")
    assert served.asked == [("POST", "/requests"), ("POST", "/requests/withdraw")]
    front.close()
    served.close()


def test_every_instance_takes_the_forms_of_the_others(front, desk, served, key_server):
    """The form was shown by one and is posted to another: the same key signs both. With another key it is not taken."""
    fields = front.form("approve")
    stranger = Front(desk, key_server, served.url, form_key="g" * 32)
    other = Front(desk, key_server, served.url)
    refused = front.post(fields, to=stranger)
    assert (refused.status_code, served.asked) == (403, [])
    assert front.post(fields, to=other).status_code == 303
    assert desk.phase() is Phase.APPROVED
    stranger.close()
    other.close()


def test_without_a_form_key_no_console_starts_in_the_cloud(desk, served, key_server):
    with pytest.raises(SettingsRejected, match="FORM_KEY is unset"):
        Front(desk, key_server, served.url, form_key=None)


def test_the_consoles_own_checks_stay(front, desk, served):
    """A form of another origin, person or browser goes nowhere."""
    fields = front.form("approve")
    tokens, at = desk.tokens, desk.now()
    assert front.post(fields, assertion=tokens.assertion(at, email="ben@example.com")).status_code == 403
    assert front.post(fields | {"token": "0" * 64}).status_code == 403
    assert front.post(fields, assertion="x.y.z").status_code == 403
    front.cookie = "c" * 24
    assert front.post(fields).status_code == 403
    assert served.asked == []
    assert desk.phase() is Phase.ASKED


def test_decide_believes_the_proxy_and_not_the_console(front, desk, served, key_server):
    """A console that was taken over names whom it likes; without that person's own assertion nothing is decided."""
    forged = {"plan": desk.plan.id, "answer": "approve", "plan_digest": desk.plan.digest, "who": "ada@example.com"}
    headers = {"X-Goog-Authenticated-User-Email": "accounts.google.com:ada@example.com", ASSERTION: "x.y.z"}
    for body in (forged, {k: v for k, v in forged.items() if k != "who"}, forged | {"assertion": "x.y.z"}):
        assert requests.post(f"{served.url}/decisions", json=body, headers=headers, timeout=10).status_code in {
            400,
            401,
        }
    assert desk.phase() is Phase.ASKED


def test_somebody_was_faster(front, desk):
    fields = front.form("approve")
    assert desk.say("reject", token=desk.token(jti="ben"))[0] == 200
    answered = front.post(fields)
    assert (answered.status_code, "Ada was faster" in answered.text) == (409, True)


def test_a_double_click_is_one_decision(front, desk):
    fields, assertion = front.form("approve"), desk.tokens.assertion(desk.now())
    answers = [front.post(fields, assertion=assertion) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [303, 200, 200]
    assert all("Approved by Ada at" in answer.text for answer in answers[1:])
    assert len(desk.decisions()) == 1


def test_an_answer_that_was_recorded_before_its_word_was_lost_is_shown_as_recorded(front, desk, served):
    """`decide` recorded it and could not say so: the page looks into the store before it says that it was not."""
    fields, hear = front.form("approve"), served.gate.workers

    class Mute:
        def within(self, seconds, work, **more):
            hear.within(seconds, work, **more)
            raise DependencyFailed("the answer was not recorded", why="the line broke", hint="press again")

    served.gate = replace(served.gate, workers=Mute())
    answered = front.post(fields)
    assert (answered.status_code, "Approved by Ada at" in answered.text) == (200, True)


def test_an_expired_plan_is_answered_with_its_page(front, desk):
    fields = front.form("approve")
    desk.stage.clock.at = desk.plan.expires_at
    answered = front.post(fields)
    assert (answered.status_code, "This plan has expired" in answered.text) == (410, True)


def test_where_the_policy_of_decide_says_no_its_words_are_shown(front, desk, served):
    """The console was told an older policy: what `decide` says counts."""
    fields = front.form("approve")
    known = desk.stage.world.rules
    nobody = replace(known, policy=known.policy.with_(approvers=()))
    served.gate = replace(served.gate, context=replace(served.gate.context, rules=nobody))
    answered = front.post(fields)
    assert (answered.status_code, desk.phase()) == (403, Phase.ASKED)
    assert "names no approver with the e-mail" in answered.text


def test_a_decide_that_does_not_answer_is_not_recorded_and_may_be_pressed_again(front, desk, served, key_server):
    """Nobody listens; then it hangs up without a word. Afterwards the same form still decides."""
    fields = front.form("approve")
    with socket.create_server(("127.0.0.1", 0)) as dead:

        def hang_up():
            connection, _ = dead.accept()
            connection.recv(65536)
            connection.close()

        silent = Front(desk, key_server, f"http://127.0.0.1:{dead.getsockname()[1]}")
        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        lost = front.post(fields, to=silent)
        thread.join(10)
    gone = front.post(fields, to=silent)
    silent.close()
    assert (lost.status_code, gone.status_code) == (503, 503)
    assert "Nobody knows whether your answer was recorded" in lost.text
    assert "Nothing was changed" not in lost.text
    assert "Your answer was not recorded" in gone.text
    for answered in (lost, gone):
        assert "a plan takes one answer only, however often it is pressed" in answered.text
    assert front.post(fields).status_code == 303
    assert desk.phase() is Phase.APPROVED


def test_what_is_done_about_an_incident_is_done_by_decide(front, desk, served):
    """By whom the assertion proves; where `decide` refuses, its words are on the page."""
    page = f"/incidents/{desk.incident.id}"
    assert front.send((page, {}), to="/commands").status_code == 303
    act = desk.stage.world.store.load(desk.incident.id).acknowledged
    assert (act.who, act.name, act.verified, act.channel) == ("ada@example.com", "Ada", True, Channel.CONSOLE)
    assert served.asked == [("POST", "/commands")]
    refused = front.send((page, {"command": "close", "text": "over"}), to="/commands")
    assert (refused.status_code, "It is ASKED" in refused.text) == (403, True)


def test_without_an_address_of_decide_nothing_is_done(desk):
    asked = CommandRequest(
        incident=desk.incident.id,
        command=Command.ACKNOWLEDGE,
        by=Person(who="ada", channel=Channel.CONSOLE, verified=True),
    )
    with pytest.raises(PolicyRefused, match="DECIDE_URL is unset"):
        Forwarding(Settings()).carry_out(asked)
