"""A server of this machine: owned by its mark, ended whole, judged by its own port, never doubled."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.adapters.clock import SystemClock
from agent.adapters.platform.host import supervisor
from agent.adapters.platform.host.health_check import HealthCheck
from agent.adapters.platform.host.platform import HostPlatform
from agent.adapters.platform.host.process import processes_of_start
from agent.adapters.platform.host.server import HostServer
from agent.core.change.verification import Check
from agent.core.plan.action import SetFlag
from agent.core.service.serving import ServingConfig
from agent.errors import InputRejected, StateConflict
from agent.ports.host import Stage, Start
from agent.ports.platform import Order
from tests import waiting
from tests.leases import HELD

ROOT = Path(__file__).resolve().parents[5]
FAKE = ROOT / "tests" / "fake_vllm.py"
SERVICE = "gemma"
LIMIT_S = 30.0


def until(what: str, reached: Callable[[], object]) -> object:
    return waiting.until(reached, lambda: what)


class Machine:
    """One server of the fake program on a free port."""

    def __init__(self, folder: Path, **environ: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.folder = folder
        self.environ = {**os.environ, **environ}
        self.config = self.words()
        self.platform = self.open()

    def words(self, *more: str) -> ServingConfig:
        args = ("serve", "/models/gemma", "--max-model-len", "2048", "--port", str(self.port), *more)
        return ServingConfig(command=(sys.executable, str(FAKE)), args=args)

    def open(self) -> HostPlatform:
        return HostPlatform(self.folder, SystemClock(), self.environ, grace_s=0.5)

    @property
    def newest(self) -> Start:
        found = self.platform.settled(SERVICE).newest
        assert found is not None
        return found

    def processes(self) -> tuple[int, ...]:
        page = self.platform.settled(SERVICE)
        server = HostServer(self.folder / SERVICE, self.environ)
        return tuple(
            p.pid for start in page.starts for p in processes_of_start(start.mark, server.record_of(start).supervisor)
        )

    def supervisor(self) -> int:
        kept = HostServer(self.folder / SERVICE, self.environ).record_of(self.newest)
        assert kept.supervisor is not None
        return kept.supervisor

    def server(self) -> int:
        kept = HostServer(self.folder / SERVICE, self.environ).record_of(self.newest)
        assert kept.server is not None
        return kept.server

    def start(self) -> None:
        self.platform.open(SERVICE, self.config)
        until("it serves", lambda: self.newest.stage is Stage.READY)

    def close(self) -> None:
        if self.platform.knows(SERVICE):
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
            self.platform.stop(SERVICE)
            until("it is gone", lambda: self.newest.stage is Stage.ENDED and not self.processes())


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    made: list[Machine] = []

    def make(**environ: str) -> Machine:
        made.append(Machine(tmp_path / str(len(made)), **environ))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_exit_code_0_is_no_health(machine) -> None:
    """The engine was killed: 503, then the server ends with 0, and that is an end like any other."""
    own = machine()
    own.start()
    engine = next(p for p in own.processes() if p != own.server())
    os.kill(engine, signal.SIGKILL)
    until("it ended", lambda: own.newest.stage is Stage.ENDED)
    assert own.newest.exit_code == 0
    assert Path(own.platform.describe(SERVICE).log_path).read_text()
    assert "exit code 0" in own.newest.says
    assert own.platform.describe(SERVICE).ready is False
    (ready,) = own.platform.measure(SERVICE, own.newest.revision)
    assert (ready.check, ready.good) == (Check.READY, False)


def test_a_killed_server_leaves_no_orphan(machine) -> None:
    """SIGKILL to the API server alone: its engine goes too, and the next start has its port."""
    own = machine()
    own.start()
    os.kill(own.server(), signal.SIGKILL)
    until("it ended", lambda: own.newest.stage is Stage.ENDED)
    assert own.newest.exit_code == -signal.SIGKILL
    assert "SIGKILL" in own.newest.says
    own.platform.again(SERVICE)
    until("it serves again", lambda: own.newest.stage is Stage.READY)
    assert len(own.processes()) == 2


def test_a_stopped_engine_and_a_deaf_server_are_ended_by_force(machine) -> None:
    """What does not hear SIGTERM is killed after the grace, the engine with it."""
    own = machine(FAKE_STUBBORN="1")
    own.start()
    engine = next(p for p in own.processes() if p != own.server())
    os.kill(engine, signal.SIGSTOP)
    own.platform.stop(SERVICE)
    until("it ended", lambda: own.newest.stage is Stage.ENDED)
    assert own.processes() == ()
    assert own.newest.on_purpose


def test_a_killed_supervisor_is_noticed_and_nothing_stays(machine) -> None:
    """The one who would tell how it ended is gone: the server is still known by its mark, and can be ended."""
    own = machine()
    own.start()
    os.kill(own.supervisor(), signal.SIGKILL)
    assert own.newest.stage is Stage.READY
    os.kill(own.server(), signal.SIGKILL)
    until("it ended", lambda: own.newest.stage is Stage.ENDED)
    assert "nobody saw how" in own.newest.says
    until("no orphan", lambda: own.processes() == ())


def test_another_server_on_the_port_is_not_ours(machine) -> None:
    """Something else answers 200 on our port: that is nobody's recovery."""
    own = machine()
    with subprocess.Popen(
        [sys.executable, str(FAKE), "serve", "m", "--port", str(own.port)], stdout=subprocess.DEVNULL
    ) as other:
        try:
            until("the other serves", lambda: _listens(own.port))
            own.platform.open(SERVICE, own.config)
            until("ours failed", lambda: own.newest.stage is Stage.ENDED)
            assert own.newest.ready_at is None
            assert "Address already in use" in own.newest.ending
            assert other.poll() is None
        finally:
            other.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_same_words_take_over_and_others_are_refused(machine) -> None:
    """A successor with the same command finds the running server; another command would be a second one."""
    own = machine()
    own.start()
    before = own.server()
    successor = own.open()
    assert successor.open(SERVICE, own.config) is True
    with pytest.raises(StateConflict):
        successor.open(SERVICE, own.words("--max-num-seqs", "4"))
    assert own.server() == before
    assert len(own.processes()) == 2


