"""A sweep from the command line to its report: planned, allowed, run, stopped, gone on with; no input is half understood."""

import json
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.adapters.load.sweep_folder import SweepFolder, read_cells
from agent.adapters.platform.host.state_file import StateFile
from agent.adapters.platform.rehearsal.template import stamped
from agent.app import build_app
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.service.serving import ServingConfig
from agent.core.sweep.cell import Bound, Outcome
from agent.core.value import digest
from agent.entrypoints.cli import sweep_approval
from agent.entrypoints.cli.main import main
from agent.ports.host import State
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from agent.stages.decide_sweep import SweepAnswer, answer_sweep, asked_sweeps
from agent.stages.run_sweep import RESERVE_S
from tests.agent.entrypoints.waiting_plan import EXAMPLE
from tests.contracts import fake_guidellm
from tests.contracts.load_server import LoadServer
from tests.contracts.test_load import alive
from tests.waiting import until

pytestmark = pytest.mark.slow

SIZES = ("--concurrency", "2,4,8", "--context", "112", "--output-tokens", "16")
SERVICE = "gemma4-26b-qat-l4"


class Machine:
    """One machine with a load generator that plays a server of 4 slots, and a server that says what it serves."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys, self.out = folder, capsys, folder / "out"
        self.drivers = folder / "state" / "drivers" / "guidellm"
        self.play()
        (self.drivers / ".installed").touch()

    def play(self, **script) -> None:
        fake_guidellm.install(self.drivers / "bin", **script)

    def sweep(self, *words: str) -> tuple[int, str, str]:
        code = main(["sweep", *words])
        told = self.capsys.readouterr()
        return code, told.out, told.err

    def of(self, server: LoadServer, *words: str) -> tuple[int, str, str]:
        return self.sweep("--url", server.url, "--model", "tiny", *SIZES, "--out", str(self.out), *words)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    for name in ("SERVICES", "POLICY", "DECIDE_URL", "PLATFORM", "SERVICE_API_KEYS", "BUS"):
        monkeypatch.delenv(name, raising=False)
    return Machine(tmp_path, capsys)


@pytest.fixture
def server():
    with LoadServer(slots=4, step_s=0.001) as found:
        yield found


def test_ones_own_server_is_measured_and_reported(machine: Machine, server: LoadServer) -> None:
    """No approval but one's own, which is on record; the report names the knee that the flags predict."""
    code, out, err = machine.of(server, "--flags", "--max-num-seqs 4", "--by", "ada")
    assert (code, err) == (0, "")
    assert "4 (--max-num-seqs)" in out
    assert "approved by ada" in out
    assert "[3/3] 8 at once, 112 tokens of context, 32 requests" in out
    assert f"report: {machine.out / 'report.md'}" in out
    assert "from 4 on requests wait: --max-num-seqs 4" in (machine.out / "report.md").read_text()
    cells = read_cells(machine.out)
    assert [(c.planned.concurrency, c.outcome) for c in cells] == [(n, Outcome.MEASURED) for n in (2, 4, 8)]
    made = cells[0].provenance
    assert (made.flags, made.driver_version, made.limits.max_num_seqs) == ("--max-num-seqs 4", "0.8.1", 4)
    assert cells[0].predicted.bound is Bound.MAX_NUM_SEQS
    (row,) = build_app(read_settings()).control.audit()
    assert (row.kind, row.who, row.incident) == ("sweep.granted", "ada", made.sweep)


def test_a_finished_sweep_feeds_the_calibration(machine: Machine, server: LoadServer) -> None:
    """One request at a time on a known card: kept with its source, once, and removable; a crash feeds nothing."""
    known = ("--model", "google/gemma-4-12B-it-qat-w4a16-ct", "--served-model", "tiny", "--tokenizer", ".")
    card = ("--accelerator", "nvidia-l4", "--vllm", "0.32.0", "--flags", "--max-model-len 8192")
    words = (*known, *card, "--concurrency", "1")
    machine.play(end="crash")
    assert "calibration" not in machine.of(server, *words)[1]
    machine.play(step_s=0.04)
    code, out, _ = machine.of(server, *words)
    assert (code, "added to the calibration: 1 measured; see: sre-agent calibration list" in out) == (0, True), out
    assert "calibration" not in machine.of(server, *words)[1]
    assert main(["calibration", "show", "--json"]) == 0
    kept = json.loads(machine.capsys.readouterr().out)
    assert (kept["kind"], kept["accelerator"], kept["vllm"]) == ("bandwidth_share", "nvidia-l4", "0.32")
    assert kept["source"].startswith("sweep sweep-")
    assert main(["calibration", "remove", kept["id"]]) == 0
    assert str(machine.out) in (machine.folder / "state" / "sweeps.jsonl").read_text()


