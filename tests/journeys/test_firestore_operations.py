"""P13: what an incident and a change request cost in Firestore operations up to RESOLVED, on Google's emulator."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.app.catalogues import read_capacity, read_services
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.entrypoints.pubsub.handlers import on_tick
from agent.entrypoints.service import entry_message
from agent.ports.notifier import Notifier
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.request_change import ChangeAsked, request_change
from agent.stages.shared.database_pair import pairing_fault
from tests.journeys import fake_slack
from tests.journeys.test_sweep_in_slack import notifier_of
from tests.simulation.kills import FITS, ROOT, Journey
from tests.simulation.writer import OUTCOME

READS, WRITES, POLLS = 105, 50, 10
MOST_READS, MOST_WRITES = 150, 60
MORE_READS, MORE_WRITES = 15, 4  # for each further log entry that joins an incident
MORE_READS_TOLD, MORE_WRITES_TOLD = 15, 5  # beside Slack, beyond the most above
BROKEN = "gemma4-26b-l4-startup-probe"
SERVES = "gemma4-26b-l4-context-refused"
LONGER = [{"kind": "set_flag", "name": "max-model-len", "value": "17408"}]
TICK_S = (788 + 600) / (POLLS - 1)  # the rollout and the window of its verification take ten of them


class Counted:
    """The functions over both databases, with a sink before them; operations are counted, those of the test are not."""

    def __init__(
        self,
        folder: Path,
        firestore: list[str],
        example: str,
        actions: list[dict[str, str]],
        notifiers: Mapping[str, Notifier] | None = None,
    ) -> None:
        copy = folder / example
        shutil.copytree(ROOT / "examples" / example, copy)
        scenario = copy / "scenario.toml"
        more = OUTCOME if actions else ""
        scenario.write_text(scenario.read_text().replace("compression = 60", "compression = 1") + more)
        if example not in FITS:
            FITS[example] = read_capacity(read_services(read_settings({}, platform=f"rehearsal:{copy}")))
        case = {"example": str(copy), "actions": actions, "firestore": firestore}
        self.journey = Journey(folder, case, kill_at=None, before=False, notifiers=notifiers)
        self.contexts = self.journey.installation.contexts
        self.store = self.journey.installation.store
        self.rehearsal = self.journey.installation.environment.rehearsal
        self.told, self.heard = self.journey.clock.now(), 0
        assert not pairing_fault(self.contexts[Owner.DECIDE])  # once for an installation, not for an incident
        self.unseen = self.counts()
        self.incident = ""

    def counts(self) -> tuple[int, int]:
        """Reads and writes so far."""
        kept = [documents.operations for documents in self.journey.documents]
        return sum(o.reads for o in kept), sum(o.writes for o in kept)

    def cost(self) -> tuple[int, int]:
        """Reads and writes of the service so far."""
        reads, writes = self.counts()
        return reads - self.unseen[0], writes - self.unseen[1]

    def now(self) -> Incident:
        """Return the incident; what this reads is not counted."""
        before = self.counts()
        if not self.incident:
            (found,) = self.store.incidents(Query())
            self.incident = found.id
        found = self.store.load(self.incident)
        reads, writes = self.counts()
        self.unseen = (self.unseen[0] + reads - before[0], self.unseen[1] + writes - before[1])
        return found

    def begin(self, entries: int) -> None:
        """Somebody asks for a change where nothing is broken; else the sink lets the first entries through."""
        if self.journey.actions:
            (watched,) = self.journey.installation.services.services
            asked = ChangeAsked(
                service=watched.name,
                actions=self.journey.actions,
                why="asked and counted",
                by=Person(who="grace", channel=Channel.COMMAND_LINE, verified=False),
            )
            self.incident = request_change(self.contexts[Owner.DECIDE], asked).id
        rows = (self.journey.example / "events.jsonl").read_text().splitlines()
        for row in rows[:entries]:
            self.hear(json.loads(row))
        self.journey.work()

    def hear(self, entry: dict[str, Any]) -> None:
        self.journey.installation.bus.publish(entry_message(entry))
        self.heard += 1

    def approve(self) -> None:
        word = DecisionRequest(
            plan=self.now().plan.id,
            answer=Choice.APPROVE,
            by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False),
        )
        plan_to_decision(self.contexts[Owner.DECIDE], word)
        self.journey.work()

    def tick(self, entries: int) -> None:
        """What the sink lets through meanwhile, then the scheduler."""
        self.journey.clock.step(TICK_S)
        for item in self.rehearsal.new_log_entries(self.told):
            self.told = item.at
            if self.heard < entries:
                self.hear(item.entry)
        self.journey.work()
        on_tick(self.contexts[Owner.TICK])
        self.journey.work()


LIVES = {  # the example, what a person asks for, and how many log entries come
    "a request": (SERVES, LONGER, 0),
    "an incident of one entry": (BROKEN, [], 1),
    "an incident as recorded": (BROKEN, [], 4),
}


def lived(counted: Counted, entries: int) -> tuple[int, int]:
    """Let it begin, be approved and end; return its reads and writes."""
    counted.begin(entries)
    assert counted.now().phase is Phase.ASKED
    counted.approve()
    polls, waited = 0, 0
    phase = Phase.APPLYING
    while phase is not Phase.RESOLVED:
        before = counted.cost()
        counted.tick(entries)
        written = counted.cost()[1] - before[1]
        polls += 1
        was, phase = phase, counted.now().phase
        waited += was is phase is Phase.APPLYING
        assert written == 0 or was is not phase, (polls, "a poll that found nothing new")
        assert polls <= POLLS, phase
    assert (polls, waited, counted.heard) == (POLLS, POLLS // 2, entries)
    return counted.cost()


@pytest.mark.journey
@pytest.mark.emulator
@pytest.mark.xdist_group("firestore")
@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
def test_to_its_end_it_costs_no_more_than_promised(life, tmp_path: Path, firestore_emulator, firestore_project) -> None:
    """From its first signal, or from asking; a poll that finds nothing new writes nothing."""
    example, actions, entries = life
    counted = Counted(tmp_path, [firestore_emulator.host, firestore_project], example, actions)
    reads, writes = lived(counted, entries)
    further = max(entries - 1, 0)
    assert reads <= READS + MORE_READS * further
    assert writes <= WRITES + MORE_WRITES * further
    assert reads <= MOST_READS
    assert writes <= MOST_WRITES
    assert (reads, writes) > (POLLS, 5), "what is not counted costs nothing"


@pytest.mark.journey
@pytest.mark.emulator
@pytest.mark.xdist_group("firestore")
@pytest.mark.parametrize("life", LIVES.values(), ids=LIVES.keys())
def test_slack_beside_it_costs_so_much_more(life, tmp_path: Path, firestore_emulator, firestore_project) -> None:
    """Each message is claimed before it is sent, and where it stands is kept."""
    example, actions, entries = life
    slack = fake_slack.FakeSlack(b"s")
    try:
        database = [firestore_emulator.host, firestore_project]
        counted = Counted(tmp_path, database, example, actions, {"slack": notifier_of(slack)})
        reads, writes = lived(counted, entries)
    finally:
        slack.close()
    assert slack.messages
    assert slack.errors == []
    further = max(entries - 1, 0)
    assert reads <= MOST_READS + MORE_READS_TOLD * further
    assert writes <= MOST_WRITES + MORE_WRITES_TOLD * further