@pytest.mark.parametrize("changing", [True, False])
def test_a_server_that_ended_is_started_by_hand_unless_an_approved_change_will_start_it(machine, changing) -> None:
    """A start by hand is another state than the one that was approved; other flags are a person's own change."""
    own = machine(FAKE_FITS_LEN="1024")
    own.platform.open(SERVICE, own.config)
    until("it ended", lambda: own.newest.stage is Stage.ENDED)
    assert own.open().open(SERVICE, own.config, changing=changing) is changing
    assert len(own.platform.settled(SERVICE).starts) == (1 if changing else 2)
    until("it ended again", lambda: own.newest.stage is Stage.ENDED)
    assert own.open().open(SERVICE, own.words("--max-num-seqs", "4"), changing=changing) is False


def test_a_start_that_was_only_intended_is_begun_by_the_successor(machine) -> None:
    """Killed between the record and the call: the successor starts it, once."""
    own = machine()
    own.start()
    page = own.platform.settled(SERVICE)
    own.platform.stop(SERVICE)
    until("it ended", lambda: own.newest.stage is Stage.ENDED)
    from agent.adapters.platform.host.state_file import StateFile

    book = StateFile(own.folder / SERVICE)
    intended = page.starts[0].with_(revision="gemma-2", mark="m2", stage=Stage.WAITING)
    with book.writing() as transaction:
        transaction.state = transaction.state.put(intended)
    until("it serves", lambda: own.open().settled(SERVICE).newest.stage is Stage.READY)
    assert len(own.processes()) == 2


def test_no_server_runs_before_it_is_noted(tmp_path) -> None:
    """Its supervisor cannot write down whom it started: the command is not run, and nobody is left."""
    (tmp_path / "server.tmp").mkdir()
    with (tmp_path / "lock").open("w") as lock:
        words = [sys.executable, "-I", "-S", supervisor.__file__, str(tmp_path), str(lock.fileno())]
        finished = subprocess.run(
            [*words, "echo", "it ran"], pass_fds=(lock.fileno(),), check=True, capture_output=True
        )
    assert b"IsADirectoryError" in finished.stderr  # its pipes are closed once nobody is left
    assert b"it ran" not in finished.stdout


