"""A server on this machine, broken in every way and mended, by the command that an operator types."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.core.incident.phase import Phase
from tests.journeys import watched as watched_module

pytestmark = pytest.mark.watched

HERE = Path(__file__).resolve().parent


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Callable]:
    made = []

    def make(**environ: str):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(watched_module.Watched(folder, **environ))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.journey
def test_a_context_that_does_not_fit_is_lowered_and_serves(watched) -> None:
    """From the first line to a verified recovery; every word of the plan came from the log."""
    own = watched()
    own.watch("--max-model-len", "131072")
    asked = own.until(own.asked, "a plan")
    assert asked.cause == "kv_cache_insufficient"
    assert [(a.name, a.value) for a in asked.plan.actions] == [("max-model-len", "32640")]
    own.approve(asked.plan.id)
    done = own.until(own.ended, "an end")
    assert done.phase is Phase.RESOLVED
    assert len(own.incidents()) == 1
    assert own.serving()
    assert len(own.processes()) == 2


def test_a_killed_engine_is_started_again(watched) -> None:
    """Exit code 0 after the engine's death is no health: one incident, one restart."""
    own = watched()
    own.watch("--max-model-len", "2048")
    own.until(own.serving, "a serving server")
    engine = next(p for p in own.processes() if p != own.server())
    os.kill(engine, signal.SIGKILL)
    asked = own.until(own.asked, "a plan")
    assert asked.cause == "engine_dead"
    assert [a.kind for a in asked.plan.actions] == ["restart"]
    own.approve(asked.plan.id)
    assert own.until(own.ended, "an end").phase is Phase.RESOLVED


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder whose path speaks of no shared memory, which would be another trouble."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


def test_a_person_mends_and_says_so(watched, on_disk: Path) -> None:
    """Unreadable weights are a person's to mend; their yes starts the same words again."""
    weights = on_disk / "model.safetensors"
    own = watched(FAKE_READABLE=str(weights))
    own.watch("--max-model-len", "2048")
    asked = own.until(own.asked, "a plan")
    assert asked.cause == "weights_unreadable"
    assert asked.plan.by_person
    weights.touch()
    own.approve(asked.plan.id)
    done = own.until(own.ended, "an end")
    assert done.phase is Phase.RESOLVED
    assert len(own.state().starts) == 2


def test_a_killed_watcher_leaves_the_server_and_the_next_one_takes_over(watched) -> None:
    """The same process serves on; the successor starts nothing, and still sees its end."""
    own = watched()
    own.watch("--max-model-len", "2048")
    own.until(own.serving, "a serving server")
    before = own.processes()
    own.kill_watcher()
    assert own.processes() == before
    own.watch("--max-model-len", "2048")
    own.until(lambda: "took over" in own.said.read_text(), "the successor")
    assert own.processes() == before
    assert len(own.state().starts) == 1
    os.kill(own.server(), signal.SIGKILL)
    asked = own.until(own.asked, "a plan")
    own.approve(asked.plan.id)
    assert own.until(own.ended, "an end").phase is Phase.RESOLVED


def test_a_running_server_is_taken_over_while_its_program_is_replaced(watched) -> None:
    """The successor starts nothing, so it does not ask for what would be started: an upgrade may be under way."""
    own = watched()
    program = own.folder / "serve.sh"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {watched_module.FAKE} "$@"\n')
    program.chmod(0o755)
    words = own.words()
    own.words = lambda *_: [str(program), *words[2:]]
    own.watch()
    own.until(own.serving, "a serving server")
    before = own.processes()
    own.kill_watcher()
    program.unlink()
    own.watch()
    own.until(lambda: "took over" in own.said.read_text() or own.watcher.poll() is not None, "the successor")
    assert "took over" in own.said.read_text()
    assert own.processes() == before


