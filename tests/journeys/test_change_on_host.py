"""A person asks for other flags of a server on this machine, while the watcher runs it: real processes, the typed commands."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from tests.journeys import watched as watched_module
from tests.journeys.watched import NAME, Watched

pytestmark = pytest.mark.watched

BEFORE, AFTER = "16384", "32768"
SERVICES = f"""[[service]]
name = "{NAME}"
platform = "host"
model = "google/gemma-3-1b-it"
checkpoint = "/models/gemma"
accelerator = "nvidia-l4"
vllm = "0.22.1"
owner = "console"
"""


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[[str], Watched]]:
    """Make a watched server that serves, on a machine on which contexts up to a length start."""
    made: list[Watched] = []

    def make(longest: str) -> Watched:
        services = tmp_path / "services.toml"
        services.write_text(SERVICES)
        own = watched_module.Watched(tmp_path, SERVICES=str(services), FAKE_FITS_LEN=longest)
        made.append(own)
        own.watch("--max-model-len", BEFORE)
        own.until(own.serving, "a serving server")
        return own

    yield make
    for one in made:
        one.close()


def change(own: Watched, *words: str) -> tuple[int, dict]:
    """Say it in another terminal; return the exit code and what was printed for programs."""
    command = [
        str(watched_module.AGENT),
        "change",
        NAME,
        *words,
        "--why",
        "longer documents",
        "--by",
        "grace",
        "--json",
    ]
    done = subprocess.run(
        command, env=own.environ, cwd=own.folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def context_of(own: Watched) -> str:
    """The context that the running process itself was started with."""
    words = Path(f"/proc/{own.server()}/cmdline").read_bytes().decode().split("\0")
    return words[words.index("--max-model-len") + 1]


def approved(own: Watched) -> Incident:
    """Ask, look at the plan, approve it, and wait for the end."""
    code, _ = change(own, "--set-flag", f"max-model-len={AFTER}")
    assert code == 0
    asked = own.until(own.asked, "a plan")
    assert isinstance(asked, Incident)
    assert asked.request is not None
    assert asked.plan is not None
    assert (asked.request.asker, asked.plan.proof, asked.cause) == ("grace", "computed", "change_requested")
    assert [(d.path, d.before, d.after) for d in asked.plan.difference] == [("flag --max-model-len", BEFORE, AFTER)]
    assert len(own.state().starts) == 1  # nothing happens before somebody approves it
    own.approve(asked.plan.id)
    done = own.until(own.ended, "an end")
    assert isinstance(done, Incident)
    return done


def test_a_requested_flag_restarts_the_supervised_server_once_and_is_verified(serving) -> None:
    """One more start, with the flag that was asked for; the process before it is gone; no incident."""
    own = serving("65536")
    before = own.processes()
    done = approved(own)
    assert done.phase is Phase.RESOLVED, done.ended_why
    assert [start.effect_key is not None for start in own.state().starts] == [False, True]
    assert (context_of(own), own.serving()) == (AFTER, True)
    assert len(own.processes()) == 2
    assert not set(before) & set(own.processes())
    assert [i.id for i in own.incidents()] == [done.id]


def test_where_the_server_does_not_come_up_the_flag_before_it_is_put_back(serving) -> None:
    """The arithmetic said that it fits, the machine says no: the former command serves again, and no plan follows."""
    own = serving("32640")
    done = approved(own)
    assert (done.phase, done.plans_made) == (Phase.CLOSED, 1), done.ended_why
    assert [start.effect_key is not None for start in own.state().starts] == [False, True, True]
    assert own.state().starts[1].ready_at is None
    assert (context_of(own), own.serving()) == (BEFORE, True)
    assert len(own.processes()) == 2
    assert [i.id for i in own.incidents()] == [done.id]


def test_a_context_that_does_not_fit_by_the_arithmetic_is_refused_and_touches_nothing(serving) -> None:
    """Said before anything is stored, with the nearest that does; the server runs on."""
    own = serving("65536")
    before = own.processes()
    command = [str(watched_module.AGENT), "change", NAME, "--set-flag", "max-model-len=10000000", "--why", "all of it"]
    done = subprocess.run(
        command, env=own.environ, cwd=own.folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, "was refused" in done.stderr) == (1, True), done.stderr
    assert (own.incidents(), own.processes(), len(own.state().starts)) == ((), before, 1)
