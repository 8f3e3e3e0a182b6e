"""A change that is asked for in the cloud: signed by `decide`, planned, approved by another person, made once, verified.

Cloud Run speaks its own wire; console and `decide` are web servers of their own, and people come with their tokens.
"""

import html
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests

from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app import build_app_in_memory
from agent.app.catalogues import read_services
from agent.app.runtime_environment import RuntimeEnvironment, open_environment
from agent.core.decision.decision import Channel
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.cli.commands import change
from agent.entrypoints.cli.main import main
from agent.entrypoints.http.authenticator import TOKEN_HEADER
from agent.ports.store import Query
from agent.settings import read_settings
from tests import google_tokens
from tests.contracts import cloud_run_world as worlds
from tests.journeys.cloud_doors import ADA, BEN, Cloud
from tests.journeys.conftest import Journey

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gemma4-26b-l4-context-refused"
SERVICE = "gemma4-26b-qat-l4"
LONGER = ("--set-flag", "max-model-len=32768", "--why", "longer documents")


class Region(Cloud):
    """The doors of the cloud in front of a service on Cloud Run's wire that serves."""

    posted = 0

    def __init__(self, folder):
        folder.mkdir()
        scenario = load_scenario(EXAMPLE / "scenario.toml")
        clock = SteppedClock(datetime(2026, 11, 22, 3, 0, tzinfo=UTC))
        body = worlds.body_of(SERVICE, scenario.live.config, ready=True)
        self.world = worlds.CloudRunWorld(SERVICE, recorded=body, watch=clock)
        platform = self.world.open()
        settings = read_settings({}, platform=f"rehearsal:{EXAMPLE}")
        logs = open_environment(settings.with_(store=f"sqlite:{folder}"), read_services(settings), clock).logs
        environment = RuntimeEnvironment(platform_of=lambda _: platform, logs=logs)
        super().__init__(
            Journey(build_app_in_memory(settings, clock=clock, state=folder, environment=environment), clock)
        )

    def post_to_decide(self, body):
        """A program's post with Ada's own token: status and answer."""
        self.posted += 1
        token = google_tokens.id_token(google_tokens.id_claims(self.told.clock.now(), jti=str(self.posted)))
        told = requests.post(f"{self.decide_url}/requests", json=body, headers={TOKEN_HEADER: token}, timeout=10)
        return told.status_code, told.text

    def requests(self):
        return self.told.installation.store.incidents(Query(service=SERVICE))

    def reach(self, *phases):
        """Let time go by until the one request is in one of the phases."""
        for _ in range(400):
            (life,) = self.requests()
            if life.phase in phases:
                return life
            self.told.go(20, step=20)
        raise AssertionError((life.phase, life.ended_why))

    def close(self):
        super().close()
        self.world.close()


@pytest.fixture
def cloud(tmp_path):
    made = Region(tmp_path / "installation")
    yield made
    made.close()


@pytest.fixture
def operator(cloud, tmp_path, monkeypatch, capsys):
    """A command line on a laptop: where `decide` is, whose token, and nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(change, "WAIT_S", 0.0)
    for name in ("STORE", "PLATFORM", "SERVICES", "POLICY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DECIDE_URL", cloud.decide_url)

    def run(*words, who=ADA.email):
        token = google_tokens.id_token(google_tokens.id_claims(cloud.told.clock.now(), email=who, sub=who))
        monkeypatch.setenv("ID_TOKEN_COMMAND", shlex.join([sys.executable, "-c", f"print({token!r})"]))
        code = main(list(words))
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def made_once(cloud):
    """Whether exactly the flag that was asked for was sent, once, and serves."""
    live = cloud.world.open().describe(SERVICE)
    args = " ".join(live.config.args).replace("=", " ")
    return len(cloud.world.stand_in.updates) == 1 and "--max-model-len 32768" in args and live.ready


def test_asked_for_in_the_console_it_ends_in_a_service_that_serves(cloud):
    """The console signs nothing: the asker's assertion goes on to `decide`; who asks has no button to approve it."""
    answer = cloud.ask(SERVICE, set_flag="max-model-len=32768", why="longer documents")
    assert answer.status_code == 303, answer.text
    asked = cloud.reach(Phase.ASKED)
    assert answer.headers["Location"] == f"/incidents/{asked.id}"
    held = cloud.told.installation.control.change_request(asked.id)
    assert (held.asker, held.verified, held.channel) == (ADA.email, True, Channel.CONSOLE)
    assert asked.plan.proof == "computed"
    assert "approve" not in [form.get("answer") for form in cloud.forms(f"/plans/{asked.plan.id}", ADA.email)[0]]
    assert cloud.press(asked.plan, "approve", who=BEN.email) == 303
    assert cloud.reach(Phase.RESOLVED, Phase.CLOSED, Phase.ESCALATED).phase is Phase.RESOLVED
    assert made_once(cloud)


def test_asked_for_on_the_command_line_it_does_too(cloud, operator):
    """Typed twice it is one request; the asker's own token approves nothing."""
    assert operator("change", SERVICE, *LONGER)[0] == 0
    assert operator("change", SERVICE, *LONGER)[0] == 0
    asked = cloud.reach(Phase.ASKED)
    code, _, err = operator("approve", asked.plan.id)
    assert (code, "who asks does not approve" in err) == (2, True), err
    assert operator("approve", asked.plan.id, who=BEN.email)[0] == 0
    assert cloud.reach(Phase.RESOLVED, Phase.CLOSED, Phase.ESCALATED).phase is Phase.RESOLVED
    assert made_once(cloud)


