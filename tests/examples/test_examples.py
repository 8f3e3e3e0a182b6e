"""Every recorded incident is whole, honest about its source, and clean of secrets and people."""

import json
import re
from pathlib import Path

import pytest

from agent.adapters.logs.file import FileLogs
from agent.adapters.platform.rehearsal.scenario import (
    Basis,
    LiveStart,
    Outcome,
    Result,
    Scenario,
    facts,
    load_scenario,
    moment,
)
from agent.core.change.verification import Check
from agent.core.intake.origin import Reading, watched_by
from agent.core.intake.read import signals_of
from agent.core.service.services import Service, parse_services
from agent.failures.signature import FailureClass
from agent.ports.logs import InstanceLog

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = sorted(p for p in EXAMPLES.iterdir() if p.is_dir())
FILES = [p for folder in FOLDERS for p in sorted(folder.iterdir())]
REQUIRED = {"events.jsonl", "instance.log", "scenario.toml", "services.toml", "expected.json", "PROVENANCE.md"}
ACTIONS = {
    "set_flag",
    "set_env",
    "set_startup_probe",
    "set_liveness_probe",
    "set_resources",
    "set_scaling",
    "set_concurrency",
    "set_accelerator",
    "set_model",
    "set_volume_options",
    "restart",
    "for_person",
}
PLAN_LISTS = {"must", "one_of", "must_not", "must_not_alone"}
PLAN_KEYS = PLAN_LISTS | {"none_of", "flag_limits", "startup_probe_budget_s"}
LEAKS = {
    "e-mail": re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"),
    "token": re.compile(
        r"hf_[A-Za-z0-9]{20,}|AIza[0-9A-Za-z_-]{30,}|ya29\.|gh[pousr]_[A-Za-z0-9]{20,}|xox[baprs]-|eyJ[A-Za-z0-9_-]{20,}\."
    ),
    "key": re.compile(r"-----BEGIN|client_secret|private_key|Authorization:"),
    "personal path": re.compile(r"/(?:home|Users|root|work)/|(?<!/var)/tmp/|C:\\\\"),
    "somebody's project": re.compile(r"aisprint|glitnir|289270257791|happyfield|purplesmoke|wgcq55zbfq"),
    "subscription": re.compile(r"subscriptions/(?!00000000)"),
    "live address": re.compile(r"[a-z0-9-]+\.(a\.)?run\.app|azurecontainerapps\.io"),
}
OUR_ADDRESS = re.compile(r"-0{12}\.[a-z0-9-]+\.run\.app")
NETWORKS = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")
HARMLESS = ("127.0.0.1", "0.0.0.0", "169.254.169.126", "192.0.2.", "198.51.100.", "203.0.113.")


