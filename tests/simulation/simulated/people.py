"""The people around the service: they answer, press twice, answer too late, and read what they are told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from agent.app.models import model_use
from agent.core.decision.decision import Channel, Choice, Decision, Person, Vote
from agent.core.diagnosis.model_request import Spend
from agent.core.incident.command import Command
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import Phase
from agent.core.plan.action import Action, SetConcurrency
from agent.errors import DependencyFailed, SreError
from agent.ports.logs import InstanceLog
from agent.ports.model import NoAnswer, Question, Reply
from agent.ports.stage_context import Owner, Rules
from agent.stages.incident_command import CommandRequest, carry_out
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.request_change import ChangeAsked, request_change
from agent.stages.shared.decision_request import NotRecorded
from tests.simulation.simulated import places
from tests.simulation.simulated.chaos import Died

if TYPE_CHECKING:
    from tests.simulation.simulated.driver import Simulation

PRESSES = 4
TEXTS = ("", "{", '{"class": "gpu_oom_load"', "I think the GPU is too small.", "<html>busy</html>", "[]" * 50)


@dataclass
class Pressed:
    """One person's word about a plan, and what they heard; ``proved`` by the channel where several must approve."""

    plan: str
    who: str
    answer: Choice
    withdraw: bool = False
    proved: bool = False
    heard: Decision | Vote | SreError | None = None


