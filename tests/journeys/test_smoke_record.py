"""The incident of a live smoke test becomes a folder that replays, becomes a test, and does not tell whose it was."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from google.cloud.logging_v2.types import LogEntry
from google.protobuf import json_format

from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app import build_app
from agent.app.catalogues import read_services
from agent.core.incident.phase import Phase
from agent.core.service.serving import EnvVar
from agent.entrypoints.cli.main import main as sre_agent
from agent.entrypoints.service import entry_message
from agent.settings import read_settings
from tests.agent.entrypoints.waiting_plan import run_until
from tests.contracts import cloud_logging_server as logging_server
from tests.contracts import cloud_run_world as worlds
from tests.infra.logging_query import Query as LoggingQuery
from tools.smoke_record import LiveAccount, Waiting, keep, main, record_incident

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
SERVICE = "gemma4-26b-qat-l4"
TOKEN = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345"
TOLD = f"fetching https://hub.acme.io/x for ana@acme.io from 10.9.8.7 with {TOKEN}"
RAW = ("acme-prod-77", "987654321098", "acme.io", "10.9.8.7", TOKEN, "acme-weights", "Ana Ruiz", "gserviceaccount")


def of_acme(text):
    """A text of the example, as it would stand in somebody's account."""
    return text.replace("example-project", "acme-prod-77").replace("example-models", "acme-weights")


def log_entries(shift=timedelta(0)):
    """What Cloud Logging of that account holds: the recorded events and the instance's own log, later by a shift."""
    events = [json.loads(row) for row in of_acme((EXAMPLE / "events.jsonl").read_text()).splitlines()]
    spoken = [line.partition(" ")[::2] for line in (EXAMPLE / "instance.log").read_text().splitlines()]
    spoken.append((spoken[-1][0], TOLD))
    label = next(e["labels"]["instanceId"] for e in events if "instanceId" in e.get("labels", {}))
    for n, (at, text) in enumerate(spoken):
        events.append(
            {
                "insertId": f"line{n}", "timestamp": at, "textPayload": text, "severity": "DEFAULT",
                "logName": "projects/acme-prod-77/logs/run.googleapis.com%2Fstderr",
                "resource": events[0]["resource"], "labels": {"instanceId": label},
            }
        )  # fmt: skip
    for event in events:
        event["timestamp"] = (datetime.fromisoformat(event["timestamp"]) + shift).isoformat().replace("+00:00", "Z")
        event.pop("receiveTimestamp", None)
    return sorted(events, key=lambda e: e["timestamp"])


def assert_tells_nothing(folder):
    for path in folder.iterdir():
        text = path.read_text()
        assert [raw for raw in RAW if raw.lower() in text.lower()] == [], path.name


