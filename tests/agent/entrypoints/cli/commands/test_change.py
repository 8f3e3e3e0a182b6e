"""Asking for a change on one machine: shown without a trace, recorded once, followed, taken back, refused with a way out."""

import json
from pathlib import Path

import pytest

from agent.app import build_app
from agent.core.incident.phase import Phase
from agent.core.plan.action import Lifecycle, LifecycleOperation
from agent.core.plan.lifecycle import NOT_THERE
from agent.entrypoints.cli.commands import change
from agent.entrypoints.cli.main import main
from agent.entrypoints.service import handlers
from agent.ports.platform import NotDeployed, Order
from agent.ports.store import Query
from agent.settings import read_settings
from tests.agent.entrypoints.waiting_plan import EXAMPLE
from tests.leases import HELD

SERVICE = "gemma4-26b-qat-l4"
LONGER = (SERVICE, "--set-flag", "max-model-len=32768", "--why", "longer documents", "--by", "ada")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """One machine with a simulated service and no incident; nothing runs but the command."""
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    monkeypatch.setenv("PLATFORM", f"rehearsal:{EXAMPLE}")
    for name in ("SERVICES", "POLICY", "DECIDE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(change, "WAIT_S", 0.0)

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["change", *words])
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def work():
    """Do what the running service does."""
    app = build_app(read_settings())
    app.worker(handlers(app), threads=1).run_due()
    return app.store.incidents(Query())


def test_a_dry_run_shows_the_plan_and_leaves_no_trace(machine):
    code, out, err = machine(*LONGER, "--dry-run")
    assert (code, err) == (0, "")
    for words in (
        "dry run: nothing was stored or changed",
        "flag --max-model-len: 16384 -> 32768",
        "computed, fits at the pessimistic end",
        "1.05 USD per hour, unchanged",
        "USD per million output tokens of one busy request, computed",
        "tokens/s for one request",
        "needs a person, never automatic; may approve: you",
    ):
        assert words in out
    assert work() == ()


def test_a_dry_run_for_machines_has_the_keys_of_a_plan(machine):
    answer = json.loads(machine(*LONGER, "--dry-run", "--json")[1])
    assert set(answer) == {"plan", "may_approve", "self_approval", "policy"}
    assert {row["check"] for row in answer["policy"]} >= {"rule", "bounds", "proof", "freeze", "limits", "budget"}
    assert answer["plan"]["proof"] == "computed"
    assert (answer["may_approve"], answer["self_approval"]) == ([], True)


def test_a_request_is_recorded_once_and_planned_by_the_service(machine):
    code, out, _ = machine(*LONGER)
    assert code == 0
    assert "ada (not verified) asks for a change: longer documents" in out
    assert "its plan is made by the running service (sre-agent up)" in out
    assert machine(*LONGER)[0] == 0
    (life,) = work()
    assert (life.phase, life.plan.asked_by) == (Phase.ASKED, "ada")
    shown = json.loads(machine(*LONGER, "--json")[1])
    assert (shown["id"], shown["class"], shown["plan"]["id"]) == (life.id, "change_requested", life.plan.id)