def test_what_is_refused_in_the_console_comes_back_as_it_was_typed(cloud):
    """`decide` says why; the page that it comes back to is the same form."""
    answer = cloud.ask(SERVICE, set_flag="api-key=x", scale="0:2", why="a reason with <marks>")
    assert answer.status_code == 403
    assert "Flag --api-key is not on the allow-list" in answer.text
    assert 'value="0:2"' in answer.text
    assert "a reason with &lt;marks&gt;" in answer.text
    assert cloud.requests() == ()


BAD = {
    "unknown service": (
        "gemma4-26b-qat-l5", ("--restart",), {"form": "lifecycle", "lifecycle": "restart"}, [{"kind": "restart"}],
        "did you mean 'gemma4-26b-qat-l4'",
    ),
    "never-list flag": (
        SERVICE, ("--set-flag", "api-key=x"), {"set_flag": "api-key=x"},
        [{"kind": "set_flag", "name": "api-key", "value": "x"}], "flag --api-key is not on the allow-list",
    ),
    "value outside the form": (
        SERVICE, ("--set-flag", "max-model-len=many"), {"set_flag": "max-model-len=many"},
        [{"kind": "set_flag", "name": "max-model-len", "value": "many"}], "is no value of flag --max-model-len",
    ),
    "two values for one flag": (
        SERVICE, ("--set-flag", "max-num-seqs=1", "--set-flag", "max_num_seqs=2"),
        {"set_flag": "max-num-seqs=1\nmax_num_seqs=2"},
        [{"kind": "set_flag", "name": "max-num-seqs", "value": v} for v in "12"], "has two values",
    ),
    "no reason": (
        SERVICE, ("--concurrency", "2", "--why", ""), {"concurrency": "2", "why": ""},
        [{"kind": "set_concurrency", "concurrency": 2}], "why",
    ),
    "more than a request holds": (
        SERVICE, tuple(w for n in range(17) for w in ("--set-flag", f"f{n}=1")),
        {"set_flag": "\n".join(f"f{n}=1" for n in range(9)), "unset_flag": "\n".join(f"g{n}" for n in range(8))},
        [{"kind": "set_flag", "name": f"f{n}", "value": "1"} for n in range(17)], "16",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_at_every_door_and_nothing_is_recorded(cloud, operator, case):
    """The command line, a program's post to `decide`, and the console's form say the same."""
    service, words, typed, actions, says = BAD[case]
    code, out, err = operator("change", service, "--why", "x", *words)
    assert (code, out, says in err, "Hint: " in err) == (2, "", True, True), err
    status, told = cloud.post_to_decide({"service": service, "actions": actions, "why": typed.get("why", "x")})
    assert (400 <= status < 500, says in told) == (True, True), told
    if service == SERVICE:
        page = cloud.ask(service, **{"why": "x"} | typed)
        assert (400 <= page.status_code < 500, says.casefold() in html.unescape(page.text).casefold()) == (True, True)
    assert cloud.requests() == ()
    assert [row.kind for row in cloud.told.installation.control.audit()] == []


SEQS = {"kind": "set_flag", "name": "max-num-seqs", "value": "4"}


@pytest.mark.parametrize("door", ["command line", "decide", "console"])
def test_what_is_so_already_is_said_and_nothing_is_done(cloud, operator, door):
    """`decide` looks at no service, so the planner says it: the request is closed with the reason."""
    so = str(cloud.world.open().describe(SERVICE).config.concurrency)
    if door == "command line":
        operator("change", SERVICE, "--concurrency", so, "--why", "x")
    elif door == "decide":
        wanted = {"kind": "set_concurrency", "concurrency": int(so)}
        cloud.post_to_decide({"service": SERVICE, "actions": [wanted], "why": "x"})
    else:
        cloud.ask(SERVICE, concurrency=so, why="x")
    assert "already as you want it" in cloud.reach(Phase.CLOSED).ended_why
    assert cloud.world.stand_in.updates == []


def test_a_request_for_a_state_that_moved_is_closed_with_the_reason(cloud):
    seen = cloud.world.open().describe(SERVICE).target.model_dump(mode="json")
    body = {"service": SERVICE, "actions": [SEQS], "why": "x", "target": seen}
    cloud.world.stand_in.edit(cloud.world.name, lambda service: service.template.labels.update({"team": "llm"}))
    status, _ = cloud.post_to_decide(body)
    assert status == 200
    assert "changed since it was asked for" in cloud.reach(Phase.CLOSED).ended_why
    assert cloud.world.stand_in.updates == []


def test_a_dry_run_describes_with_the_operators_own_credentials_and_asks_decide_nothing(
    cloud, operator, tmp_path, monkeypatch
):
    """Cloud Run is read, never written; `decide` is not spoken to, so that it needs no right for this."""
    services = tmp_path / "services.toml"
    services.write_text((EXAMPLE / "services.toml").read_text().replace("us-east4", "us-central1"))
    monkeypatch.setenv("SERVICES", str(services))
    monkeypatch.setenv("PLATFORM", "cloud_run:example-project")
    monkeypatch.setenv("CLOUD_RUN_EMULATOR_HOST", f"127.0.0.1:{cloud.world.stand_in.port}")
    monkeypatch.setenv("DECIDE_URL", "http://127.0.0.1:9")  # nobody listens there
    cloud.world.stand_in.calls.clear()
    code, out, err = operator("change", SERVICE, *LONGER, "--dry-run")
    assert (code, err) == (0, "")
    assert "flag --max-model-len: 16384 -> 32768" in out
    assert "computed, fits at the pessimistic end" in out
    assert {name for name, _ in cloud.world.stand_in.calls} <= {"GetService", "ListRevisions", "GetRevision"}
    assert cloud.requests() == ()
    assert not (tmp_path / "state").exists()