def assert_replays(folder, capsys):
    """`sre-agent replay` of the folder finds the same cause and makes the same plan."""
    assert sre_agent(["replay", str(folder), "--json"]) in {0, 1}
    (row,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    first = json.loads(texts(folder)["incident.json"])["incident"]
    assert row["class"] == first["diagnosis"]["class_"] == "startup_probe_failed"
    assert [a["kind"] for a in row["plan"]["actions"]] == [a["kind"] for a in first["plan"]["actions"]]


def texts(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.fixture
def recorded(journey):
    """An incident of the rehearsal, read as a live account is read; waiting lets its time go by and approves."""
    told = journey(EXAMPLE.name)
    store, platform = told.installation.store, told.installation.environment.rehearsal
    said = []

    def describe():
        live = platform.describe(SERVICE)
        env = (*live.config.env, EnvVar(name="HF_TOKEN", value=TOKEN), EnvVar(name="OWNER", value="ana@acme.io"))
        volumes = tuple(v.with_(bucket="acme-weights") for v in live.config.volumes)
        return live.with_(config=live.config.with_(env=env, volumes=volumes))

    def sleep(seconds):
        for incident in told.incidents():
            if incident.phase is Phase.ASKED:
                told.answer(incident.plan.id, who="Ana Ruiz")
        told.go(seconds)

    entries = log_entries()
    account = LiveAccount(
        incidents=store.incidents,
        timeline=store.timeline,
        describe=describe,
        entries=lambda query, _: (e for e in entries if LoggingQuery(query).matches(e)),
    )

    def record(limit_s=7200):
        service = read_services(told.installation.settings).service(SERVICE).with_(project="acme-prod-77")
        wait = Waiting(limit_s=limit_s, now=told.clock.now, sleep=sleep)
        since = datetime(2026, 1, 1, tzinfo=UTC)
        return record_incident(account, service, since=since, wait=wait, say=said.append)

    record.said = said
    record.account = account
    return record


def kept(record, folder):
    return keep(record, folder, projects=["acme-prod-77"], numbers=["987654321098"], accounts=["ana@acme.io"])


def test_an_incident_that_ended_becomes_an_example(recorded, tmp_path, monkeypatch, capsys):
    """The whole way: told while it runs, written without names and secrets, and replayed to the same plan."""
    out = tmp_path / "first"
    assert kept(recorded(), out) == 0
    assert_tells_nothing(out)
    assert any("a person must answer" in line for line in recorded.said)
    shown = capsys.readouterr().out
    assert "Before you share it, read it" in shown
    assert shown.rstrip().endswith(f"sre-agent replay {out}")
    scenario = load_scenario(out / "scenario.toml")
    failed, mended = scenario.outcome
    assert (failed.result, mended.result) == ("failed", "came_up")
    assert set(mended.when) == {"startup_probe budget_s", "env VLLM_ENGINE_READY_TIMEOUT_S"}  # what the plan changed
    provenance = texts(out)["PROVENANCE.md"]
    assert "| end of the incident | RESOLVED" in provenance
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'elsewhere'}")
    assert_replays(out, capsys)


def test_a_second_run_overwrites_nothing(recorded, tmp_path):
    record = recorded()
    out = tmp_path / "first"
    kept(record, out)
    before = texts(out)
    with pytest.raises(Exception, match="was not written") as refused:
        kept(record, out)
    assert refused.value.exit_code == 2
    assert texts(out) == before
    assert [p.name for p in tmp_path.iterdir() if p.name.endswith(".part")] == []


def test_what_the_names_cannot_reach_refuses_the_whole_folder(recorded, tmp_path):
    """An address that a URL encoded is seen by the second look alone: no file, and the message does not repeat it."""
    record = recorded()
    comment = record.timeline[0].model_copy(update={"what": "asked bob%40acme.io"})
    with pytest.raises(Exception, match="was not written") as refused:
        kept(type(record)(**{**vars_of(record), "timeline": (comment, *record.timeline)}), tmp_path / "first")
    assert "e-mail address (incident.json" in str(refused.value)
    assert "acme" not in str(refused.value)
    assert list(tmp_path.glob("*first*")) == []


def vars_of(record):
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def test_no_incident_is_said(recorded, tmp_path):
    with pytest.raises(Exception, match="nothing was recorded") as refused:
        recorded(limit_s=0)
    assert refused.value.exit_code == 3
    assert "sre-agent doctor" in str(refused.value)


class Answers(logging_server.LoggingStandIn):
    """Cloud Logging that reads whole filters, as the sinks have them."""

    def _list(self, request, context):
        first, _, rest = request.filter.partition("\nAND ")
        if not first.startswith("timestamp"):  # a diagnosis asks line by line, which the stand-in itself reads
            return super()._list(request, context)
        query, every = LoggingQuery(rest), self.entries
        self.entries = [e for e in every if query.matches(json_format.MessageToDict(LogEntry.pb(e)))]
        request.filter = first
        try:
            return super()._list(request, context)
        finally:
            self.entries = every


@pytest.fixture
def account(tmp_path, monkeypatch):
    """Cloud Run and Cloud Logging on their own wires, a service whose newest revision failed, and its incident."""
    began = datetime.now(UTC) - timedelta(minutes=20)
    logs = Answers()
    for e in (entries := log_entries(began - datetime.fromisoformat(log_entries()[0]["timestamp"]))):
        logs.entries.append(LogEntry.wrap(json_format.ParseDict(e, LogEntry.pb(LogEntry()))))
    logs.start()
    api = worlds.server.StandIn(now=lambda: datetime.now(UTC), fate=lambda _: worlds.server.Fate(up=False))
    api.start()
    config = load_scenario(EXAMPLE / "scenario.toml").live.config
    body = json.dumps(worlds.body_of(SERVICE, config, ready=False)).replace("us-central1", "us-east4")
    body = body.replace("00001-abc", "00005-k2f")
    api.put(json.loads(of_acme(body)))
    services = tmp_path / "services.toml"
    services.write_text(of_acme((EXAMPLE / "services.toml").read_text()).replace('scenario = "scenario.toml"\n', ""))
    environ = {
        "STORE": f"sqlite:{tmp_path / 'state'}", "SERVICES": str(services), "PLATFORM": "cloud_run:acme-prod-77",
        "CLOUD_RUN_EMULATOR_HOST": f"127.0.0.1:{api.port}", "QUIET_S": "0.01",
        "CLOUD_LOGGING_EMULATOR_HOST": f"127.0.0.1:{logs.port}",
    }  # fmt: skip
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    for name in ("POLICY", "DECIDE_URL"):
        monkeypatch.delenv(name, raising=False)
    app = build_app(read_settings())
    for entry in entries:
        if not entry["insertId"].startswith("line"):
            app.bus.publish(entry_message(entry))
    run_until(Phase.ASKED)
    yield began, environ
    api.stop()
    logs.stop()


def test_the_command_reads_a_live_account_on_its_wires(account, tmp_path, monkeypatch, capsys):
    """The check, then the record of an incident that nobody approved: it is written, says so, ends with 1, replays."""
    began, environ = account
    out = tmp_path / "first"
    words = ["--service", SERVICE, "--out", str(out), "--project", "acme-prod-77", "--number", "987654321098"]
    assert main([*words, "--check"]) == 0, capsys.readouterr().err
    assert not out.exists()
    capsys.readouterr()
    assert main([*words, "--since", began.isoformat(), "--wait", "0"]) == 1
    assert "had not ended: it stood at ASKED" in capsys.readouterr().out
    assert_tells_nothing(out)
    shown = texts(out)
    assert "NOT ENDED when the record was made: it stood at ASKED" in shown["PROVENANCE.md"]
    events = [json.loads(row) for row in shown["events.jsonl"].splitlines()]
    assert sum("insertId" in e and not e["insertId"].startswith("line") for e in events) == 3
    assert shown["instance.log"].count("\n") == (EXAMPLE / "instance.log").read_text().count("\n") + 1
    for name in environ:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    assert_replays(out, capsys)


def test_the_command_refuses_a_folder_that_is_there_and_a_service_that_is_not(account, tmp_path, capsys):
    assert main(["--service", SERVICE, "--out", str(tmp_path)]) == 2
    assert "it is there already" in capsys.readouterr().err
    assert main(["--service", "nobody", "--out", str(tmp_path / "x")]) == 2
    assert "nobody" in capsys.readouterr().err
