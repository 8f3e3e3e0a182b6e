"""A request becomes a delivery, a tick, an alert or a page; its status says whether another delivery can help."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import flask
import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Response

from agent.app import Role, build_app
from agent.app.app import Unavailable
from agent.core.decision.decision import Person
from agent.entrypoints import function_app, http_function
from agent.entrypoints.pubsub import push as door
from agent.errors import DependencyFailed, PolicyRefused, SettingsRejected
from agent.ports.bus import Outcome, Topic
from agent.ports.stage_context import Owner
from agent.ports.store import Query

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
ENTRY = (EXAMPLE / "events.jsonl").read_text().splitlines()[0].encode()
CACHED = (
    function_app.settings,
    function_app._app,
    http_function._web,
    http_function._decide_service,
    http_function._bodies,
)
TRACE = "0af7651916cd43dd8448eb211c80319c"


def request(body=b"", headers=None, *, method="POST", path="/"):
    built = EnvironBuilder(method=method, path=path, data=body, headers=headers or {})
    return flask.Request(built.get_environ())


def wrapped(data=ENTRY, message_id="1", attributes=None):
    message = {"data": base64.b64encode(data).decode(), "messageId": message_id, "attributes": attributes or {}}
    return json.dumps({"message": message, "subscription": "projects/p/subscriptions/s"}).encode()


def page(asked):
    return http_function.serve(asked, Role.CONSOLE)


def decide(asked):
    """Body, status and headers of what `decide` answers."""
    answer = http_function.serve(asked, Role.DECIDE)
    return answer.get_data(), answer.status_code, answer.headers


def post(asked):
    answer = http_function.serve(asked, Role.INGEST)
    return answer.get_data(as_text=True), answer.status_code


def pushed(body=None, topic=Topic.LOG_EVENTS, **more):
    return door.push(request(wrapped() if body is None else body, **more), topic)


@pytest.fixture(autouse=True)
def environ(monkeypatch, tmp_path):
    """An installation of its own for each test; what a process keeps is forgotten before and after."""
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    monkeypatch.setenv("PLATFORM", f"rehearsal:{EXAMPLE}")
    monkeypatch.setenv("INGEST_SECRETS", "alertmanager=0123456789abcdef")
    for cached in CACHED:
        cached.cache_clear()
    yield monkeypatch
    for cached in CACHED:
        cached.cache_clear()


class FlakyBus:
    """A bus that does not answer while it is told so."""

    def __init__(self):
        self.down = True
        self.sent = []

    def publish(self, message):
        if self.down:
            raise DependencyFailed("not sent", why="it is down", hint="later")
        self.sent.append(message)
        return str(len(self.sent))


@pytest.fixture
def flaky(monkeypatch):
    """The intake function on a bus that fails."""
    bus = FlakyBus()
    app = build_app(function_app.settings(), Role.INTAKE, bus=bus)
    monkeypatch.setattr(function_app, "_app", lambda role: app)
    bus.store = app.store
    return bus


class TestPush:
    def test_every_form_of_a_request_is_read(self):
        """Raw push body, binary and structured CloudEvent: the first opens an incident, the others say the same."""
        event = {
            "type": "google.cloud.pubsub.topic.v1.messagePublished",
            "source": "//pubsub.googleapis.com/x",
            "id": "2",
        }
        binary = {f"ce-{key}": value for key, value in event.items()} | {"Content-Type": "application/json"}
        whole = json.dumps(event | {"specversion": "1.0", "data": json.loads(wrapped())}).encode()
        assert pushed() == ("ack", 200)
        assert pushed(headers=binary) == ("ack", 200)
        assert pushed(whole, headers={"Content-Type": "application/cloudevents+json"}) == ("ack", 200)
        store = function_app.app_of(Role.INTAKE).store
        assert [i.signal_count for i in store.incidents(Query())] == [1]

    def test_a_body_that_can_never_succeed_is_kept_aside_and_acknowledged(self):
        for body in (b"", b"{", json.dumps({"message": {"messageId": "5"}}).encode(), wrapped(b"{}", "6")):
            assert pushed(body) == ("quarantined", 200)
        rows = function_app.app_of(Role.INTAKE).quarantine.rows()
        assert len(rows) == 4
        assert all(row["reason"].startswith("InputRejected") for row in rows)

    def test_a_message_larger_than_pubsub_sends_is_kept_aside(self):
        assert pushed(b"x" * 3_000_000) == ("quarantined", 200)

    def test_a_get_does_nothing(self):
        said, status = door.push(request(method="GET"), Topic.LOG_EVENTS)
        assert (status, "POST" in said) == (405, True)
        assert function_app.app_of(Role.INTAKE).quarantine.rows() == ()

    def test_it_is_acknowledged_only_after_the_commit_and_with_an_empty_outbox(self, flaky):
        """Committed but not sent: not acknowledged. The redelivery finds the signal known, sends, and acknowledges."""
        assert pushed() == ("retry", 503)
        (incident,) = flaky.store.incidents(Query())
        assert flaky.store.unsent() == (incident.id,)
        assert pushed() == ("retry", 503)
        flaky.down = False
        assert pushed() == ("ack", 200)
        assert flaky.store.unsent() == ()
        assert [m.attributes["kind"] for m in flaky.sent] == ["wake"]

    def test_a_state_that_cannot_be_opened_asks_for_another_delivery(self, monkeypatch, tmp_path):
        (tmp_path / "file").write_text("no folder")
        monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'file' / 'state'}")
        assert pushed() == ("not available, try again\n", 503)

    def test_orders_run_what_is_due_in_the_function_that_owns_it(self):
        pushed()
        (incident,) = function_app.app_of(Role.INTAKE).store.incidents(Query())
        order = wrapped(json.dumps({"kind": "wake", "incident": incident.id}).encode())
        assert pushed(order, Topic.INCIDENTS) == ("ack", 200)
        assert function_app.app_of(Role.INCIDENT).store.load(incident.id).diagnosis is not None


class TestTrace:
    def test_the_story_keeps_the_trace_in_which_it_began(self, monkeypatch):
        """The request's own at the first function; at the next one that of the message; nothing is left over."""
        seen = []
        real = function_app.app_of(Role.INTAKE)
        monkeypatch.setattr(function_app, "_app", lambda role: real)
        monkeypatch.setattr(door, "handle", lambda *_: seen.append(function_app.current_trace()) or Outcome.ACK)
        here = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
        pushed(headers=here)
        pushed(wrapped(attributes={"trace": "c" * 32}), headers=here)
        pushed(wrapped(attributes={"trace": "not a trace"}))
        assert seen == [TRACE, "c" * 32, ""]
        assert function_app.current_trace() == ""

    def test_the_log_of_a_request_names_its_trace(self, capfd):
        function_app.settings.cache_clear()
        pushed(headers={"X-Cloud-Trace-Context": f"{TRACE}/1234;o=1"})
        (event,) = [json.loads(line) for line in capfd.readouterr().err.splitlines() if "stage.finished" in line]
        assert event["logging.googleapis.com/trace"] == TRACE
        assert event["logging.googleapis.com/labels"]["origin"] == TRACE