@pytest.fixture(params=FOLDERS, ids=lambda p: p.name)
def folder(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def scenario(folder: Path) -> Scenario:
    return load_scenario(folder / "scenario.toml")


@pytest.fixture
def service(folder: Path) -> Service:
    return parse_services((folder / "services.toml").read_text()).services[0]


def expected(folder: Path) -> dict:
    return json.loads((folder / "expected.json").read_text())


def test_the_named_incidents_are_there() -> None:
    """The cases that the documentation promises; the first is the one that `make run` shows."""
    names = {p.name for p in FOLDERS}
    assert {
        "gemma4-26b-l4-startup-probe",
        "gemma4-26b-l4-context-refused",
        "gemma4-26b-l4-queue",
        "gemma4-31b-l4-oom",
        "gemma4-31b-nvfp4-two-16gb-cards",
        "vllm-cpu-kv-cache-too-small",
        "vllm-cpu-worker-killed",
    } <= names
    platforms = {load_scenario(p / "scenario.toml").platform for p in FOLDERS}
    assert {"cloud_run", "host", "tpu_vm", "container_apps", "ec2"} <= platforms


def starts(scenario: Scenario) -> tuple[LiveStart | Outcome, ...]:
    return (scenario.live, *scenario.outcome)


def test_a_folder_is_whole(folder: Path, scenario: Scenario) -> None:
    """Every required file is there, and every other file belongs to a start on record."""
    there = {p.name for p in folder.iterdir()}
    recordings = [o.recording for o in starts(scenario) if o.recording is not None]
    named = {name for r in recordings for name in (r.log, r.events) if name is not None}
    assert there == REQUIRED | named


def test_scenario_and_services_agree(folder: Path, scenario: Scenario, service: Service) -> None:
    """One service, the same name, platform, accelerator and needed speed in all files."""
    assert service.name == scenario.service == expected(folder)["service"]
    assert service.platform == scenario.platform
    assert service.scenario == "scenario.toml"
    assert (service.accelerator, service.accelerator_count) == (
        scenario.live.config.accelerator,
        scenario.live.config.accelerator_count,
    )
    if scenario.needs_tokens_per_s is not None:
        assert service.needs.tokens_per_s == scenario.needs_tokens_per_s
    assert facts(scenario.live.config)["model"] in {service.model, service.checkpoint}


def test_every_event_becomes_a_signal_of_the_watched_service(folder: Path, scenario: Scenario) -> None:
    """Intake reads each line and finds the service by its labels; no line is ignored."""
    services = parse_services((folder / "services.toml").read_text())
    lines = (folder / "events.jsonl").read_text().splitlines()
    assert lines
    for line in lines:
        taken = signals_of(json.loads(line), Reading(watched=watched_by(services)))
        assert taken.ignored == ()
        assert [(s.service, s.platform) for s in taken.signals] == [(scenario.service, scenario.platform)]


def test_events_have_ids_of_their_own(folder: Path) -> None:
    """Two lines are two observations: no id stands twice, times do not run backwards."""
    entries = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    ids = [e["insertId"] for e in entries if "insertId" in e]
    assert len(set(ids)) == len(ids)
    times = [moment(e) for e in entries if "timestamp" in e]
    assert times == sorted(times)


def test_the_log_starts_before_the_first_event(folder: Path, scenario: Scenario) -> None:
    """The instance's own log is found by revision and instance, from its start up to the event."""
    entries = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    first = min((moment(e) for e in entries if "timestamp" in e), default=None)
    lines = scenario.lines(scenario.live.recording)
    log = InstanceLog(
        service=scenario.service,
        revision=scenario.live.revision,
        instance=scenario.live.instance,
        lines=lines,
        complete=True,
    )
    logs = FileLogs(lambda name: (log,) if name == scenario.service else ())
    found = logs.instance_log(
        scenario.service, revision=scenario.live.revision, instance=None, until=first or lines[-1].at
    )
    assert found is not None
    assert found.lines
    assert scenario.live.recording is not None
    assert found.lines[0].at >= scenario.live.recording.began_at
    assert any("vLLM" in line.text or "vllm" in line.text for line in found.lines[:40])


def test_recorded_starts_end_when_they_say(scenario: Scenario) -> None:
    """Where a start has both log and duration, the last line is not later than its end, within 10 s of the record."""
    for outcome in scenario.outcome:
        if outcome.recording is None or outcome.result is not Result.CAME_UP:
            continue
        lines = scenario.lines(outcome.recording)
        ready = next(line for line in lines if "Application startup complete" in line.text)
        took_s = (ready.at - outcome.recording.began_at).total_seconds()
        assert took_s == pytest.approx(outcome.after_s, abs=10), outcome.name


def test_every_start_that_came_up_says_what_was_measured(scenario: Scenario) -> None:
    """A completion that nobody asked for is None, never True."""
    for start in starts(scenario):
        for measured in start.measured:
            if measured.check is Check.COMPLETION and "no completion" in measured.says:
                assert measured.good is None
            if measured.check is Check.SPEED:
                assert measured.value is not None
    for outcome in scenario.outcome:
        assert outcome.basis in {Basis.RECORDED, Basis.DERIVED}


def test_expectations_are_written_in_known_words(folder: Path, scenario: Scenario) -> None:
    """Classes, actions and outcomes that exist."""
    wanted = expected(folder)
    assert wanted.keys() == {"service", "class", "also_acceptable_class", "cause", "plan", "rehearsal", "ending"}
    assert {wanted["class"], *wanted["also_acceptable_class"]} <= {c.value for c in FailureClass}
    assert wanted["plan"].keys() <= PLAN_KEYS
    for key in PLAN_LISTS & wanted["plan"].keys():
        for word in wanted["plan"][key]:
            assert word.split()[0] in ACTIONS, word
    assert set(wanted["plan"].get("none_of", ())) <= {o.name for o in scenario.outcome}
    assert wanted["rehearsal"] in {"RECOVERED", "NOT_RECOVERED", "INCONCLUSIVE", "BY_PERSON"}
    assert wanted["rehearsal"] == "BY_PERSON" or scenario.takes_changes
    assert wanted["ending"]["phase"] in {"RESOLVED", "ESCALATED"}


def test_provenance_tells_recorded_from_shape(folder: Path) -> None:
    """Each file of sources says what is recorded and what is filled in, in a table."""
    text = (folder / "PROVENANCE.md").read_text()
    assert "| what | how we know it |" in text
    assert "recorded" in text
    assert re.search(r"filled in|ours", text)


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_nothing_secret_or_personal_is_in_it(path: Path) -> None:
    """No e-mail address, token, key, personal path, foreign project or address."""
    text = path.read_text()
    ours = OUR_ADDRESS.sub("", text)
    for what, pattern in LEAKS.items():
        found = pattern.search(ours)
        assert found is None, f"{what}: {found[0]!r}"
    for address in NETWORKS.findall(text):
        assert address.startswith(HARMLESS), address