def test_a_server_that_died_unwatched_is_told_of(watched) -> None:
    """Watcher and server both gone: the successor tells the end before it starts anything new."""
    own = watched()
    own.watch("--max-model-len", "2048")
    own.until(own.serving, "a serving server")
    own.kill_watcher()
    os.kill(own.server(), signal.SIGKILL)
    own.until(lambda: not own.processes(), "nothing left")
    own.watch("--max-model-len", "2048")
    own.until(lambda: own.serving() and len(own.state().starts) == 2, "the second start")
    own.until(own.incidents, "an incident")
    assert len(own.processes()) == 2


MOMENTS = [n / 10 for n in range(30)] if os.environ.get("SOAK") else [0.0, 0.4, 1.2]


@pytest.mark.parametrize("after_s", MOMENTS)
def test_a_watcher_killed_at_any_time_makes_no_second_server(watched, after_s: float) -> None:
    """While it starts, restarts or verifies: at most one server, and the incident goes on to its end."""
    own = watched(FAKE_START_S="0.3")
    own.watch("--max-model-len", "131072")
    asked = own.until(own.asked, "a plan")
    own.approve(asked.plan.id)
    time.sleep(after_s)  # the moment of the kill is what this test is about
    own.kill_watcher()
    assert len(own.processes()) <= 2
    own.watch("--max-model-len", "131072")
    changed_once(own, own.until(own.ended, "an end"))


def changed_once(own, done) -> None:
    """One incident, one server, and no start but the one of the change."""
    assert done.phase is Phase.RESOLVED
    assert len(own.incidents()) == 1
    assert len(own.processes()) == 2
    assert [s.effect_key is not None for s in own.state().starts] == [False, True]


def test_an_approval_that_nobody_carried_out_is_carried_out_by_the_next_watcher(watched) -> None:
    """The server that is gone is not started as it was: the approved change starts it."""
    own = watched()
    own.watch("--max-model-len", "131072")
    asked = own.until(own.asked, "a plan")
    own.kill_watcher()
    own.approve(asked.plan.id)
    own.watch("--max-model-len", "131072")
    changed_once(own, own.until(own.ended, "an end"))


def test_the_command_typed_again_while_a_plan_needs_approval_starts_nothing(watched) -> None:
    """A start by hand would make the offered plan worthless; the person is told, and the answer still counts."""
    own = watched()
    own.watch("--max-model-len", "131072")
    asked = own.until(own.asked, "a plan")
    own.kill_watcher()
    own.watch("--max-model-len", "131072")
    own.until(lambda: "is not started" in own.said.read_text(), "what is told")
    assert f"plan {asked.plan.id} changes it" in own.said.read_text()
    assert len(own.state().starts) == 1
    own.approve(asked.plan.id)
    changed_once(own, own.until(own.ended, "an end"))


EFFECTS = ["before platform.apply", "after platform.apply"]
if os.environ.get("SOAK"):
    EFFECTS += [f"{when} {effect}" for when in ("before", "after") for effect in ("control.begin", "store.commit")]


@pytest.mark.parametrize("point", EFFECTS)
def test_a_watcher_killed_at_an_effect_of_a_change_makes_it_once(watched, tmp_path: Path, point: str) -> None:
    """SIGKILL right before or after it, with the change approved: the next watcher goes on."""
    plan = tmp_path / "points" / "plan.json"
    plan.parent.mkdir()
    crash = {"CRASH_PLAN": str(plan), "CRASH_FUNCTION": "watch", "PYTHONPATH": str(HERE.parents[1])}
    own = watched(**crash, LEASE_S="2")  # what the killed one held is free by then
    plan.write_text("[]")
    own.watch("--max-model-len", "131072")
    asked = own.until(own.asked, "a plan")
    own.kill_watcher()
    own.approve(asked.plan.id)
    plan.write_text(json.dumps([f"watch {point}"]))
    killed = own.watch("--max-model-len", "131072", program=(sys.executable, str(HERE / "crashing.py")))
    assert killed.wait(60) == -signal.SIGKILL
    own.watch("--max-model-len", "131072")
    changed_once(own, own.until(own.ended, "an end"))


