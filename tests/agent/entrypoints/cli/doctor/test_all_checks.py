"""What is deliberately broken is named, each by one finding; what is well is said to be."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cache
from pathlib import Path

import pytest

from agent.catalogue.load_bundled import load_healthy
from agent.catalogue.load_failures import load_failures
from agent.core.intake.sink_filter import sink_filters
from agent.core.service.services import parse_services
from agent.entrypoints.cli.doctor import local_machine
from agent.entrypoints.cli.doctor.all_checks import findings
from agent.entrypoints.cli.doctor.finding import State
from agent.entrypoints.http.authenticator import TOKEN_HEADER
from tests.loopback import Loopback

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[5]
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
EXAMPLE = "examples/gemma4-26b-l4-startup-probe"
SERVICES = """
[[service]]
name = "gemma"
platform = "cloud_run"
project = "example-project"
location = "us-east4"
model = "google/gemma-4-26B-A4B-it"
accelerator = "nvidia-l4"
owner = "console"
"""


class World:
    """Slack, a model endpoint and Google's interfaces on one loopback port; answers by path."""

    def __init__(self):
        self.clock = NOW
        self.headers = {"x-oauth-scopes": "chat:write,commands"}
        self.bodies = {}
        self.server = Loopback(self.reply, methods=["GET", "POST"])
        self.url = self.server.url

    def reply(self, request):
        status, body = self.answer(request.path.partition("?")[0], request.path)
        if request.path == "/kill-switch" and not request.headers.get(TOKEN_HEADER):
            status, body = 401, {}
        return status, body, {"Date": format_datetime(self.clock, usegmt=True), **self.headers}

    def answer(self, path, whole):
        for part, (status, body) in self.bodies.items():
            if part in whole:
                return status, body
        return 404, {"error": {"message": f"nothing at {path}"}}


def series(value):
    return {"timeSeries": [{"points": [{"value": {"int64Value": str(value)}}]}]}


@cache
def filters():
    """The filters that ought to stand in the sinks."""
    return sink_filters(parse_services(SERVICES), load_failures().signatures, load_healthy())


@pytest.fixture
def world():
    made = World()
    subscription = {
        "ackDeadlineSeconds": 600,
        "deadLetterPolicy": {"maxDeliveryAttempts": 20},
        "pushConfig": {"oidcToken": {"serviceAccountEmail": "sre-push@p"}},
    }
    binding = {
        "role": "projects/example-project/roles/sreServiceUpdater",
        "members": ["serviceAccount:sre-on-decision@example-project.iam.gserviceaccount.com"],
    }
    quota = {"dimensionsInfos": [{"applicableLocations": ["us-east4"], "details": {"value": "3"}}]}
    made.bodies = {
        "/v1/models": (200, {"data": [{"id": "gemma"}]}),
        "/slack/auth.test": (200, {"ok": True, "team": "T"}),
        ":getIamPolicy": (200, {"bindings": [binding]}),
        "/quotaInfos/": (200, quota),
        "/services/gemma": (200, {"name": "gemma"}),
        "/subscriptions/sre-": (200, subscription),
        "/sinks/sre-log-events-text": (200, {"filter": filters()["text"]}),
        "/sinks/sre-log-events-json": (200, {"filter": filters()["json"]}),
        "num_undelivered_messages": (200, series(0)),
        "oldest_unacked_message_age": (200, series(4)),
        "/databases/": (200, {"locationId": "us-east4"}),
        "/kill-switch": (200, {"on": False}),
    }
    yield made
    made.server.close()


@pytest.fixture
def environ(tmp_path, world, monkeypatch):
    monkeypatch.chdir(ROOT)
    (tmp_path / "services.toml").write_text(SERVICES)
    (tmp_path / "policy.toml").write_text('[[approvers]]\nname = "ada"\nemail = "ada@example.com"\n')
    return {
        "STORE": "firestore:example-project",
        "BUS": "pubsub:example-project",
        "PLATFORM": "cloud_run:example-project",
        "SERVICES": str(tmp_path / "services.toml"),
        "POLICY": str(tmp_path / "policy.toml"),
        "MODEL_ENDPOINTS": f"{world.url}/v1",
        "MODEL_NAME": "gemma",
        "SLACK_TOKEN": "xoxb-1",
        "SLACK_CHANNEL": "C1",
        "WEBHOOK_URLS": "https://hooks.example.com/a",
        "WEBHOOK_SECRETS": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "INGEST_SECRETS": "alertmanager=0123456789abcdef",
        "RECEIPT_KEY": "k" * 32,
        "DECIDE_URL": world.url,
        "ID_TOKEN_COMMAND": "echo a.b.c",
    }


