"""What goes wrong in the middle of a sweep: it ends with what it has, exit 3, and the same command measures the rest."""

import errno
import shutil
from pathlib import Path

import pytest

from agent.adapters.load import sweep_folder
from agent.adapters.load.sweep_folder import read_cells
from agent.core.sweep.cell import Outcome
from agent.entrypoints.cli.main import main
from tests.contracts import fake_guidellm
from tests.contracts.load_server import LoadServer

SIZES = ("--concurrency", "2,4,8", "--context", "112", "--output-tokens", "16")
WORDS = {
    "the endpoint is gone": ("All connection attempts failed", "connection refused"),
    "401": ("Client error '401 Unauthorized' for url 'http://x'", "HTTP 401"),
    "404, another model is served now": ("Client error '404 Not Found' for url 'http://x'", "HTTP 404"),
    "429": ("Client error '429 Too Many Requests' for url 'http://x'", "HTTP 429"),
    "the server answers garbage": ("Expecting value: line 1 column 1 (char 0)", "unreadable answer"),
    "the server closes connections": ("peer closed connection without sending complete body", "connection closed"),
}


class Machine:
    """A machine whose load generator plays a server that fails from the second cell on."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], url: str) -> None:
        self.out, self.capsys, self.url = folder / "out", capsys, url
        self.drivers = folder / "state" / "drivers" / "guidellm"
        self.play()
        (self.drivers / ".installed").touch()

    def play(self, **script) -> None:
        fake_guidellm.install(self.drivers / "bin", **script)

    def sweep(self, *words: str) -> tuple[int, str]:
        code = main(["sweep", "--url", self.url, "--model", "tiny", *SIZES, "--out", str(self.out), *words])
        told = self.capsys.readouterr()
        return code, told.out + told.err

    def cells(self) -> list[tuple[int, Outcome]]:
        return [(cell.planned.concurrency, cell.outcome) for cell in read_cells(self.out)]

    def goes_on(self) -> None:
        """Mended, the same command measures what is missing and nothing twice."""
        before = read_cells(self.out)[0]
        self.play()
        code, said = self.sweep()
        assert code == 0, said
        assert self.cells() == [(2, Outcome.MEASURED), (4, Outcome.MEASURED), (8, Outcome.MEASURED)]
        assert read_cells(self.out)[0] == before


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    for name in ("SERVICES", "POLICY", "DECIDE_URL", "PLATFORM", "SERVICE_API_KEYS", "BUS"):
        monkeypatch.delenv(name, raising=False)
    with LoadServer(slots=4, step_s=0.001) as server:
        yield Machine(tmp_path, capsys, server.url)


@pytest.mark.parametrize(("said", "kind"), WORDS.values(), ids=WORDS)
def test_a_server_that_fails_ends_it_with_what_it_has(machine: Machine, said: str, kind: str) -> None:
    """Errors are counted by kind, and no more cells are sent to a server that answers nothing."""
    machine.play(end="errors", error=said, fails_from=2)
    code, told = machine.sweep()
    assert (code, f"no request succeeded: {kind} (16)" in told) == (3, True), told
    assert machine.cells() == [(2, Outcome.MEASURED), (4, Outcome.FAILED)]
    assert (machine.out / "report.md").exists()
    machine.goes_on()


def test_some_429_are_counted_apart(machine: Machine) -> None:
    """Every fourth request is refused: the figures are of the others, and the sweep is done."""
    machine.play(end="errors", error=WORDS["429"][0], every=4)
    code, told = machine.sweep()
    assert (code, "HTTP 429" in told) == (0, True), told
    for cell in read_cells(machine.out):
        assert cell.measured.failed == pytest.approx(cell.planned.requests / 4, abs=2)
        assert cell.measured.succeeded + cell.measured.failed == cell.planned.requests
        assert [error.kind for error in cell.measured.errors] == ["HTTP 429"]


def test_a_server_that_hangs_ends_it(machine: Machine) -> None:
    """The generator gave up at its limit: every request was still in flight."""
    machine.play(end="unfinished", fails_from=2)
    code, told = machine.sweep()
    assert (code, "no request succeeded: no request ended" in told) == (3, True), told
    assert machine.cells() == [(2, Outcome.MEASURED), (4, Outcome.FAILED)]
    machine.goes_on()


def test_an_over_saturated_cell_ends_early_and_keeps_its_figures(machine: Machine) -> None:
    """With the flag guidellm's own constraint is asked for; the cell says after how many requests it ended."""
    machine.play(end="saturated", fails_from=3)
    code, told = machine.sweep("--stop-over-saturated")
    assert (code, "over-saturated: ended after" in told) == (0, True), told
    last = read_cells(machine.out)[2]
    assert last.outcome is Outcome.MEASURED
    assert 0 < last.measured.succeeded < last.planned.requests
    assert last.why == f"over-saturated: ended after {last.measured.succeeded} of {last.planned.requests} requests"


def test_a_generator_that_crashes_ends_it(machine: Machine) -> None:
    """With its last lines."""
    machine.play(end="crash", fails_from=2)
    code, told = machine.sweep()
    assert (code, "no tokenizer in 'here'" in told) == (3, True), told
    assert machine.cells() == [(2, Outcome.MEASURED), (4, Outcome.FAILED)]
    machine.goes_on()


def test_a_generator_that_was_removed_ends_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two runs: nothing is lost, and the hint says how to install it."""
    machine.play(end="crash", fails_from=2)
    machine.sweep()
    kept = machine.drivers.rename(machine.drivers.with_name("away"))
    monkeypatch.setenv("PATH", str(kept))
    code, told = machine.sweep()
    assert (code, "--install-driver" in told) == (3, True), told
    shutil.move(kept, machine.drivers)
    machine.goes_on()


def test_a_full_disk_ends_it(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first cell is whole, and once there is room the rest is measured."""
    write, calls = sweep_folder.replace_file, []

    def full(path: Path, text: bytes) -> None:
        calls.append(path.name)
        if calls.count("cells.jsonl") > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, text)

    monkeypatch.setattr(sweep_folder, "replace_file", full)
    code, told = machine.sweep()
    assert (code, "No space left on device" in told) == (3, True), told
    assert machine.cells() == [(2, Outcome.MEASURED)]
    monkeypatch.setattr(sweep_folder, "replace_file", write)
    machine.goes_on()