@dataclass
class People:
    """Everybody outside; also the model and the logs, which answer like people: late, wrongly or not."""

    simulation: Simulation = field(repr=False)
    pressed: list[Pressed] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    told: dict[str, str] = field(default_factory=dict)
    requested: set[str] = field(default_factory=set)  # of whose recording somebody heard
    acted: set[tuple[str, Phase, datetime]] = field(default_factory=set)

    def asked(self, plan: str) -> None:
        """Decide what becomes of a plan."""
        sim = self.simulation
        if plan in self.seen:
            return
        self.seen.add(plan)
        if sim.course.voters > 1:
            self._voting(plan)
            return
        for n in range(sim.chance.choice([0, 1, 1, 1, 2, 3]) if sim.course.yes < 1 else 1):
            yes = sim.course.answers.pop(0) if sim.course.answers else sim.chance.random() < sim.course.yes
            one = Pressed(plan, f"person-{n}", Choice.APPROVE if yes else Choice.REJECT)
            late = sim.chance.choice([5.0, 5.0, 60.0, 900.0, 1900.0]) if sim.course.yes < 1 else 5.0
            self.pressed.append(one)
            sim.plan(late, lambda one=one: self._press(one, PRESSES))

    def _voting(self, plan: str) -> None:
        """Let several people answer; one of them may take an approval back, and give it again."""
        sim = self.simulation
        for n in range(places.APPROVERS):
            yes = sim.chance.random() < max(sim.course.yes, 0.8)
            one = Pressed(plan, places.slack_id(n), Choice.APPROVE if yes else Choice.REJECT, proved=True)
            said = [(sim.chance.choice([5.0, 5.0, 40.0, 900.0]), one)]
            if n == 0 and yes and sim.chance.random() < 0.6:
                said.append((said[0][0] + sim.chance.choice([0.0, 10.0, 60.0]), replace(one, withdraw=True)))
                said.append((said[1][0] + sim.chance.choice([10.0, 600.0]), replace(one)))
            for late, word in said:
                self.pressed.append(word)
                sim.plan(late, lambda word=word: self._press(word, PRESSES))

    def ask_for(self, action: Action, left: int = PRESSES) -> None:
        """Ask for a change of the first service; who heard no answer asks the same again."""
        sim = self.simulation
        number = action.concurrency if isinstance(action, SetConcurrency) else 3
        asked = ChangeAsked(
            service=places.opening(sim.course.stories[0])[0],
            actions=(action,),
            why="asked in a simulation",
            by=Person(who=f"asker-{number % 2}", channel=Channel.COMMAND_LINE, verified=False),
            supersede=number % 3 == 0,
        )
        heard: Incident | SreError | None
        try:
            heard = sim.on_process(lambda app: request_change(app.contexts[Owner.DECIDE], asked))
        except Died:
            heard = None
        except SreError as error:
            heard = error
        sim.note("asked for", number, type(heard).__name__)
        if isinstance(heard, Incident):
            self.requested.add(heard.id)
        elif left and (heard is None or isinstance(heard, DependencyFailed)):
            sim.plan(20, lambda: self.ask_for(action, left - 1))

    def acted_on(self, incident: Incident) -> None:
        """Decide what somebody does about an incident that has just come to where people can do something."""
        if (incident.id, incident.phase, incident.phase_at) in self.acted:
            return
        self.acted.add((incident.id, incident.phase, incident.phase_at))
        sim, chance = self.simulation, self.simulation.acting
        by_person = incident.plan is not None and incident.plan.by_person
        first = Command.DONE if by_person else Command.ROLL_BACK
        ways = {Phase.VERIFYING: [None, first, first], Phase.ESCALATED: [None, Command.REPLAN, Command.CLOSE]}
        for n in range(2):  # two people, who may say different things at once
            command = chance.choice(ways.get(incident.phase, [None]))
            if command is not None:
                late = chance.choice([0.5, 5.0, 70.0])
                sim.plan(late, lambda command=command, n=n: self._act(incident, command, f"person-{n}", PRESSES))

    def _act(self, incident: Incident, command: Command, who: str, left: int) -> None:
        sim = self.simulation
        asked = CommandRequest(
            incident=incident.id,
            command=command,
            by=Person(who=who, channel=Channel.CONSOLE, verified=False),
            text="so",
            plan_digest=incident.plan.digest if incident.plan is not None and command is Command.DONE else None,
        )
        heard: object = None
        try:
            heard = sim.on_process(lambda app: carry_out(app.contexts[Owner.DECIDE], asked))
        except Died:
            pass
        except SreError as error:
            heard = error
        sim.note("acted", incident.id, command, who, type(heard).__name__)
        if left and (heard is None or isinstance(heard, DependencyFailed | NotRecorded)):
            sim.plan(20, lambda: self._act(incident, command, who, left - 1))

    def _press(self, one: Pressed, left: int) -> None:
        sim = self.simulation
        channel = Channel.SLACK if one.proved else Channel.COMMAND_LINE
        word = DecisionRequest(
            plan=one.plan,
            answer=one.answer,
            by=Person(who=one.who, channel=channel, verified=one.proved),
            withdraw=one.withdraw,
        )
        try:
            one.heard = sim.on_process(lambda app: plan_to_decision(app.contexts[Owner.DECIDE], word))
        except Died:
            one.heard = None
        except SreError as error:
            one.heard = error
        sim.note("pressed", one.plan, one.who, one.answer, type(one.heard).__name__)
        unsure = one.heard is None or isinstance(one.heard, DependencyFailed)
        if unsure and left:
            sim.plan(20, lambda: self._press(one, left - 1))

    def tell(self, incident: Incident, timeline: tuple[Event, ...], *, reference: str | None) -> str | None:
        self.told[incident.id] = incident.phase
        return reference or f"card-{incident.id}"

    def instance_log(self, service: str, **_: Any) -> InstanceLog | None:
        return None

    def knowing(self, known: Rules) -> Rules:
        if not self.simulation.course.model:
            return known
        from tests.simulation.simulated import places

        return replace(known, model_use=model_use(places.SETTINGS))

    def ask(self, question: Question) -> Reply:
        chance = self.simulation.chance
        spent = Spend(calls=1, tokens=500, seconds=chance.choice([1.0, 30.0]))
        if chance.random() < 0.4:
            raise NoAnswer("the model did not answer", why="asleep", hint="wake it", spent=spent, again=True)
        return Reply(
            text=chance.choice(TEXTS),
            model="stub",
            endpoint="http://127.0.0.1:1",
            tokens_in=400,
            tokens_out=100,
            took_s=spent.seconds,
            finished=chance.random() < 0.7,
            spent=spent,
        )

    def judged(self, reply: Reply, *, usable: bool) -> None:
        pass