def test_two_watchers_of_one_server_are_one_too_many(watched) -> None:
    """The second one says who has it, and touches nothing."""
    own = watched()
    first = own.watch("--max-model-len", "2048")
    own.until(own.serving, "a serving server")
    before = own.processes()
    second = own.watch("--max-model-len", "2048")
    assert second.wait(60) == 2
    assert "another watcher holds it" in own.said.read_text()
    assert own.processes() == before
    own.watcher = first


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=["SIGTERM", "SIGHUP", "SIGINT"])
def test_who_ends_the_watching_is_said_and_what_becomes_of_the_server(watched, number) -> None:
    """A closed terminal is no reason to end without a word, and none to end the server."""
    own = watched()
    own.watch("--max-model-len", "2048")
    own.until(own.serving, "a serving server")
    assert own.kill_watcher(number) == 0
    assert f"{number.name}" in own.said.read_text().splitlines()[-1]
    assert "the server keeps running" in own.said.read_text().splitlines()[-1]
    assert len(own.processes()) == 2
    assert own.incidents() == ()


def test_who_ignores_sighup_goes_on(watched) -> None:
    """Started by nohup, the watcher outlives its terminal."""
    own = watched()
    own.watch("--max-model-len", "2048", program=("nohup", str(watched_module.AGENT)))
    own.until(own.serving, "a serving server")
    own.watcher.send_signal(signal.SIGHUP)
    os.kill(own.server(), signal.SIGKILL)
    assert own.until(own.asked, "a plan").cause == "host_oom"


LAST = {
    "resource_tracker": "UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects to clean up",
    "shutdown": "INFO:     Application shutdown complete.",
    "nccl": "Warning: WARNING: destroy_process_group() was not called before program exit",
}
PRINTS = "import os,sys; os.write(1, b'INFO 11-22 03:00:00 [utils.py:306] version 0.32.0\\n' + %s); %s"
BYES = {
    "exit 1": ("sys.exit(1)", "unknown"),
    "exit 0": ("sys.exit(0)", "unknown"),
    "SIGKILL": ("os.kill(os.getpid(), 9)", "host_oom"),
}


@pytest.mark.parametrize(
    ("last", "bye"),
    [("resource_tracker", "exit 1"), ("shutdown", "exit 0"), ("nccl", "SIGKILL"), ("binary", "exit 1")],
)
def test_a_server_that_ends_unasked_is_told_of_within_15_s(watched, last, bye) -> None:
    """As an operator meets it: real processes, and a last line that looks harmless."""
    ends, cause = BYES[bye]
    said = "bytes(range(256)) * 5000" if last == "binary" else repr(LAST[last].encode() + b"\n")
    own = watched()
    own.words = lambda: [sys.executable, "-c", PRINTS % (said, ends), "serve", "/models/gemma"]
    own.watch()
    state = own.until(lambda: (p := own.state()) and p.newest and p.newest.ended_at and p, "the end")
    incident = own.until(lambda: next((i for i in own.incidents() if i.diagnosis), None), "a diagnosis")
    assert (incident.opened_at - state.newest.ended_at).total_seconds() <= 15
    assert incident.cause == cause
    assert len(own.incidents()) == 1


def test_somebody_elses_server_that_is_gone_is_told_of_within_15_s(watched, tmp_path: Path) -> None:
    """Nobody tells the watcher of its end, and its log says nothing: nothing answers on its port any more."""
    own = watched()
    log = tmp_path / "vllm.log"
    words = own.words("--max-model-len", "2048")
    with log.open("wb") as out, subprocess.Popen(words, stdout=out, stderr=out, start_new_session=True) as server:
        try:
            own.follow(log, "--", *words)
            own.until(own.serving, "a serving server")
            os.killpg(server.pid, signal.SIGKILL)
            gone = time.monotonic()
            own.until(own.incidents, "an incident")
            assert time.monotonic() - gone <= 15 + 1  # a second for the look of the test itself
        finally:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)