def test_what_is_so_already_is_said_and_nothing_is_stored(machine):
    code, out, err = machine(SERVICE, "--set-flag", "max-model-len=16384", "--why", "x")
    assert (code, out, err) == (0, "nothing to change: the service is already as you want it\n", "")
    assert json.loads(machine(SERVICE, "--set-flag", "max-model-len=16384", "--why", "x", "--json")[1])
    assert work() == ()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((SERVICE, "--set-flag", "max-model-len=300000"), 1, "Hint: this does: "),
        ((SERVICE, "--set-flag", "max-model-len=many"), 2, "is no value of flag --max-model-len"),
        ((SERVICE, "--set-flag", "gpu-memory-utilization=0.30"), 1, "was refused"),
        ((SERVICE, "--set-flag", "api-key=x"), 2, "flag --api-key is not on the allow-list"),
        ((SERVICE, "--set-flag", "max-num-seqs=1", "--unset-flag", "max-num-seqs"), 2, "has two values, '1' and none"),
        ((SERVICE, "--scale", "1:1", "--scale", "1:2"), 2, "--scale has 2 values"),
        ((SERVICE, "--scale", "1:400"), 2, "400 instances are above the limit"),
        (("gemma4-26b-qat-l5", "--restart"), 2, "did you mean 'gemma4-26b-qat-l4'?"),
        ((SERVICE,), 2, "nothing is asked for"),
        ((SERVICE, *(w for n in range(17) for w in ("--set-flag", f"f{n}=1"))), 2, "17 changes are asked for at once"),
        ((SERVICE, "--restart", "--by", "a" * 321), 2, "the name of who asks has 321 characters"),
        ((SERVICE, "--start", "--scale", "2:1"), 2, "cannot be"),
        ((SERVICE, "--stop"), 2, "the list 'lifecycle' does not name 'gemma4-26b-qat-l4'"),
        ((SERVICE, "--stop"), 2, "by hand: gcloud run services update gemma4-26b-qat-l4 --project"),
        ((SERVICE, "--withdraw"), 2, "none is open"),
        ((SERVICE, "--restart", "--confirm", SERVICE), 2, "--confirm belongs to --delete"),
        ((SERVICE, "--accelerator", "abacus"), 2, "no usual CPU and memory are known"),
    ],
    ids=lambda value: " ".join(value[1:]) if isinstance(value, tuple) else None,
)
def test_bad_input_is_refused_with_a_hint_and_nothing_is_stored(machine, words, code, says):
    ended, out, err = machine(*words, "--why", "x")
    assert (ended, out, says in err, "Hint: " in err) == (code, "", True, True), err
    assert work() == ()


def test_the_asker_takes_it_back(machine):
    machine(*LONGER)
    code, out, _ = machine(SERVICE, "--withdraw", "--why", "not needed", "--by", "ada")
    assert (code, "ada took it back: not needed" in out) == (0, True)
    assert [life.phase for life in work()] == [Phase.CLOSED]
    assert machine(SERVICE, "--withdraw", "--why", "again", "--by", "ada")[0] == 2


@pytest.mark.parametrize(
    "word", [("--dry-run",), ("--supersede",), ("--restart",), ("--concurrency", "2")], ids=" ".join
)
def test_taking_back_and_asking_at_once_is_neither(machine, word):
    """A dry run least of all takes anything back."""
    machine(*LONGER)
    code, out, err = machine(SERVICE, "--withdraw", *word, "--why", "not needed", "--by", "ada")
    assert (code, out, "--withdraw stands alone" in err) == (2, "", True), err
    assert [life.phase for life in work()] == [Phase.ASKED]


def test_ones_own_request_is_found_behind_somebody_elses(machine):
    machine(*LONGER)
    other = (SERVICE, "--concurrency", "2", "--why", "fewer at once", "--by", "ben", "--supersede")
    assert machine(*other)[0] == 0
    code, out, err = machine(SERVICE, "--withdraw", "--why", "not needed", "--by", "ada")
    assert (code, "ada took it back: not needed" in out) == (0, True), err


def test_a_long_reason_is_cut_in_a_dry_run_and_refused_in_a_request(machine):
    """Neither is a crash."""
    words = [word if word != "longer documents" else "x" * 1001 for word in LONGER]
    assert machine(*words, "--dry-run")[0] == 0
    code, _, err = machine(*words)
    assert (code, "needs a reason of 1 to 1000 characters" in err) == (2, True)


def test_a_dry_run_says_what_stands_in_the_way(machine, tmp_path, monkeypatch):
    """Freeze windows, limits and the number of approvals are known before anybody is asked."""
    freeze = """[[freezes]]
name = "launch week"
starts = 2020-01-01T00:00:00
ends = 2100-01-01T00:00:00
zone = "UTC"
stops = "approvals"
reason = "launch"
owner = "ada"
"""
    (tmp_path / "policy.toml").write_text(freeze)
    monkeypatch.setenv("POLICY", str(tmp_path / "policy.toml"))
    code, out, err = machine(*LONGER, "--dry-run")
    assert (code, err) == (0, "")
    assert "launch week" in next(line for line in out.splitlines() if line.split()[0] == "freeze")


