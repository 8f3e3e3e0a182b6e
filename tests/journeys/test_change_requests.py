"""From a person's request to a verified change, or back to what was before, on a simulated service without any trouble."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format

from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.app import build_app_in_memory
from agent.app.catalogues import read_services
from agent.app.runtime_environment import RuntimeEnvironment, open_environment
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.phase import Phase
from agent.core.plan.action import Lifecycle, LifecycleOperation, Restart, SetConcurrency, SetFlag, SetScaling
from agent.core.planning.creation import creation
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.service import publish_example
from agent.errors import PolicyRefused
from agent.ports.control import KillSwitch
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from agent.stages.request_change import ChangeAsked, request_change
from tests.contracts import cloud_run_world as worlds
from tests.journeys.conftest import Journey

ROOT = Path(__file__).resolve().parents[2]
PROBE, CONTEXT = "gemma4-26b-l4-startup-probe", "gemma4-26b-l4-context-refused"
SERVICE = "gemma4-26b-qat-l4"
LONGER = (SetFlag(name="max-model-len", value="32768"),)


@pytest.fixture
def quiet(tmp_path: Path):
    """Make a journey of an example whose recorded events nobody has published."""

    def make(
        example: str, *, environment: Callable[..., RuntimeEnvironment] | None = None, **overrides: object
    ) -> Journey:
        settings = read_settings({}, platform=f"rehearsal:{ROOT / 'examples' / example}", **overrides)
        clock = SteppedClock(datetime(2026, 11, 22, 3, 0, tzinfo=UTC))
        parts = {"environment": environment(settings.with_(store=f"sqlite:{tmp_path}"), clock)} if environment else {}
        return Journey(build_app_in_memory(settings, clock=clock, state=tmp_path, **parts), clock)

    return make


@pytest.fixture
def on_the_wire(quiet) -> Iterator[Callable[[], tuple[Journey, Any]]]:
    """The service behind Cloud Run's own wire, serving; its logs stay the recorded ones."""
    made: list[Any] = []

    def environment(settings, clock) -> RuntimeEnvironment:
        scenario = load_scenario(ROOT / "examples" / CONTEXT / "scenario.toml")
        body = worlds.body_of(scenario.service, scenario.live.config, ready=True)
        made.append(worlds.CloudRunWorld(scenario.service, recorded=body, watch=clock))
        platform = made[0].open()
        logs = open_environment(settings, read_services(settings), clock).logs
        return RuntimeEnvironment(platform_of=lambda name: platform if name == scenario.service else None, logs=logs)

    yield lambda: (quiet(CONTEXT, environment=environment), made[0])
    for world in made:
        world.close()


def ask(told: Journey, actions, *, who="ada", channel=Channel.COMMAND_LINE, **more):
    """Ask for a change; return its id."""
    asked = ChangeAsked(
        service=SERVICE,
        actions=actions,
        why="asked in a test",
        by=Person(who=who, channel=channel, verified=False),
        **more,
    )
    return request_change(told.installation.contexts[Owner.DECIDE], asked).id


def load(told: Journey, request: str):
    return told.installation.store.load(request)


def go_on(told: Journey, request: str, reached, *, limit_s: int = 7200):
    """Let time go by until a request is as wanted."""
    for _ in range(limit_s):
        told.go(1)
        if reached(load(told, request)):
            return load(told, request)
    raise AssertionError(f"not reached: {[(i.id, i.phase, i.ended_why) for i in told.incidents()]}")


def live(told: Journey):
    return told.installation.environment.rehearsal.describe(SERVICE)


def test_a_request_is_proved_approved_applied_and_verified(quiet) -> None:
    """One plan with its proof, one approval, one revision, and a measured end; no incident, no remedy, no model."""
    told = quiet(CONTEXT)
    before = live(told)
    request = ask(told, LONGER)
    plan = go_on(told, request, lambda i: i.phase is Phase.ASKED).plan
    assert (plan.proof, plan.asked_by, plan.cause) == ("computed", "ada", "change_requested")
    assert [(d.path, d.before, d.after) for d in plan.difference] == [("flag --max-model-len", "16384", "32768")]
    told.answer(plan.id, who="ben")
    done = go_on(told, request, lambda i: i.ended)
    assert done.phase is Phase.RESOLVED, done.ended_why
    after = live(told)
    assert (after.ready, len(after.stamps), after.generation) == (True, 1, before.generation + 1)
    assert (done.remedies, done.diagnosis, done.model_request) == ((), None, None)
    assert [i.id for i in told.incidents()] == [request]


def test_a_change_that_does_not_work_is_undone_and_closed(quiet) -> None:
    """Nobody recorded how that starts: it is not known to work, so the former template serves again."""
    told = quiet(CONTEXT, rehearse_by_fit=False)
    before = live(told)
    request = ask(told, (SetFlag(name="max-model-len", value="20000"),))
    told.answer(go_on(told, request, lambda i: i.phase is Phase.ASKED).plan.id, who="ben")
    done = go_on(told, request, lambda i: i.ended)
    assert (done.phase, done.plans_made) == (Phase.CLOSED, 1)
    assert live(told).config == before.config
    assert "the prior template" in done.ended_why


