"""P13: what a change request costs in Firestore operations, from asking to RESOLVED, counted on Google's emulator."""

import shutil
from pathlib import Path

import pytest

from agent.app.catalogues import read_capacity, read_services
from agent.core.decision.decision import Channel, Choice
from agent.core.incident.phase import Phase
from agent.entrypoints.pubsub.handlers import on_tick
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.request_change import ChangeAsked, request_change
from agent.stages.shared.database_pair import pairing_fault
from tests.simulation.kills import FITS, ROOT, Journey
from tests.simulation.writer import OUTCOME

READS, WRITES, POLLS = 150, 60, 10
EXAMPLE = "gemma4-26b-l4-context-refused"
LONGER = [{"kind": "set_flag", "name": "max-model-len", "value": "17408"}]
TICK_S = (788 + 600) / (POLLS - 1)  # the rollout and the window of its verification take ten of them


class Counted:
    """A person asks for a change of a service that serves; operations are counted over both databases."""

    def __init__(self, folder: Path, firestore: list[str]) -> None:
        example = folder / EXAMPLE
        shutil.copytree(ROOT / "examples" / EXAMPLE, example)
        scenario = example / "scenario.toml"
        scenario.write_text(scenario.read_text().replace("compression = 60", "compression = 1") + OUTCOME)
        if EXAMPLE not in FITS:
            FITS[EXAMPLE] = read_capacity(read_services(read_settings({}, platform=f"rehearsal:{example}")))
        case = {"example": str(example), "actions": LONGER, "firestore": firestore}
        self.journey = Journey(folder, case, kill_at=None, before=False)
        self.contexts = self.journey.installation.contexts
        self.store = self.journey.installation.store
        assert not pairing_fault(self.contexts[Owner.DECIDE])  # once for an installation, not for a request
        self.counts()

    def counts(self) -> tuple[int, int]:
        """Reads and writes so far."""
        kept = [documents.operations for documents in self.journey.documents]
        return sum(o.reads for o in kept), sum(o.writes for o in kept)

    def ask(self) -> str:
        (watched,) = self.journey.installation.services.services
        asked = ChangeAsked(
            service=watched.name,
            actions=self.journey.actions,
            why="asked and counted",
            who="grace",
            channel=Channel.COMMAND_LINE,
            verified=False,
        )
        return request_change(self.contexts[Owner.DECIDE], asked).id

    def approve(self, plan: str) -> None:
        word = DecisionRequest(
            plan=plan, answer=Choice.APPROVE, who="ada", channel=Channel.COMMAND_LINE, verified=False
        )
        plan_to_decision(self.contexts[Owner.DECIDE], word)
        self.journey.work()

    def tick(self) -> None:
        self.journey.clock.step(TICK_S)
        on_tick(self.contexts[Owner.TICK])
        self.journey.work()


@pytest.mark.emulator
@pytest.mark.xdist_group("firestore")
def test_a_request_costs_no_more_than_promised(tmp_path: Path, firestore_emulator, firestore_project) -> None:
    """Half of its ten polls find the rollout under way and write nothing; the others keep what they measured."""
    counted = Counted(tmp_path, [firestore_emulator.host, firestore_project])
    looks = 0  # reads of this test
    began = counted.counts()
    request = counted.ask()
    counted.journey.work()
    plan = counted.store.load(request).plan
    counted.approve(plan.id)
    polls, waited = 0, 0
    phase = Phase.APPLYING
    while phase is not Phase.RESOLVED:
        before = counted.counts()
        counted.tick()
        written = counted.counts()[1] - before[1]
        polls += 1
        was, phase = phase, counted.store.load(request).phase
        looks += 1
        if was is phase is Phase.APPLYING:
            waited += 1
            assert written == 0, "a poll that found nothing new"
        assert polls <= POLLS, phase
    ended = counted.counts()
    reads, writes = ended[0] - began[0] - looks - 1, ended[1] - began[1]
    assert (polls, waited) == (POLLS, POLLS // 2)
    assert reads <= READS
    assert writes <= WRITES
    assert (reads, writes) > (POLLS, 5), "what is not counted costs nothing"