def test_the_same_command_goes_on_and_then_says_that_all_is_measured(machine: Machine, server: LoadServer) -> None:
    """The driver crashed after the first cell: exit 3, and nothing is lost or measured twice."""
    machine.of(server, "--dry-run")
    assert not machine.out.exists()
    machine.play(end="crash")
    code, out, _ = machine.of(server)
    assert code == 3
    assert "ended: guidellm failed: it ended with exit code 1" in out
    machine.play()
    assert machine.of(server)[0] == 0
    orders = (machine.drivers / "bin" / "orders.jsonl").read_text().splitlines()
    assert len(orders) == 4  # one crashed, three measured
    code, out, _ = machine.of(server)
    assert (code, "every cell is measured" in out) == (0, True)
    assert (machine.drivers / "bin" / "orders.jsonl").read_text().splitlines() == orders


def test_a_killed_sweep_goes_on_where_it_was(machine: Machine, server: LoadServer) -> None:
    """Kill -9 in the second cell: the first is kept, and nobody loads the server twice until the dead one's lease is over."""
    words = ["--url", server.url, "--model", "tiny", *SIZES, "--out", str(machine.out), "--json"]
    program = "import sys; from agent.entrypoints.cli.main import main; sys.exit(main())"
    machine.play(hangs_from=2)
    hangs = machine.drivers / "bin" / "child"
    with subprocess.Popen([sys.executable, "-c", program, "sweep", *words], stdout=subprocess.DEVNULL) as child:
        try:
            until(lambda: hangs.exists() and hangs.read_text(), limit_s=120)
        finally:
            child.kill()
    until(lambda: not alive(int(hangs.read_text())))
    assert len(read_cells(machine.out)) == 1
    machine.play()
    code, out, _ = machine.sweep(*words)
    assert (code, json.loads(out)["end"]) == (2, "stopped")
    assert "or did a moment ago" in json.loads(out)["why"]
    control, name = build_app(read_settings()).control, f"sweep-{digest(server.url)[:24]}"
    control.release(control.acquire(name, "test", for_s=1, now=datetime.now(UTC) + timedelta(seconds=60)))
    assert machine.sweep(*words)[0] == 0
    cells = read_cells(machine.out)
    assert [c.outcome for c in cells] == [Outcome.MEASURED] * 3
    assert cells[1].spent_s >= RESERVE_S  # what was reserved when it was killed
    assert cells[2].spent_s < cells[1].spent_s


def test_json_alone_on_stdout(machine: Machine, server: LoadServer) -> None:
    """One object; progress goes to stderr."""
    code, out, err = machine.of(server, "--json")
    told = json.loads(out)
    assert (code, told["end"], told["why"], len(told["cells"])) == (0, "done", "", 3)
    assert told["cells"][2]["measured"]["ttft_s"]["p99"] > 0.1
    assert "[1/3]" in err