@pytest.mark.parametrize(("up", "end"), [(True, Phase.RESOLVED), (False, Phase.CLOSED)], ids=["works", "does not"])
def test_on_cloud_runs_wire_it_is_one_update_or_there_and_back(on_the_wire, up: bool, end: Phase) -> None:
    """Exactly the flag that was asked for is sent, once; where it does not come up, the prior template is put back."""
    told, world = on_the_wire()
    world.fate = worlds.server.Fate(up=up, after_s=300)
    before = world.open().describe(world.service)
    request = ask(told, LONGER, target=before.target)
    told.answer(go_on(told, request, lambda i: i.phase is Phase.ASKED).plan.id, who="ben")
    for _ in range(400):
        told.go(20, step=20)
        if world.stand_in.updates:
            world.fate = worlds.server.Fate(up=True, after_s=300)  # the prior template came up before
        if load(told, request).ended:
            break
    done = load(told, request)
    assert done.phase is end, done.ended_why
    assert len(world.stand_in.updates) == (1 if up else 2)
    args = world.open().describe(world.service).config.args
    assert ("32768" in " ".join(args)) is up
    sent = json_format.MessageToDict(world.stand_in.updates[0].service.template)
    assert "--max-model-len 32768" in " ".join(sent["containers"][0]["args"]).replace("=", " ")


def test_a_request_beside_an_incident_is_told_superseding_it_and_neither_is_lost(quiet) -> None:
    """The request takes the place of the incident's plan; when it is closed, the incident gets a plan again."""
    told = quiet(PROBE)
    publish_example(told.installation, ROOT / "examples" / PROBE)
    incident = told.until(lambda i: i.phase is Phase.ASKED)
    request = ask(told, LONGER, supersede=True)
    asked = go_on(told, request, lambda i: i.phase is Phase.ASKED)
    assert load(told, incident.id).phase is Phase.SUPERSEDED
    told.go(120)
    assert load(told, incident.id).phase is Phase.SUPERSEDED
    told.answer(asked.plan.id, Choice.REJECT, who="ben", why="first the trouble")
    go_on(told, request, lambda i: i.phase is Phase.CLOSED)
    again = go_on(told, incident.id, lambda i: i.phase is Phase.ASKED)
    told.answer(again.plan.id, who="ben")
    assert go_on(told, incident.id, lambda i: i.ended).phase is Phase.RESOLVED


def test_behind_a_change_under_way_a_request_waits_its_turn_and_the_window(quiet) -> None:
    """Two people at once: the second waits for the first, then for the limit of changes, and both end well."""
    told = quiet(CONTEXT)
    first = ask(told, LONGER)
    told.answer(go_on(told, first, lambda i: i.phase is Phase.ASKED).plan.id, who="ben")
    go_on(told, first, lambda i: i.phase is Phase.APPLYING)
    second = ask(told, (SetConcurrency(concurrency=2),), who="grace")
    told.go(5)
    assert load(told, second).phase is Phase.OPEN
    assert load(told, first).phase is Phase.APPLYING
    assert go_on(told, first, lambda i: i.ended).phase is Phase.RESOLVED
    told.answer(go_on(told, second, lambda i: i.phase is Phase.ASKED).plan.id, who="ben")
    assert go_on(told, second, lambda i: i.ended).phase is Phase.RESOLVED
    assert live(told).config.concurrency == 2


def test_the_kill_switch_stops_a_request_too(quiet) -> None:
    told = quiet(CONTEXT)
    request = ask(told, (Restart(),))
    plan = go_on(told, request, lambda i: i.phase is Phase.ASKED).plan
    told.installation.control.set_kill_switch(KillSwitch(on=True, by="ben", why="stop"))
    with pytest.raises(PolicyRefused, match="kill switch is on"):
        told.answer(plan.id, who="ben")
    assert live(told).stamps == {}


def test_nobody_answers_and_it_is_closed(quiet) -> None:
    told = quiet(CONTEXT)
    request = ask(told, (SetScaling(min_instances=0, max_instances=2),))
    go_on(told, request, lambda i: i.phase is Phase.ASKED)
    told.clock.step(1801)
    done = go_on(told, request, lambda i: i.ended, limit_s=120)
    assert (done.phase, done.ended_why) == (Phase.CLOSED, "nobody answered in time")
    assert live(told).stamps == {}


def test_an_ai_client_asks_and_its_person_alone_does_not_approve(quiet) -> None:
    told = quiet(CONTEXT)
    request = ask(told, LONGER, channel=Channel.MCP)
    plan = go_on(told, request, lambda i: i.phase is Phase.ASKED).plan
    with pytest.raises(PolicyRefused, match="who asks does not approve"):
        told.answer(plan.id, who="ada")
    told.answer(plan.id, who="ben")
    assert go_on(told, request, lambda i: i.ended).phase is Phase.RESOLVED


def test_a_service_is_deleted_and_created_again_on_the_rehearsal(quiet, tmp_path: Path) -> None:
    """Each asked for, approved and verified; typed twice the creation is one request, and then nothing is left to do."""
    policy = f'lifecycle = ["{SERVICE}"]\naccelerators = ["nvidia-l4"]\nchange_window_s = 1\n'
    (tmp_path / "policy.toml").write_text(policy)
    told = quiet(CONTEXT, policy=tmp_path / "policy.toml")

    def done(request: str):
        told.answer(go_on(told, request, lambda i: i.phase is Phase.ASKED).plan.id, who="ben")
        return go_on(told, request, lambda i: i.ended)

    gone = done(ask(told, (Lifecycle(operation=LifecycleOperation.DELETE, confirmed=SERVICE),)))
    assert (gone.phase, gone.ended_why) == (Phase.RESOLVED, f"the platform does not have {SERVICE} any more")
    rules = told.installation.rules
    made = (creation(rules.services.service(SERVICE), rules.fits),)
    request = ask(told, made)
    assert ask(told, made) == request
    created = done(request)
    assert (created.phase, created.plan.proof) == (Phase.RESOLVED, "computed"), created.ended_why
    assert live(told).config == made[0].config
    again = go_on(told, ask(told, made), lambda i: i.ended)
    assert (again.phase, again.ended_why.partition(";")[0]) == (Phase.CLOSED, f"{SERVICE} exists")