class TestTick:
    def test_a_tick_runs_what_is_due(self):
        pushed()
        assert door.tick(request()) == ("ticked\n", 200)
        assert door.tick(request(method="GET"))[1] == 405

    def test_a_tick_that_fails_is_tried_again(self, monkeypatch, tmp_path):
        (tmp_path / "file").write_text("no folder")
        monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'file' / 'state'}")
        assert door.tick(request())[1] == 503


class TestIngest:
    def body(self):
        alert = json.loads((ROOT / "tests/data/samples/alertmanager_webhook_v4.json").read_text())
        alert["alerts"][0]["labels"]["service"] = "gemma4-26b-qat-l4"
        return json.dumps(alert).encode()

    def test_a_known_sender_is_answered_after_the_bus_has_confirmed(self):
        proof = {"Authorization": "Bearer 0123456789abcdef"}
        assert post(request(self.body(), proof, path="/alertmanager")) == ("accepted 1\n", 200)
        assert function_app.app_of(Role.INGEST).bus.waiting()[f"{Topic.ALERTS}-sub"] == 1

    def test_nobody_else_is_let_in(self):
        assert post(request(self.body(), path="/alertmanager"))[1] == 401
        assert post(request(self.body(), {"Authorization": "Bearer wrong"}, path="/azure"))[1] == 401
        assert post(request(b" " * 1_100_000, path="/alertmanager"))[1] == 413
        assert post(request(method="GET"))[1] == 405

    def test_what_the_bus_did_not_take_is_not_confirmed(self, monkeypatch):
        app = build_app(function_app.settings(), Role.INGEST, bus=FlakyBus())
        monkeypatch.setattr(function_app, "_app", lambda role: app)
        said, status = post(request(self.body(), {"X-Sre-Secret": "0123456789abcdef"}, path="/alertmanager"))
        assert (said, status) == ("not taken, try again\n", 503)


