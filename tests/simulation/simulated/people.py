"""The people around the service: they answer, press twice, answer too late, and read what they are told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agent.app.models import model_use
from agent.core.decision.decision import Channel, Choice, Decision
from agent.core.diagnosis.model_request import Spend
from agent.core.incident.incident import Event, Incident
from agent.core.plan.action import SetConcurrency
from agent.errors import DependencyFailed, SreError
from agent.ports.logs import InstanceLog
from agent.ports.model import NoAnswer, Question, Reply
from agent.ports.stage_context import Owner, Rules
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from agent.stages.request_change import ChangeAsked, request_change
from tests.simulation.simulated import places
from tests.simulation.simulated.chaos import Died

if TYPE_CHECKING:
    from tests.simulation.simulated.driver import Simulation

PRESSES = 4
TEXTS = ("", "{", '{"class": "gpu_oom_load"', "I think the GPU is too small.", "<html>busy</html>", "[]" * 50)


@dataclass
class Pressed:
    """One person's word about a plan, and what they heard."""

    plan: str
    who: str
    answer: Choice
    heard: Decision | SreError | None = None


@dataclass
class People:
    """Everybody outside; also the model and the logs, which answer like people: late, wrongly or not."""

    simulation: Simulation = field(repr=False)
    pressed: list[Pressed] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    told: dict[str, str] = field(default_factory=dict)
    requested: set[str] = field(default_factory=set)  # of whose recording somebody heard

    def asked(self, plan: str) -> None:
        """Decide what becomes of a plan."""
        sim = self.simulation
        if plan in self.seen:
            return
        self.seen.add(plan)
        for n in range(sim.chance.choice([0, 1, 1, 1, 2, 3]) if sim.course.yes < 1 else 1):
            yes = sim.course.answers.pop(0) if sim.course.answers else sim.chance.random() < sim.course.yes
            one = Pressed(plan, f"person-{n}", Choice.APPROVE if yes else Choice.REJECT)
            late = sim.chance.choice([5.0, 5.0, 60.0, 900.0, 1900.0]) if sim.course.yes < 1 else 5.0
            self.pressed.append(one)
            sim.plan(late, lambda one=one: self._press(one, PRESSES))

    def ask_for(self, value: int, left: int = PRESSES) -> None:
        """Ask for another concurrency of the first service; who heard no answer asks the same again."""
        sim = self.simulation
        asked = ChangeAsked(
            service=places.opening(sim.course.stories[0])[0],
            actions=(SetConcurrency(concurrency=value),),
            why="asked in a simulation",
            who=f"asker-{value % 2}",
            channel=Channel.COMMAND_LINE,
            verified=False,
            supersede=value % 3 == 0,
        )
        heard: Incident | SreError | None
        try:
            heard = sim.on_process(lambda app: request_change(app.contexts[Owner.DECIDE], asked))
        except Died:
            heard = None
        except SreError as error:
            heard = error
        sim.note("asked for", value, type(heard).__name__)
        if isinstance(heard, Incident):
            self.requested.add(heard.id)
        elif left and (heard is None or isinstance(heard, DependencyFailed)):
            sim.plan(20, lambda: self.ask_for(value, left - 1))

    def _press(self, one: Pressed, left: int) -> None:
        sim = self.simulation
        word = DecisionRequest(
            plan=one.plan, answer=one.answer, who=one.who, channel=Channel.COMMAND_LINE, verified=False
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