def test_in_the_cloud_nothing_simulated_is_shown_as_live(machine, monkeypatch):
    """The default platform is a rehearsal: its figures would be those of another service."""
    monkeypatch.delenv("PLATFORM")
    monkeypatch.setenv("DECIDE_URL", "http://127.0.0.1:9")
    code, out, err = machine(*LONGER[:-2], "--dry-run")
    assert (code, out, "PLATFORM names no live services" in err) == (2, "", True)


def test_a_request_is_replayed_for_the_service_as_it_is(machine, capsys):
    """Its plan is worked out once more, in memory; the recorded one stays as it was."""
    machine(*LONGER)
    (life,) = work()
    assert main(["replay", f"incident:{life.id}", "--json"]) == 1
    row = json.loads(capsys.readouterr().out)
    assert (row["id"], row["phase"], row["class"]) == (life.id, "ASKED", "change_requested")
    assert [d["path"] for d in row["plan"]["difference"]] == ["flag --max-model-len"]
    assert row["incident"]["run"].startswith("replay-")
    assert work() == (life,)
    assert main(["replay", f"incident:{life.id}", "--publish"]) == 2
    assert f"sre-agent change {SERVICE}" in capsys.readouterr().err


def test_an_open_incident_is_told_of(asked, capsys):
    code = main(["change", *LONGER])
    err = capsys.readouterr().err
    assert (code, f"{asked.id} is ASKED" in err, "--supersede" in err) == (2, True, True)


def test_a_reason_is_wanted(capsys):
    with pytest.raises(SystemExit):
        main(["change", SERVICE, "--restart"])
    assert "--why" in capsys.readouterr().err


LIFECYCLE = f'lifecycle = ["{SERVICE}"]\naccelerators = ["nvidia-l4"]\n'


@pytest.fixture
def named(machine, tmp_path, monkeypatch):
    """The same machine, whose policy names the service for a lifecycle."""
    (tmp_path / "policy.toml").write_text(LIFECYCLE)
    monkeypatch.setenv("POLICY", str(tmp_path / "policy.toml"))
    return machine


def make(*actions, key):
    """Change the service as the executor does."""
    platform = build_app(read_settings()).environment.platform_of(SERVICE)
    try:
        etag = platform.describe(SERVICE).etag
    except NotDeployed:
        etag = NOT_THERE
    ordered = Order(
        service=SERVICE,
        incident="i",
        effect_key=key,
        revision=f"{SERVICE}-{key}",
        etag=etag,
        actions=actions,
        lease_end=HELD,
    )
    platform.apply(ordered)


def test_a_creation_is_shown_with_the_flags_that_fit(named):
    make(Lifecycle(operation=LifecycleOperation.DELETE, confirmed=SERVICE), key="k1")
    code, out, err = named(SERVICE, "--create", "--why", "a second try", "--by", "ada", "--dry-run")
    assert (code, err) == (0, "")
    assert "what this change created is removed again" in out
    assert "computed, fits at the pessimistic end" in out
    assert "0.00 USD -> 1.42 USD per hour" in out


def test_a_start_gives_back_what_the_service_had(named):
    make(Lifecycle(operation=LifecycleOperation.STOP), key="k1")
    code, out, _ = named(SERVICE, "--start", "--why", "needed again", "--by", "ada", "--dry-run")
    assert code == 0
    assert "max_instances: 0 -> 1" in out


def test_a_stop_says_what_stops_answering(named):
    code, out, _ = named(SERVICE, "--stop", "--why", "not needed", "--by", "ada", "--dry-run")
    assert code == 0
    assert f"{SERVICE} answers no requests until it is started again" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--create", "--set-flag", "x=1"], "--create goes with"),
        (["--platform", "cloud_run", "--stop"], "--platform belongs to --create"),
        (["--create", "--platform", "kubernetes"], "its platform is 'cloud_run'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_creation_takes_what_services_toml_says(named, words, says):
    code, _, err = named(SERVICE, *words, "--why", "x", "--by", "ada")
    assert (code, says in err) == (2, True), err
