"""R1 on whole processes: each function is killed with SIGKILL between its effects; the journey ends, nothing twice."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.core.change.verification import Verdict
from agent.core.incident.phase import Phase
from tests import port_effects
from tests.free_port import free_port
from tests.journeys import deployed as processes

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
EXAMPLE = "gemma4-26b-l4-startup-probe"
SERVICE = "gemma4-26b-qat-l4"
KILLED = ("on_log_event", "on_incident", "on_decision", "on_tick")
FLIPS = (0, 1) if os.environ.get("SOAK") else (0,)

pytestmark = [pytest.mark.emulator, pytest.mark.xdist_group("emulator")]


def planned(flip):
    """Every effect of every function once, before it at one, after it at the next; those of the executor both ways."""
    whens = ("before", "after")
    names = [(function, label) for function in (*KILLED, "decide") for label in port_effects.effects()]
    points = {f"{function} {whens[(n + flip) % 2]} {label}" for n, (function, label) in enumerate(names)}
    return sorted(points | {f"on_decision {when} {label}" for when in whens for label in port_effects.effects()})


def test_every_method_of_a_port_is_known_to_read_or_is_an_effect():
    """A method that is taken out of a port is taken out here; a new one counts as an effect by itself."""
    for port in port_effects.PORTS:
        assert port_effects.READS[port] <= port_effects.methods(port)
    assert {"store.commit", "bus.publish", "platform.apply", "control.begin"} <= set(port_effects.effects())


@pytest.mark.parametrize("flip", FLIPS)
def test_killed_at_twenty_points_it_resumes_and_does_nothing_twice(pubsub_emulator, pubsub_project, tmp_path, flip):
    plan = tmp_path / "points" / "plan.json"
    plan.parent.mkdir()
    plan.write_text(json.dumps(planned(flip)))
    deployed = processes.Deployed(
        pubsub_emulator,
        f"{pubsub_project}-{flip}",
        tmp_path,
        EXAMPLE,
        free_port,
        functions=KILLED,
        source=HERE / "crashing.py",
        REHEARSAL_COMPRESSION="100",  # more, and what the killed lose counts as a rollout that never ended
        LEASE_S="2",  # whoever was killed holds its turn until then
        CRASH_PLAN=str(plan),
    )
    with contextlib.closing(deployed):
        journey(deployed)
    killed = sorted(path.name for path in plan.parent.iterdir() if path != plan)
    assert len(killed) >= 20, killed
    assert {point.split()[0] for point in killed} == {*KILLED, "decide"}
    assert any("platform.apply" in point for point in killed)


def journey(deployed):
    lines = (ROOT / "examples" / EXAMPLE / "events.jsonl").read_text().splitlines()
    for line in lines:
        deployed.sink(json.loads(line))
    # A signal that a killed function takes late withdraws the plan where it names another cause.
    asked = deployed.until(
        lambda i: i.phase is Phase.ASKED and i.received == i.diagnosed_count == len(lines), limit_s=120
    )
    answered(deployed, asked.plan.id)
    done = deployed.until(lambda i: i.ended, limit_s=180)
    assert (done.phase, done.verification.verdict) == (Phase.RESOLVED, Verdict.RECOVERED)
    once(deployed, done)


def answered(deployed, plan):
    """Press the button until it is answered; each time the deciding process may be killed."""
    environ = processes.clean_environ(**deployed.words, CRASH_FUNCTION="decide")
    for _ in range(12):
        run = subprocess.run(
            [sys.executable, HERE / "crashing.py", plan], check=False, env=environ, cwd=ROOT, capture_output=True
        )
        if run.returncode == 0:
            return
        assert run.returncode == -9, run.stderr.decode()[-2000:]
    raise AssertionError("never answered")


def once(deployed, done):
    """One incident, one decision, one revision of ours, one use of the receipt; no message and no body is left."""
    assert len(deployed.incidents()) == 1
    live = deployed.outside.environment.rehearsal.describe(SERVICE)
    assert live.ready is True
    assert list(live.stamps) == [done.execution.revision_after]
    timeline = [event.what for event in deployed.outside.store.timeline(done.id)]
    withdrawn = [what for what in timeline if what.startswith("plan withdrawn, new cause: ")]
    assert len(withdrawn) <= 1  # where the service's line came first: it alone does not tell what the revision's does
    assert [r.ended for r in done.remedies] == [*["SUPERSEDED"] * len(withdrawn), "RECOVERED"]
    assert done.plans_made == len(withdrawn) + 1
    control = deployed.decider.control
    assert len(control.limits(SERVICE, done.opened_at).service_changes) == 1
    assert deployed.outside.quarantine.rows() == ()
    with contextlib.suppress(OSError, http.client.HTTPException):
        deployed.minute()
    assert deployed.outside.store.unsent() == ()
    assert len([what for what in timeline if what.startswith("intends revision")]) == 1
    assert len([what for what in timeline if " approved by " in what]) == 1
    assert sorted(timeline) == sorted(set(timeline))