def look(environ, world, token=lambda: "t", now=NOW):
    found = findings(environ, now=now, token=token, slack_base=f"{world.url}/slack", base=lambda _: world.url)
    return {finding.check: finding for finding in found}


def wrong(found):
    return [check for check, finding in found.items() if finding.state in {State.BAD, State.UNKNOWN}]


def test_an_installation_that_is_well_is_said_to_be(environ, world):
    """Everything that the list of checks promises is looked at, and good."""
    found = look(environ, world)
    assert wrong(found) == []
    heads = {check.partition(":")[0] for check in found}
    assert heads >= {
        "settings", "services", "policy", "webhooks", "ingest", "kill-switch", "traces", "model", "slack", "service", "permission",
        "quota", "subscription", "sink", "sink-lag", "dead-letters", "database", "clock",
        "decide", "decide-as-you",
    }  # fmt: skip


def in_environ(**words):
    return lambda environ, world: environ.update(words)


def in_world(part, status, body):
    return lambda environ, world: world.bodies.update({part: (status, body)})


def broken_services(environ, world):
    Path(environ["SERVICES"]).write_text('[[service]]\nname = "gemma"\n')
    world.bodies["/sinks/"] = (200, {})


def broken_policy(environ, world):
    Path(environ["POLICY"]).write_text("changes_per_hour = -1\n")


def lacking_scope(environ, world):
    world.headers = {"x-oauth-scopes": "commands"}


def clock_wrong(environ, world):
    world.clock = NOW + timedelta(minutes=10)