class TestConsole:
    def test_the_pages_are_shown(self):
        answer = page(request(method="GET", path="/", headers={"Host": "127.0.0.1"}))
        assert isinstance(answer, Response)
        assert answer.status_code in {200, 302, 403}

    def test_without_the_place_to_send_it_to_it_says_where_to_answer(self):
        from agent.core.decision.decision import Channel, Choice
        from agent.entrypoints.console.forwarding import Forwarding
        from agent.stages.plan_to_decision import DecisionRequest

        word = DecisionRequest(
            plan="p-1", answer=Choice.APPROVE, by=Person(who="ada", channel=Channel.CONSOLE, verified=True)
        )
        with pytest.raises(PolicyRefused, match="answer in Slack, or run: sre-agent approve p-1"):
            Forwarding(function_app.settings()).decide(word)


class TestDecide:
    def test_nobody_without_a_signature_is_heard(self):
        """No secret is set, nothing is signed, or the place does not exist: refused, and never a failure of ours."""
        assert decide(request(b"payload=%7B%7D", path="/slack/actions"))[1] == 401
        assert decide(request(b"{}", path="/webhooks/ada"))[1] in {401, 404}
        assert decide(request(b"{}", path="/elsewhere"))[1] == 404
        assert decide(request(method="GET", path="/slack/actions"))[1] == 405
        for path in ("/incidents", "/incidents/x", "/incidents/x/timeline", "/audit", "/databases", "/kill-switch"):
            assert decide(request(method="GET", path=path))[1] == 401
        json_ = {"Content-Type": "application/json"}
        assert decide(request(b'{"plan": "p-1", "answer": "approve"}', json_, path="/decisions"))[1] == 401
        assert decide(request(b'{"on": true}', json_, path="/kill-switch"))[1] == 401

    def test_who_signs_a_body_waits_for_no_code_that_reads_tokens(self):
        for path in ("/slack/actions", "/webhooks/ada", "/pagerduty/events"):
            decide(request(b"{}", path=path))
            assert http_function._web.cache_info().currsize == 1, path

    def test_no_answer_is_ever_stored(self, monkeypatch, tmp_path):
        """Refused, too large, or not available: each says so to whatever stands between."""
        for asked in (request(b"{}", path="/slack/actions"), request(b"x" * 300_000, path="/slack/actions")):
            assert decide(asked)[2]["cache-control"] == "no-store"
        (tmp_path / "file").write_text("no folder")
        monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'file' / 'state'}")
        assert decide(request(b"{}", path="/slack/actions"))[2]["cache-control"] == "no-store"

    def test_a_state_that_cannot_be_opened_is_no_answer(self, monkeypatch, tmp_path):
        (tmp_path / "file").write_text("no folder")
        monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'file' / 'state'}")
        assert decide(request(b"{}", path="/slack/actions"))[1] == 503


class TestTokens:
    """What the settings say reaches the gate: audience, own address, policy, and where keys are."""

    @pytest.fixture
    def token(self, environ, tokens, key_server, tmp_path):
        (tmp_path / "policy.toml").write_text('[[approvers]]\nname = "Ada"\nemail = "ada@example.com"\n')
        environ.setenv("POLICY", str(tmp_path / "policy.toml"))
        environ.setenv("DECIDE_URL", tokens.OURS)
        environ.setenv("ID_TOKEN_AUDIENCES", f"{tokens.OURS},{tokens.GCLOUD}")
        environ.setattr("agent.adapters.google.key_set.GOOGLE_KEYS", f"{key_server.url}/certs")
        return lambda **claims: tokens.id_token(tokens.id_claims(datetime.now(UTC), **claims))

    def look(self, token, query=""):
        asked = request(method="GET", path=f"/incidents{query}", headers={"X-Sre-Id-Token": token})
        body, status, _ = decide(asked)
        return status, json.loads(body)

    def test_an_approver_is_heard_and_the_question_is_passed_on(self, token):
        pushed()
        assert [row["phase"] for row in self.look(token())[1]] == ["OPEN"]
        assert self.look(token(), "?service=other") == (200, [])
        assert self.look(token(), "?limit=x")[0] == 400

    def test_others_are_not(self, token, tokens):
        assert self.look(token(email="eve@example.com"))[0] == 403
        assert self.look(token(aud="https://elsewhere.example"))[0] == 401
        at = tokens.seconds(datetime.now(UTC))
        assert self.look(token(iat=at - 700, exp=at + 2900))[0] == 200
        assert self.look(token(aud=tokens.GCLOUD, iat=at - 700, exp=at + 2900))[0] == 401


