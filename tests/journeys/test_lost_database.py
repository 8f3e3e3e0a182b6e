"""R19: a database that is missing, emptied, older or of another installation is noticed before anything is changed."""

import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

from agent.app import build_app
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.main import main
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import handlers, publish_example
from agent.errors import PolicyRefused, StateConflict
from agent.ports.control import KillSwitch
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.shared.database_pair import pairing_fault
from agent.stages.shared.kill_switch import set_kill_switch

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
SERVICE = "gemma4-26b-qat-l4"
BOTH = ("sre.sqlite", "control.sqlite")


class Service:
    """The embedded service over files, opened anew after each loss."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = read_settings({}, platform=f"rehearsal:{EXAMPLE}", store=f"sqlite:{folder}")
        self.open()

    def open(self) -> None:
        self.here = build_app(self.settings)

    def close(self) -> None:
        for store in (self.here.store, self.here.control):
            store._database.close()

    def work(self) -> None:
        """Do what is due now."""
        run = self.here.worker(handlers(self.here), threads=1).run_due
        for _ in range(3):
            run()
            on_tick(self.here.contexts[Owner.TICK])
        run()

    def asked(self):
        """Publish the example and go on until people are asked."""
        publish_example(self.here, EXAMPLE)
        self.work()
        (found,) = self.here.store.incidents(Query())
        assert found.phase is Phase.ASKED
        return found

    def approve(self, plan: str) -> None:
        self.answer(plan, Choice.APPROVE)

    def answer(self, plan: str, answer: Choice) -> None:
        word = DecisionRequest(
            plan=plan, answer=answer, by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False)
        )
        plan_to_decision(self.here.contexts[Owner.DECIDE], word)

    def copy(self, to: str) -> Path:
        """Copy both files as a backup would."""
        target = self.folder.parent / to
        target.mkdir()
        for name in BOTH:
            source, copy = sqlite3.connect(self.folder / name), sqlite3.connect(target / name)
            source.backup(copy)
            source.close()
            copy.close()
        return target

    def lose(self, name: str, backup: Path | None = None) -> None:
        """Take a file away; with a backup its older copy takes its place."""
        self.close()
        for path in self.folder.glob(f"{name}*"):
            path.unlink()
        if backup is not None:
            shutil.copy(backup / name, self.folder / name)
        self.open()


@pytest.fixture
def service(tmp_path):
    made = Service(tmp_path / "state")
    yield made
    made.close()


def sqlite_rows(path: Path) -> int:
    """Return the number of the newest row of the record in a file."""
    db = sqlite3.connect(path)
    (newest,) = db.execute("SELECT max(number) FROM audit").fetchone()
    db.close()
    return newest


def missing(service: Service, name: str) -> None:
    service.lose(name)


def emptied(service: Service, name: str) -> None:
    """The file is there, its rows are gone."""
    service.close()
    db = sqlite3.connect(service.folder / name)
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for trigger in ("audit_is_never_changed", "audit_is_never_shortened"):
        db.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    for table in tables:
        if not table.startswith("sqlite_"):
            db.execute(f"DELETE FROM {table}")
    db.commit()
    db.close()
    service.open()


def older(service: Service, name: str) -> None:
    """A backup from before the last decision is put back, of one of the two alone."""
    service.lose(name, service.folder.parent / "backup")


def another(service: Service, name: str) -> None:
    """A file of another installation."""
    other = Service(service.folder.parent / "other")
    pairing_fault(other.here.contexts[Owner.DECIDE])
    other.close()
    service.lose(name, other.folder)


LOSSES = {"missing": missing, "emptied": emptied, "older": older, "of another installation": another}


def start_request(service: Service) -> None:
    """An installation in which somebody decided; a backup was made before."""
    set_kill_switch(service.here.store, service.here.control, on=False, by="ada", why="-", at=service.here.clock.now())
    asked = service.asked()
    assert pairing_fault(service.here.contexts[Owner.DECIDE]) == ""
    service.copy("backup")
    service.approve(asked.plan.id)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("lost", LOSSES.values(), ids=LOSSES)
def test_up_refuses_to_start_and_says_the_way_back(service, monkeypatch, capsys, lost, name):
    start_request(service)
    lost(service, name)
    monkeypatch.setenv("STORE", f"sqlite:{service.folder}")
    assert main(["up", "--port", "0", "--example", str(EXAMPLE)]) == 2
    said = capsys.readouterr().err
    assert "the two databases do not belong together" in said
    assert "--pair-databases" in said


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("lost", LOSSES.values(), ids=LOSSES)
def test_functions_receive_diagnose_and_tell_and_refuse_every_effect(service, lost, name):
    """Nothing is applied, a new incident still gets its diagnosis and plan, and an approval is refused with the reason."""
    start_request(service)
    lost(service, name)
    service.work()
    found = service.here.store.incidents(Query())
    if not found:
        found = (service.asked(),)
    assert not service.here.environment.rehearsal.describe(SERVICE).stamps
    for incident in found:
        if incident.phase is Phase.ASKED:
            with pytest.raises(PolicyRefused, match="do not belong together"):
                service.approve(incident.plan.id)
        else:
            assert "do not belong together" in incident.ended_why
    service.work()
    assert not service.here.environment.rehearsal.describe(SERVICE).stamps


@pytest.mark.parametrize("lost", LOSSES.values(), ids=LOSSES)
def test_a_kill_switch_that_was_lost_is_not_off(service, lost):
    """It was on; the copy that stands knows nothing of it, and nothing is changed all the same."""
    start_request(service)
    now = service.here.clock.now()
    set_kill_switch(service.here.store, service.here.control, on=True, by="grace", why="enough", at=now)
    lost(service, "control.sqlite")
    service.work()
    assert not service.here.environment.rehearsal.describe(SERVICE).stamps


def test_verifying_an_emptied_record_is_not_sound(service, monkeypatch, capsys):
    start_request(service)
    emptied(service, "control.sqlite")
    monkeypatch.setenv("STORE", f"sqlite:{service.folder}")
    assert main(["audit", "verify"]) == 1
    assert "not sound: the two databases do not belong together" in capsys.readouterr().out
    assert main(["audit", "verify", "--json"]) == 1
    assert '"soundness": "tail_missing"' in capsys.readouterr().out


def test_a_new_installation_starts_by_itself_and_both_carry_one_id(service):
    assert pairing_fault(service.here.contexts[Owner.DECIDE]) == ""
    mine, theirs = service.here.store.mark(), service.here.control.mark()
    assert mine.installation == theirs.installation
    assert (mine.paired, theirs.paired) == (True, True)
    assert pairing_fault(service.here.contexts[Owner.DECISION]) == ""
    assert service.here.store.mark() == mine


@pytest.mark.parametrize("stopped_after", ["control", "both"])
def test_a_first_start_that_died_halfway_goes_on(service, stopped_after):
    """The control database is stamped first; what only it carries is no loss."""
    from agent.core.database_pair import InstallationMark

    service.here.control.first_mark(InstallationMark(installation="installation-a"))
    if stopped_after == "both":
        service.here.store.first_mark(InstallationMark(installation="installation-a", paired=True))
    assert pairing_fault(service.here.contexts[Owner.DECIDE]) == ""
    assert service.here.control.mark() == InstallationMark(installation="installation-a", paired=True)


def test_state_from_before_this_rule_is_stamped_once(service):
    """Incidents and a record stand there, and no id."""
    start_request(service)
    for database in (service.here.store._database, service.here.control._database):
        with database.writing() as db:
            db.execute("DELETE FROM installation")
    assert pairing_fault(service.here.contexts[Owner.DECIDE]) == ""
    service.work()
    assert service.here.environment.rehearsal.describe(SERVICE).stamps
    emptied(service, "control.sqlite")
    assert "missing or was emptied" in pairing_fault(service.here.contexts[Owner.DECIDE])


def test_a_crash_between_the_decision_and_its_marks_is_no_loss(service):
    """The record grew, and neither database was told."""
    start_request(service)
    service.here.control.append(at=service.here.clock.now(), kind="k", incident="i", who="w", body="b")
    assert pairing_fault(service.here.contexts[Owner.DECIDE]) == ""
    newest = service.here.control.audit(1)[-1]
    service.here.store.reach(newest, of=service.here.store.mark().installation)
    assert pairing_fault(service.here.contexts[Owner.DECIDE]) == ""


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("lost", LOSSES.values(), ids=LOSSES)
def test_what_is_written_afterwards_hides_no_loss(service, lost, name):
    """A rejection and the kill switch are on record all the same, and they make no pair of what is none."""
    start_request(service)
    lost(service, name)
    before = pairing_fault(service.here.contexts[Owner.DECIDE])
    found = service.here.store.incidents(Query())
    (incident,) = found or (service.asked(),)
    if incident.phase is Phase.ASKED:
        with suppress(StateConflict):  # where the incidents are gone, the control database knows of the approval
            service.answer(incident.plan.id, Choice.REJECT)
    for on in (True, False, True, False):
        now = service.here.clock.now()
        set_kill_switch(service.here.store, service.here.control, on=on, by="grace", why="-", at=now)
    assert len(service.here.control.audit()) >= 4
    after = pairing_fault(service.here.contexts[Owner.DECIDE])
    assert after.split(": ")[:2] == before.split(": ")[:2]
    assert "do not belong together" in after


def test_marks_from_before_chains_were_kept_learn_theirs_and_are_held_to_it(service):
    start_request(service)
    for store in (service.here.store, service.here.control):
        store.set_mark(store.mark().with_(chain=""))
    assert pairing_fault(service.here.contexts[Owner.DECIDE]) == ""
    assert service.here.store.mark().chain == service.here.control.audit(1)[-1].chain
    older(service, "control.sqlite")
    for on in (True, False, True, False):
        now = service.here.clock.now()
        set_kill_switch(service.here.store, service.here.control, on=on, by="grace", why="-", at=now)
    assert "not the one that was written first" in pairing_fault(service.here.contexts[Owner.DECIDE])


def test_two_that_went_on_apart_to_the_same_row_are_no_pair(service):
    """Both restored to one moment, and used; then the control database of the time before comes back."""
    start_request(service)
    later = service.copy("later")
    for name in BOTH:
        older(service, name)
    now = service.here.clock.now()
    while service.here.control.audit(1)[-1].number < sqlite_rows(later / "control.sqlite"):
        set_kill_switch(service.here.store, service.here.control, on=True, by="grace", why="-", at=now)
    assert pairing_fault(service.here.contexts[Owner.DECIDE]) == ""
    service.lose("control.sqlite", later)
    assert "went on apart from each other" in pairing_fault(service.here.contexts[Owner.DECIDE])


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("lost", LOSSES.values(), ids=LOSSES)
def test_paired_anew_it_goes_on_with_the_kill_switch_on(service, lost, name):
    """The way back where there is no backup: said in the record, and a person turns the switch off."""
    from agent.entrypoints.cli.commands.up import _check_databases

    start_request(service)
    lost(service, name)
    _check_databases(service.here, anew=True)
    assert pairing_fault(service.here.contexts[Owner.DECIDE]) == ""
    assert service.here.control.kill_switch() == KillSwitch(
        on=True,
        by=service.here.control.audit(1)[-1].who,
        why="the databases were paired anew",
        at=service.here.control.audit(1)[-1].at,
    )
    assert service.here.control.audit(1)[-1].kind == "databases.paired"
    service.work()
    assert not service.here.environment.rehearsal.describe(SERVICE).stamps


def test_a_second_process_on_one_state_folder_is_refused(service, monkeypatch, capsys):
    """Commands that look or decide work beside it; another service does not."""
    from agent.app.state_lock import state_lock

    monkeypatch.setenv("STORE", f"sqlite:{service.folder}")
    with state_lock(service.settings):
        assert main(["up", "--port", "0", "--example", str(EXAMPLE)]) != 0
        assert "another process works on the state folder" in capsys.readouterr().err
        assert main(["incidents", "list"]) == 0