BREAKAGES = {
    "a setting": (in_environ(QUIET_S="ten"), "setting:QUIET_S", "QUIET_S is 'ten'"),
    "services.toml": (broken_services, "services", "platform is missing"),
    "policy.toml": (broken_policy, "policy", "changes_per_hour"),
    "webhook secret": (lambda e, w: e.pop("WEBHOOK_SECRETS"), "setting:WEBHOOK", "WEBHOOK_SECRETS"),
    "webhook address": (in_environ(WEBHOOK_URLS="http://hooks.example.com"), "webhooks", "is not https"),
    "ingest secret": (in_environ(INGEST_SECRETS="alertmanager=short"), "ingest", "too short"),
    "kill switch": (in_environ(KILL_SWITCH="on"), "kill-switch", "nothing is changed"),
    "traces": (
        in_environ(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9", OTEL_EXPORTER_OTLP_PROTOCOL="grpc"), "traces", "'grpc'"
    ),
    "model name": (in_environ(MODEL_NAME="other"), "model:", "not 'other'"),
    "model endpoint": (in_environ(MODEL_ENDPOINTS="http://127.0.0.1:9/v1"), "model:", "refused"),
    "model key": (in_world("/v1/models", 401, {}), "model:", "401"),
    "slack token": (in_world("/slack/auth.test", 200, {"ok": False, "error": "invalid_auth"}), "slack", "invalid_auth"),
    "slack scope": (lacking_scope, "slack", "chat:write"),
    "clock": (clock_wrong, "clock", "600 s behind"),
    "service": (in_world("/services/gemma", 404, {"error": {"message": "not found"}}), "service:gemma", "not found"),
    "permission": (in_world(":getIamPolicy", 200, {"bindings": []}), "permission:gemma", "may not update"),
    "quota": (
        in_world("/quotaInfos/", 200, {"dimensionsInfos": [{"details": {"value": "1"}}]}), "quota:gemma", "1 GPUs"
    ),
    "sink": (in_world("/sinks/sre-log-events-text", 200, {"filter": "x"}), "sink:example-project/text", "not that of"),
    "sink lag": (in_world("oldest_unacked_message_age", 200, series(900)), "sink-lag", "900 s"),
    "dead letters": (in_world("num_undelivered_messages", 200, series(7)), "dead-letters", "7 messages"),
    "approver": (in_world("/kill-switch", 403, {"what": "no", "why": "no approver", "hint": "x"}), "decide-as-you", "no approver"),
    "database": (in_world("/databases/sre-control", 404, {}), "database:sre-control", "404"),
}  # fmt: skip


@pytest.mark.parametrize("breakage", BREAKAGES.values(), ids=BREAKAGES.keys())
def test_each_thing_that_is_broken_is_named_alone(breakage, environ, world):
    """One breakage, one finding that names it and says what to do; nothing else is accused."""
    do, check, says = breakage
    first = dict(world.bodies)
    do(environ, world)
    world.bodies = {key: body for key, body in world.bodies.items() if body != first.get(key)} | world.bodies
    found = look(environ, world)
    named = [c for c in wrong(found) if c.startswith(check)]
    assert len(named) == 1, wrong(found)
    assert says in found[named[0]].says
    assert found[named[0]].hint
    alone = [c for c in wrong(found) if c not in named]
    assert alone == ([] if check != "services" else alone)


def test_a_subscription_with_the_wrong_deadline_is_named(environ, world):
    """The deadline that Eventarc's subscriptions have, and no dead letters: both are said in one line."""
    world.bodies = {
        "/subscriptions/sre-alerts-push": (200, {"ackDeadlineSeconds": 10, "pushConfig": {"oidcToken": {"a": 1}}})
    } | world.bodies
    found = look(environ, world)
    assert wrong(found) == ["subscription:sre-alerts-push"]
    assert found["subscription:sre-alerts-push"].says == "deadline 10 s, want 600; no dead letters"


def test_nobody_logged_in_hides_nothing_else(environ, world):
    """The cloud is unknown, never good; what can be looked at from here still is."""
    from agent.errors import DependencyFailed

    def token():
        raise DependencyFailed("the cloud was not looked at", why="no credentials", hint="log in")

    found = look(environ, world, token=token)
    assert wrong(found) == ["cloud"]
    assert found["cloud"].state is State.UNKNOWN
    assert found["slack"].state is State.GOOD


def test_a_refusal_to_look_is_not_taken_for_health(environ, world):
    """403 means that nobody knows."""
    world.bodies = {"/subscriptions/sre-alerts-push": (403, {})} | world.bodies
    assert look(environ, world)["subscription:sre-alerts-push"].state is State.UNKNOWN


def test_an_embedded_installation_needs_nothing(world, tmp_path, monkeypatch):
    """Without any setting: nothing is wrong, nothing is made, and what is not set up is said to be off."""
    monkeypatch.chdir(ROOT)
    state = tmp_path / "state"
    found = look({"STORE": f"sqlite:{state}", "PLATFORM": f"rehearsal:{EXAMPLE}"}, world)
    assert [c for c in wrong(found) if c != "clock"] == []
    assert found["cloud"].state is State.OFF
    assert not state.exists()


def test_a_key_that_others_can_read_is_named(world, tmp_path, monkeypatch):
    """Mode 0600 or it is said, with the command that mends it."""
    monkeypatch.chdir(ROOT)
    key = tmp_path / "receipt.key"
    key.write_text("k" * 64)
    key.chmod(0o644)
    found = look({"STORE": f"sqlite:{tmp_path}", "PLATFORM": f"rehearsal:{EXAMPLE}"}, world)
    assert found["receipt-key"].state is State.BAD
    assert found["receipt-key"].hint == f"chmod 600 {key}"


def test_the_form_of_the_installation_and_its_extras_are_told(monkeypatch):
    """A checkout here; the wheel says so itself (tests/infra/test_wheel.py); an extra that is missing is named."""
    assert re.fullmatch(
        r"a checkout, 0\.1\.0, Python 3\.\d+\.\d+, SQLite 3\.\d+\.\d+, Linux; .*", local_machine.installation().says
    )
    rows = ["httpcore2>=1", 'absent-package>=1; extra == "tpu"', "pytest; extra == 'mcp'"]
    monkeypatch.setattr(local_machine, "requires", lambda _: rows)
    assert local_machine.installation().says.endswith("; extras that are not installed: tpu")


def test_a_state_folder_that_cannot_be_written_is_found_before_the_start():
    """As in an image whose root is read-only and that has no volume; root may write everywhere, so a user without rights asks."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    program = (
        "import os; from pathlib import Path; from agent.entrypoints.cli.doctor import local_machine as m;"
        "from agent.settings import read_settings; os.setuid(65534);"
        "print(next(m.state_folder(read_settings({'STORE': 'sqlite:/usr/share/none/state'}))).line)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("bad      state "), done.stderr
    assert "'/usr/share' cannot be written -> set STORE=sqlite:<folder>" in done.stdout