class TestCloudConsole:
    """A console with a cloud store, which is not reached before a page asks for it."""

    @pytest.fixture
    def cloud(self, environ):
        words = {
            "STORE": "firestore:example", "BUS": "pubsub:example", "PLATFORM": "cloud_run:example-project",
            "SERVICES": str(ROOT / "infra" / "services.example.toml"), "IAP_AUDIENCE": "/projects/1/x",
            "PUBLIC_URL": "https://sre.example.com", "DECIDE_URL": "https://decide.example", "FORM_KEY": "f" * 32,
            "GOOGLE_APPLICATION_CREDENTIALS": "/nowhere/credentials.json",  # whatever asks the store is refused at once
        }  # fmt: skip
        for name, word in words.items():
            environ.setenv(name, word)
        return environ

    def test_whoever_brings_no_assertion_sees_a_refusal_and_no_store_is_asked(self, cloud):
        answer = page(request(method="GET", path="/"))
        assert (answer.status_code, "You are not signed in" in answer.get_data(as_text=True)) == (403, True)

    def test_a_store_that_does_not_answer_has_a_page_that_says_so(self, cloud, tokens, key_server):
        """The time comes from the store too; without it there is still a page, and who asks is still checked."""
        cloud.setattr("agent.adapters.google.key_set.IAP_KEYS", f"{key_server.url}/iap")
        assertion = tokens.assertion(datetime.now(UTC), aud="/projects/1/x")
        answer = page(request(method="GET", path="/", headers={"X-Goog-IAP-JWT-Assertion": assertion}))
        assert (answer.status_code, "did not answer" in answer.get_data(as_text=True)) == (503, True)

    def test_it_serves_no_metrics(self, cloud):
        """Each instance would fold every stored incident for itself; `sre-agent up` is one process that stays."""
        assert page(request(method="GET", path="/metrics")).status_code == 404

    @pytest.mark.parametrize("missing", ["FORM_KEY", "IAP_AUDIENCE", "PUBLIC_URL"])
    def test_without_what_it_must_have_it_is_not_available(self, cloud, missing):
        cloud.delenv(missing)
        assert page(request(method="GET", path="/")).status_code == 503


class TestStarting:
    def test_settings_that_make_no_service_stop_the_start(self, monkeypatch):
        """A revision that cannot work never becomes ready; the one before it goes on."""
        monkeypatch.setenv("STORE", "oracle:x")
        with pytest.raises(SettingsRejected, match="STORE"):
            function_app.warm()

    def test_nothing_of_the_state_is_opened_before_the_first_request(self, tmp_path):
        """The web server forks after it has loaded the function."""
        function_app.warm()
        assert not (tmp_path / "state").exists()

    def test_each_owner_has_what_it_needs_and_no_more(self):
        intake, incident, decision = (function_app.app_of(r) for r in (Role.INTAKE, Role.INCIDENT, Role.DECISION))
        assert set(intake.contexts) == {Owner.INTAKE}
        assert intake.contexts[Owner.INTAKE].receipt_key is None
        assert incident.contexts[Owner.INCIDENT].receipt_key is None
        assert incident.contexts[Owner.INCIDENT].control is None
        assert decision.contexts[Owner.DECISION].receipt_key is not None
        assert decision.contexts[Owner.DECISION].control is not None
        with pytest.raises(AssertionError, match="on_log_event"):
            _ = intake.contexts[Owner.INTAKE].logs.instance_log
        assert not isinstance(incident.contexts[Owner.INCIDENT].rules.fits, Unavailable)

    def test_a_key_is_never_made_up_in_the_cloud(self):
        from agent.app.catalogues import read_receipt_key
        from agent.settings import Settings

        with pytest.raises(SettingsRejected, match="RECEIPT_KEY is unset"):
            read_receipt_key(Settings(store="firestore:p"))