def test_auto_goes_as_far_as_the_policy_and_no_further(watched) -> None:
    """Restarts are automatic by policy, flags are not; without --auto nothing is."""
    rules = '[[rules]]\nservices = ["gemma"]\nkinds = ["restart"]\nmode = "automatic"\n'
    own = watched()
    own.policy.write_text(own.policy.read_text() + rules)
    own.watch("--max-model-len", "2048", before=("--auto",))
    own.until(own.serving, "a serving server")
    os.kill(own.server(), signal.SIGKILL)
    done = own.until(own.ended, "an end")
    assert done.phase is Phase.RESOLVED
    assert done.decision.who == "policy"
    own.kill_watcher(signal.SIGTERM)
    own.watch("--max-model-len", "2048")
    own.until(lambda: own.said.read_text().count("took over") == 1, "the successor")
    os.kill(own.server(), signal.SIGKILL)
    assert own.until(own.asked, "a question").decision is None


@pytest.mark.journey
def test_a_healthy_server_makes_no_incident(watched) -> None:
    """It starts, serves, is checked, and nobody is told anything."""
    own = watched()
    own.watch("--max-model-len", "2048")
    own.until(own.serving, "a serving server")
    own.until(lambda: "serving (gemma-1)" in own.said.read_text(), "the view")
    own.kill_watcher(signal.SIGTERM)
    assert own.incidents() == ()
    assert "\x1b" not in own.said.read_text()


def test_a_published_log_ends_with_its_cause_and_a_plan_that_fits(watched, tmp_path: Path) -> None:
    """Two cards of 16 GB, followed from the log alone: what is too large, and flags that fit by the arithmetic."""
    example = HERE.parents[1] / "examples" / "gemma4-31b-nvfp4-two-16gb-cards"
    log = tmp_path / "vllm.log"
    log.write_text((example / "instance.log").read_text())
    services = (example / "services.toml").read_text().replace('scenario = "scenario.toml"\n', "")
    own = watched(SERVICES=str(tmp_path / "services.toml"))
    (tmp_path / "services.toml").write_text(services.replace('"gemma4-31b-nvfp4"', '"gemma"'))
    own.follow(log)
    asked = own.until(own.asked, "a plan")
    assert asked.cause == "gpu_oom_weights"
    assert asked.plan.fit_before.fits is False
    assert asked.plan.fit_after.fits is True
    flags = [a.name for a in asked.plan.actions if a.kind == "set_flag"]
    assert flags
    assert set(flags) - {"gpu-memory-utilization", "max-model-len", "max-num-seqs"}


def test_somebody_elses_server_is_restarted_by_the_operators_fixed_words(watched, tmp_path: Path) -> None:
    """The restart command runs as it stands; what is to be started lies in a file beside the record."""
    log, proof = tmp_path / "vllm.log", tmp_path / "restarted"
    log.write_text("")
    script = tmp_path / "restart.sh"
    own = watched(RESTART_COMMAND=f"/bin/sh {script}")
    script.write_text(
        f'cp "$SRE_AGENT_COMMAND" {proof}\nsetsid sh -c \'echo $$ >{proof}.pid; exec sh "$SRE_AGENT_COMMAND" >>{log} 2>&1\' &\n'
    )
    own.follow(log, "--", *own.words("--max-model-len", "131072"))
    own.until(lambda: "follows the log" in own.said.read_text(), "the watcher")
    head = "(EngineCore pid=7) ERROR 11-21 03:34:34 [core.py:1510] "
    with log.open("a") as file:
        file.write(f"{head}EngineCore failed to start.\n")
        file.write(
            f"{head}ValueError: To serve at least one request with the model's max seq len (131072), (4.0 GiB KV cache is "
            "needed, which is larger than the available KV cache memory (1.0 GiB). Based on the available memory, the "
            "estimated maximum model length is 32640.\n"
        )
    asked = own.until(own.asked, "a plan")
    own.approve(asked.plan.id)
    try:
        assert own.until(own.ended, "an end").phase is Phase.RESOLVED
        assert "--max-model-len 32640" in proof.read_text()
    finally:
        os.killpg(int(Path(f"{proof}.pid").read_text()), signal.SIGTERM)