def test_a_server_that_a_change_ends_has_ended_on_purpose_though_the_executor_was_killed(machine) -> None:
    """It was killed while it asked the old server to end: what it was about to do is on record, and goes on."""
    own = machine()
    own.start()
    before = own.newest

    class Killed(HostServer):
        def ask_to_end(self, start: Start) -> None:
            super().ask_to_end(start)
            raise KeyboardInterrupt

    etag = own.platform.describe(SERVICE).etag
    change = Order(
        service=SERVICE,
        incident="inc-1",
        effect_key="k1",
        revision="gemma-sre-k1",
        etag=etag,
        actions=(SetFlag(name="max-num-seqs", value="4"),),
        lease_end=HELD,
    )
    dying = HostPlatform(own.folder, SystemClock(), own.environ, grace_s=0.5, server=Killed)
    with pytest.raises(KeyboardInterrupt):
        dying.apply(change)
    ended = own.platform.settled(SERVICE).start(before.revision)
    assert ended is not None
    assert ended.on_purpose
    assert own.platform.find(SERVICE, "k1") is not None
    until("the changed one serves", lambda: own.newest.stage is Stage.READY)
    assert (own.newest.effect_key, len(own.processes())) == ("k1", 2)


def test_a_hang_is_noticed_while_health_still_answers(machine) -> None:
    """SIGSTOP on the engine: /health says 200, a completion does not finish, no token is made."""
    own = machine()
    own.start()
    doctor = HealthCheck(own.platform, SystemClock(), answer_s=0.5)
    well = doctor.check(SERVICE, own.platform.settled(SERVICE))
    assert well is not None
    assert (well.sick, well.answer) == ("", "a completion finished (length)")
    engine = next(p for p in own.processes() if p != own.server())
    os.kill(engine, signal.SIGSTOP)
    found = doctor.check(SERVICE, own.platform.settled(SERVICE))
    assert found is not None
    assert "Engine is hanging" in found.sick
    assert "/health answered 200" in found.sick
    live = own.platform.describe(SERVICE)
    assert live.ready is False
    assert "hanging" in live.message
    os.kill(engine, signal.SIGCONT)
    again = doctor.check(SERVICE, own.platform.settled(SERVICE))
    assert again is not None
    assert own.platform.describe(SERVICE).ready is True


def test_a_healthy_start_measures_well(machine) -> None:
    """Ready, a whole completion, and a counter that has its tokens."""
    own = machine()
    own.start()
    found = {m.check: m for m in own.platform.measure(SERVICE, own.newest.revision)}
    assert (found[Check.READY].good, found[Check.COMPLETION].good, found[Check.TOKENS].good) == (True, True, True)
    assert found[Check.TOKENS].value == 64


def test_a_program_that_is_not_there_is_an_end(machine) -> None:
    """No such file: the log says so, and the code is the shell's own for it."""
    own = machine()
    own.platform.open(SERVICE, own.config.with_(command=("/no/such/vllm",)))
    until("it ended", lambda: own.newest.stage is Stage.ENDED)
    assert own.newest.exit_code == 127
    assert "No such file" in own.newest.ending
    assert "No such file" not in own.newest.says


def test_a_service_that_never_was_is_refused(machine) -> None:
    """Nothing is made by asking."""
    own = machine()
    with pytest.raises(InputRejected):
        own.platform.describe("nobody")
    assert not (own.folder / "nobody" / "server.json").exists()


def test_the_servers_environment_is_ours_and_its_own(machine) -> None:
    """What the operator set is inherited, what the configuration says wins, secrets stay out of the record."""
    from agent.adapters.platform.host.describe import carried

    listed = carried({"VLLM_API_KEY": "sk-1", "VLLM_CPU_KVCACHE_SPACE": "1", "HOME": "/root"})
    assert [(e.name, e.value) for e in listed] == [("VLLM_API_KEY", None), ("VLLM_CPU_KVCACHE_SPACE", "1")]
    own = machine(VLLM_API_KEY="sk-1", VLLM_CPU_KVCACHE_SPACE="1")
    own.config = own.config.with_(env=(*listed, listed[1].with_(name="VLLM_LOGGING_LEVEL", value="INFO")))
    own.start()
    seen = (Path("/proc") / str(own.server()) / "environ").read_bytes().split(b"\0")
    assert {b"VLLM_API_KEY=sk-1", b"VLLM_CPU_KVCACHE_SPACE=1", b"VLLM_LOGGING_LEVEL=INFO"} <= set(seen)
    assert b"sk-1" not in (own.folder / SERVICE / "server.json").read_bytes()