def test_the_servers_key_reaches_the_generator_and_nothing_else(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name; without it the server's refusal is said before anything is sent."""
    with LoadServer(slots=4, step_s=0.001, key="sk-very-secret-key") as server:
        code, out, err = machine.of(server)
        assert (code, out.count("[1/3]")) == (2, 0)
        assert "it refuses the key (HTTP 401). Hint: name its key: --api-key-name" in err
        shutil.rmtree(machine.out)
        monkeypatch.setenv("SERVICE_API_KEYS", "mine=sk-very-secret-key")
        code, out, err = machine.of(server, "--api-key-name", "mine")
    assert code == 0
    assert "sk-very-secret-key" not in out + err
    kept = b"".join(path.read_bytes() for path in machine.out.rglob("*") if path.is_file())
    assert b"sk-very-secret-key" not in kept
    assert "sk-very-secret-key" in (machine.drivers / "bin" / "orders.jsonl").read_text()


def test_a_server_that_is_gone_or_serves_something_else(machine: Machine, server: LoadServer) -> None:
    """Typed, before the generator starts."""
    code, _, err = machine.sweep("--url", server.url, "--model", "tinny", *SIZES, "--out", str(machine.out))
    assert (code, "it serves tiny, not 'tinny'. Hint: did you mean --served-model tiny?" in err) == (2, True)
    shutil.rmtree(machine.out)
    with LoadServer(slots=1, step_s=0.001) as gone:
        pass
    code, _, err = machine.of(gone)
    assert code == 3
    assert "Traceback" not in err
    assert not (machine.drivers / "bin" / "orders.jsonl").exists()


def test_a_server_that_answers_nothing_ends_it(machine: Machine, server: LoadServer) -> None:
    """Exit 3, with the kinds of error."""
    machine.play(end="errors")
    code, out, _ = machine.of(server)
    assert (code, "no request succeeded: HTTP 401 (16)" in out) == (3, True)


def test_no_generator_says_how_to_install_one(
    machine: Machine, server: LoadServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Exit 3."""
    shutil.rmtree(machine.drivers)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = machine.of(server)
    assert (code, "Hint: install guidellm" in err, "--install-driver" in err) == (3, True, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "want one server"),
        (("--url", "http://127.0.0.1:1"), "want one server"),
        (("--url", "ftp://h", "--model", "m"), "no plain address"),
        (("--url", "http://user:pw@h", "--model", "m"), "no plain address"),
        (("--url", "http://h:99999", "--model", "m"), "address was not read"),
        (("--url", "http://h", "--model", "m", "--concurrency", "0"), "'0' is no size"),
        (("--url", "http://h", "--model", "m", "--concurrency", "4,,8"), "'' is no size"),
        (("--url", "http://h", "--model", "m", "--context", "1kk"), "'1kk' is no size"),
        (("--url", "http://h", "--model", "m", "--context", "99999999"), "is no size"),
        (("--url", "http://h", "--model", "m", "--context", "64"), "leave no prompt"),
        (("--url", "http://h", "--model", "m", "--requests", "0"), "--requests is 0"),
        (("--url", "http://h", "--model", "m", "--max-minutes", "0"), "limits make no sense"),
        (("--url", "http://h", "--model", "m", "--max-minutes", "nan"), "limits make no sense"),
        (("--url", "http://h", "--model", "m", "--max-usd", "3"), "limits nothing"),
        (("--url", "http://h", "--model", "m", "--flags", "--max-num-seqs x"), "max-num-seqs"),
        (("--url", "http://h", "--model", "m", "--concurrency", ",".join(map(str, range(1, 300)))), "299 cells"),
        (("--service", "nobody"), "service 'nobody' is unknown"),
        (("approve",), "want one folder"),
        (("approve", "nowhere"), "want one folder"),
    ],
)
def test_bad_input_is_refused_before_anything_is_kept(machine: Machine, words: tuple[str, ...], says: str) -> None:
    """Exit 2 with what, why and a hint; no traceback, no folder."""
    code, out, err = machine.sweep(*words, *(() if words[:1] == ("approve",) else ("--out", str(machine.out))))
    assert (code, out) == (2, "")
    assert says in err
    assert "Hint: " in err
    assert not machine.out.exists()


def test_another_sweep_is_not_gone_on_with(machine: Machine, server: LoadServer) -> None:
    """Other cells, limits or another server in the same folder; and a folder of something else."""
    assert machine.of(server)[0] == 0
    for words in (
        ("--concurrency", "2,64"),
        ("--max-minutes", "99"),
        ("--url", "http://127.0.0.1:1"),
        ("--model", "x"),
    ):
        code, _, err = machine.of(server, *words)
        assert (code, "does not go on" in err) == (2, True), words
    (machine.folder / "mine").mkdir()
    (machine.folder / "mine" / "letter").touch()
    code, _, err = machine.of(server, "--out", str(machine.folder / "mine"))
    assert (code, "holds something else" in err) == (2, True)


def test_a_service_waits_for_a_person(machine: Machine, server: LoadServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent before somebody approved it, not even a question; then it runs, and never beside the kill switch."""
    monkeypatch.setenv("PLATFORM", f"rehearsal:{EXAMPLE}")
    words = ("--service", SERVICE, "--url", server.url, "--served-model", "tiny", *SIZES, "--out", str(machine.out))
    code, out, _ = machine.sweep(*words)
    assert (
        code,
        f"needs approval, for it loads what others may use: sre-agent sweep approve {machine.out}" in out,
    ) == (1, True)
    assert "on 1 x nvidia-l4" in out
    assert re.search(r"\n  about .+, about \d+\.\d\d USD\n", out), out
    assert not (machine.out / "cells.jsonl").exists()
    assert machine.sweep("approve", str(machine.out))[0] == 0
    main(["stop", "--why", "not now", "--by", "ada"])
    code, _, err = machine.sweep(*words)
    assert (code, "the kill switch is on (by ada: not now)" in err) == (2, True)
    main(["stop", "--off"])
    code, out, _ = machine.sweep(*words)
    assert (code, len(SweepFolder(machine.out).cells())) == (0, 3), out
    made = SweepFolder(machine.out).cells()[0].provenance
    assert (made.service, made.platform, made.accelerator) == (SERVICE, "cloud_run", "nvidia-l4")
    assert made.limits.max_num_seqs is not None
    assert made.limits.kv_tokens is not None


def test_an_approval_given_elsewhere_lets_it_run(
    machine: Machine, server: LoadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the console's page while the command waits; a rejection ends it with its reason."""
    monkeypatch.setenv("PLATFORM", f"rehearsal:{EXAMPLE}")
    words = ["--service", SERVICE, "--url", server.url, "--served-model", "tiny", *SIZES, "--wait", "--by", "ada"]
    context = build_app(read_settings()).contexts[Owner.DECIDE]

    def answers(choice: Choice):
        def answer(_: float) -> None:
            waiting = [each.sweep.request.id for each in asked_sweeps(context) if each.waits]
            by = Person(who="ada", channel=Channel.CONSOLE, verified=False)
            answer_sweep(context, SweepAnswer(sweep=waiting[0], answer=choice, by=by, why="the demo is on"))

        return answer

    monkeypatch.setattr(sweep_approval, "PAUSE", answers(Choice.APPROVE))
    code, out, _ = machine.sweep(*words, "--out", str(machine.out))
    assert (code, "waits for approval until" in out, "approved by ada" in out) == (0, True, True), out
    assert len(SweepFolder(machine.out).cells()) == 3
    monkeypatch.setattr(sweep_approval, "PAUSE", answers(Choice.REJECT))
    code, out, err = machine.sweep(*words, "--out", str(machine.folder / "other"))
    assert (code, "ada rejected it: the demo is on" in err) == (2, True), err
    assert not (machine.folder / "other" / "cells.jsonl").exists()


def test_a_watched_server_of_this_machine_is_no_act_of_ones_own(machine: Machine, server: LoadServer) -> None:
    """By its address neither: the refusal names the service, and nothing is kept or sent; once it is gone, it is."""
    port = server.url.rsplit(":", 1)[1]
    config = ServingConfig(image="", command=("vllm", "serve", "tiny"), args=("--port", port))
    record = State(service="mine", uid="u", template=stamped(config, "r-1", None, None))
    kept = StateFile(machine.folder / "state" / "host" / "mine")
    kept.folder.mkdir(parents=True)
    kept.write(record)
    for url in (server.url, f"http://localhost:{port}"):
        code, out, err = machine.of(server, "--url", url)
        assert (code, out) == (2, "")
        assert f"{url} is the watched service 'mine'" in err
        assert f"--service mine --url {url}" in err
    assert not machine.out.exists()
    kept.write(record.with_(deleted=True))
    assert machine.of(server)[0] == 0


def test_a_record_that_nobody_can_read_lets_no_load_through(machine: Machine, server: LoadServer) -> None:
    """Doubt refuses: it may be the record of the server that was named."""
    folder = machine.folder / "state" / "host" / "mine"
    folder.mkdir(parents=True)
    (folder / "server.json").write_text("{")
    code, _, err = machine.of(server)
    assert (code, "the record of the server in" in err) == (3, True)


def test_a_grant_of_another_sweep_is_refused(
    machine: Machine, server: LoadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever copies an approval into another sweep's folder gets nothing."""
    monkeypatch.setenv("PLATFORM", f"rehearsal:{EXAMPLE}")
    words = ("--service", SERVICE, "--url", server.url, "--served-model", "tiny")
    machine.sweep(*words, *SIZES, "--out", str(machine.out))
    assert machine.sweep("approve", str(machine.out))[0] == 0
    other = machine.folder / "other"
    machine.sweep(*words, *SIZES, "--max-minutes", "600", "--out", str(other))
    shutil.copy(machine.out / "grant.json", other / "grant.json")
    code, _, err = machine.sweep(*words, *SIZES, "--max-minutes", "600", "--out", str(other))
    assert (code, "the approval covers another sweep" in err) == (2, True)


def test_the_cloud_is_refused_in_words(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep is approved and recorded on the machine where it runs."""
    monkeypatch.setenv("STORE", "firestore:project")
    monkeypatch.setenv("BUS", "pubsub:project")
    monkeypatch.setenv("SERVICES", str(EXAMPLE / "services.toml"))
    code, _, err = machine.sweep("--url", "http://127.0.0.1:1", "--model", "m")
    assert (code, "in the cloud" in err) == (2, True)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"subject": {"endpoint": "http://10.0.0.9:8000"}}, "are different servers"),
        ({"plan": {"cells": []}}, "are different cells"),
    ],
    ids=["another server", "another plan"],
)
def test_what_is_approved_is_what_would_be_measured(
    machine: Machine, server: LoadServer, monkeypatch: pytest.MonkeyPatch, changed: dict, why: str
) -> None:
    """The approval signs the request; the plan that is shown and the server that is loaded stand beside it."""
    monkeypatch.setenv("PLATFORM", f"rehearsal:{EXAMPLE}")
    words = ("--service", SERVICE, "--url", server.url, "--served-model", "tiny", *SIZES, "--out", str(machine.out))
    machine.sweep(*words)
    kept = json.loads((machine.out / "sweep.json").read_text())
    for part, values in changed.items():
        kept[part] |= values
    (machine.out / "sweep.json").write_text(json.dumps(kept))
    code, _, err = machine.sweep("approve", str(machine.out))
    assert (code, why in err) == (2, True), err


def test_request_rates_are_measured_reported_and_gone_on_with(machine: Machine, server: LoadServer) -> None:
    """Beside the concurrencies; the same command again measures nothing twice, and compare names them."""
    words = ("--rates", "3", "--slo", "latency_p99<200ms")
    code, out, err = machine.of(server, *words)
    assert (code, err) == (0, "")
    assert "[4/8] 3 request rates, 112 tokens of context, 32 requests at each" in out
    assert "rate 1 of 3" in out.split("[1/8]")[0]  # the plan
    assert "12.5 requests/s: " in out
    said = (machine.out / "report.md").read_text()
    assert (
        "highest request rate that keeps latency\\_p99\\<200ms: 25 requests/s; measured were 12.5 to 25 requests/s"
        in said
    )
    assert (machine.out / "plots" / "rates-c112-o16.svg").exists()
    assert "every cell is measured" in machine.of(server, *words)[1]
    code, out, _ = machine.sweep("compare", str(machine.out), str(machine.out))
    assert (code, "Request rates are not compared" in out) == (0, True)
    code, out, _ = machine.sweep("show", str(machine.out), "--slo", "latency_p99<200ms", "--json")
    found = json.loads(out)
    assert (code, found["rates"][0]["highest"]["per_s"]) == (0, 25.0)
    assert "other cells" in machine.of(server)[2]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--rates", "3", "--driver", "vllm"), "vllm bench serve has no run of request rates"),
        (("--rates", "-1"), "--rates is -1"),
        (("--rates", "51"), "--rates is 51"),
    ],
)
def test_request_rates_that_cannot_be_measured_are_refused(machine: Machine, server: LoadServer, words, why) -> None:
    """Before anything is kept."""
    code, _, err = machine.of(server, *words)
    assert (code, why in err, "Hint: " in err) == (2, True, True), err
    assert not machine.out.exists()


def test_request_rates_with_no_guidellm_are_refused_before_anything_is_sent(
    machine: Machine, server: LoadServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only vllm is there."""
    shutil.rmtree(machine.drivers)
    (machine.folder / "path").mkdir()
    for name in ("vllm", "python"):
        program = machine.folder / "path" / name
        program.write_text("#!/bin/sh\necho 'vllm version: 0.32.0'\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(machine.folder / "path"))
    code, _, err = machine.of(server, "--rates", "3")
    assert (code, "vllm has no run of request rates" in err, "--driver guidellm" in err) == (2, True, True), err
    assert not (machine.out / "cells.jsonl").exists()
