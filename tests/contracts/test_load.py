"""The port of load generators: what was recorded of the real ones is read, and a process is begun, ended and survived.

The recordings are results of guidellm 0.8.1 and ``vllm bench serve`` 0.32.0 against tests/contracts/load_server.py with
4 slots: 8 requests in flight, the first 8 of 24 are warm-up; texts and host names are taken out.
"""

import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from statistics import mean

import pytest

from agent.adapters.load import guidellm, vllm_bench
from agent.adapters.load.guidellm import Guidellm
from agent.adapters.load.installed import find_driver
from agent.adapters.load.vllm_bench import VllmBench
from agent.core.sweep.cell import PlannedCell, measured_cell
from agent.core.sweep.provenance import Driver
from agent.errors import DependencyFailed, InputRejected, SreError
from agent.ports.load import LoadDriver, LoadOrder, LoadResult
from agent.strict_json import read_object
from tests.contracts import fake_guidellm
from tests.contracts.load_server import LoadServer
from tests.waiting import until

DATA = Path(__file__).parents[1] / "data" / "load"
DRIVERS = Path(__file__).parents[2] / ".venv-load"
READ = {"guidellm": guidellm.read_result, "vllm": vllm_bench.read_result}
CELL = PlannedCell(context_tokens=112, output_tokens=16, concurrency=8, requests=16, warmup_requests=8)
STEP = PlannedCell(context_tokens=112, output_tokens=16, concurrency=0, requests=16, step=1, steps=5)


def order(url: str = "http://127.0.0.1:9", **changes) -> LoadOrder:
    base = LoadOrder(cell=CELL, url=url, served_model="tiny", tokenizer="tokenizer", seed=7, limit_s=60)
    return base.with_(**changes)


def ended(run, *, limit_s: float = 60) -> LoadResult:
    found: list[LoadResult] = []

    def over() -> bool:
        got = run.result()
        found.extend([got] if got is not None else [])
        return bool(found)

    until(over, limit_s=limit_s)
    return found[0]


@pytest.mark.parametrize("name", READ)
def test_a_recorded_result_gives_the_server_that_was_measured(name: str) -> None:
    """24 requests, 16 tokens each at 10 ms, 4 at once: beyond the warm-up each waits for one answer of 160 ms."""
    found = READ[name]((DATA / f"{name}-good.json").read_bytes())
    assert (len(found.rows), found.unfinished, found.rows[0].started_s) == (24, 0, 0)
    assert [row.started_s for row in found.rows] == sorted(row.started_s for row in found.rows)
    cell = measured_cell(found.rows[8:], began_at=found.began_at)
    assert (cell.succeeded, cell.failed, cell.output_tokens) == (16, 0, 256)
    assert cell.itl_s.p50 == pytest.approx(0.0101, rel=0.05)
    assert cell.ttft_s.p50 == pytest.approx(0.16, rel=0.15)
    assert cell.output_tokens_per_s == pytest.approx(4 / 0.0101, rel=0.25)


def test_figures_equal_those_that_guidellm_computed_itself() -> None:
    """For every request."""
    raw = (DATA / "guidellm-good.json").read_bytes()
    requests = read_object(raw, what="result", limit=None)["benchmarks"][0]["requests"]["successful"]
    theirs = sorted(
        (r["info"]["timings"]["request_start"], r["time_to_first_token_ms"], r["inter_token_latency_ms"])
        for r in requests
    )
    for row, (_, ttft_ms, itl_ms) in zip(guidellm.read_result(raw).rows, theirs, strict=True):
        assert row.ttft_s == pytest.approx(ttft_ms / 1000)
        assert row.itl_s == pytest.approx(itl_ms / 1000)


@pytest.mark.parametrize("case", ["good", "429"])
def test_figures_equal_those_that_vllm_computed_itself(case: str) -> None:
    """Means over all requests that succeeded, and how many did."""
    raw = (DATA / f"vllm-{case}.json").read_bytes()
    theirs, rows = read_object(raw, what="result", limit=None), vllm_bench.read_result(raw).rows
    good = [row for row in rows if row.ok]
    assert (len(good), len(rows) - len(good)) == (theirs["completed"], theirs["failed"])
    assert mean(row.ttft_s or 0 for row in good) * 1000 == pytest.approx(theirs["mean_ttft_ms"])
    assert mean(row.itl_s or 0 for row in good) * 1000 == pytest.approx(theirs["mean_tpot_ms"])


@pytest.mark.parametrize("name", READ)
def test_errors_are_told_in_the_same_words(name: str) -> None:
    """Every fifth request got 429, and has no figures."""
    rows = READ[name]((DATA / f"{name}-429.json").read_bytes()).rows
    failed = [row for row in rows if not row.ok]
    assert {row.error for row in failed} == {"HTTP 429"}
    assert len(failed) in {4, 5}
    assert all(row.ttft_s is None and row.itl_s is None and not row.output_tokens for row in failed)


def test_requests_that_were_cut_off_are_no_errors() -> None:
    """The server hung until the limit."""
    found = guidellm.read_result((DATA / "guidellm-hang.json").read_bytes())
    assert (found.rows, found.unfinished) == ((), 8)


@pytest.mark.parametrize("name", READ)
def test_a_cut_result_is_never_half_read(name: str) -> None:
    """Every kind of damage is an error that the process turns into ours."""
    raw = (DATA / f"{name}-429.json").read_bytes()
    for damaged in (raw[:-2], raw[: len(raw) // 2], b"", b"[]", b"{}", raw.replace(b"24", b'"x"').replace(b"17", b"-")):
        with pytest.raises((SreError, KeyError, TypeError, ValueError, IndexError)):
            READ[name](damaged)


def test_the_order_arrives_whole(tmp_path: Path) -> None:
    """Sizes, model, limit, seed; the key stands in a file of its own user and in no argument."""
    driver = Guidellm(fake_guidellm.install(tmp_path))
    result = ended(driver.start(order(api_key="sk-secret", limit_s=33)))
    sent = read_object((tmp_path / "orders.jsonl").read_bytes(), what="order", limit=None)
    assert (driver.version(), len(result.rows)) == ("0.8.1", 24)
    assert sent["backend"]["api_key"] == "sk-secret"
    assert (sent["profile"]["streams"], sent["seed"]["value"], sent["tokenizer"]["model"]) == ([8], 7, "tokenizer")
    assert sent["constraints"] == [{"kind": "max_requests", "count": 24}, {"kind": "max_duration", "seconds": 33.0}]
    assert (sent["data"][0]["prompt_tokens"], sent["data"][0]["output_tokens"]) == (96, 16)
    assert not any(tmp_path.glob("sre-sweep-*"))


@pytest.mark.parametrize(
    ("end", "says"),
    [("crash", "exit code 1; its last lines: .*no tokenizer in 'here'"), ("garbage", "not understood|not read")],
)
def test_a_driver_that_fails_says_why(tmp_path: Path, end: str, says: str) -> None:
    """Typed, with the last lines that it printed."""
    run = Guidellm(fake_guidellm.install(tmp_path, end=end)).start(order())
    with pytest.raises(SreError, match=says):
        ended(run)
    run.stop()


def test_stopping_ends_every_process_at_once(tmp_path: Path) -> None:
    """The program and its child, within a second; twice does no harm."""
    run = Guidellm(fake_guidellm.install(tmp_path, end="hang")).start(order())
    until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text() != "")
    child = int((tmp_path / "child").read_text())
    assert run.result() is None
    began = time.monotonic()
    run.stop()
    until(lambda: not alive(child))
    assert time.monotonic() - began < 1
    run.stop()


def test_a_driver_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """Kill -9 of the sweep ends the program and its child too: nothing goes on loading the server unseen."""
    program = fake_guidellm.install(tmp_path, end="hang")
    starts = (
        "import sys, time; from pathlib import Path; from tests.contracts.test_load import Guidellm, order;"
        "run = Guidellm(Path(sys.argv[1])).start(order()); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", starts, str(program)], cwd=Path(__file__).parents[2]) as sweep:
        try:
            until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text() != "", limit_s=120)
        finally:
            sweep.kill()
    child = int((tmp_path / "child").read_text())
    until(lambda: not alive(child))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] not in "ZX"
    except (OSError, IndexError):
        return False


def test_settings_of_ours_are_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver reads text of others: it gets no secret that it does not need."""
    program = tmp_path / "guidellm"
    program.write_text('#!/bin/sh\necho "guidellm version: $RECEIPT_KEY$HOME"\n')
    program.chmod(0o755)
    monkeypatch.setenv("RECEIPT_KEY", "secret")
    assert Guidellm(program).version() == os.environ["HOME"]


def test_whether_and_where_the_model_hub_is_asked_holds_for_a_driver_too(tmp_path: Path, monkeypatch) -> None:
    """It reads a tokenizer from there."""
    program = tmp_path / "guidellm"
    program.write_text('#!/bin/sh\necho "guidellm version: $HF_HUB_OFFLINE $HF_ENDPOINT"\n')
    program.chmod(0o755)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.example")
    assert Guidellm(program).version() == "1 https://hub.example"


@pytest.mark.parametrize("driver", [Guidellm, VllmBench])
def test_a_program_that_is_not_there_is_said(driver: type, tmp_path: Path) -> None:
    """When it is asked for its version, and when it is to start."""
    gone = driver(tmp_path / "bin" / "gone")
    with pytest.raises(DependencyFailed, match="install"):
        gone.version()
    with pytest.raises(DependencyFailed, match="was not started: No such file"):
        gone.start(order())


def real(name: Driver) -> LoadDriver:
    try:
        return find_driver(name, DRIVERS)
    except DependencyFailed:
        pytest.skip(f"{name} is not installed: make load-driver")


@pytest.mark.slow
@pytest.mark.parametrize("name", Driver)
def test_a_real_driver_measures_a_server_with_a_known_knee(name: Driver, tmp_path: Path) -> None:
    """Four answers at once: with 8 in flight each request waits for one answer, and distinct prompts reach the server."""
    driver = real(name)
    with LoadServer(slots=4, step_s=0.01, key="sk-key") as server:
        tokenizer = str(tmp_path / "tokenizer")
        write_tokenizer(Path(tokenizer))
        found = ended(driver.start(order(server.url, tokenizer=tokenizer, api_key="sk-key")), limit_s=120)
    cell = measured_cell(found.rows[8:], began_at=found.began_at)
    assert (cell.succeeded, cell.failed, cell.output_tokens, server.most_at_once) == (16, 0, 256, 4)
    assert cell.ttft_s.p50 > 0.12  # waits for one answer of 160 ms, less what the driver takes between two
    assert 0.009 < cell.itl_s.p50 < 0.1
    assert len({str(body["prompt"]) for body in server.bodies}) > 12
    assert all(body["max_tokens"] == 16 and body["ignore_eos"] for body in server.bodies[-16:])


def test_a_run_of_request_rates_is_one_order_and_one_result_for_each_step(tmp_path: Path) -> None:
    """The profile ``sweep`` of all steps; the limit is one of each benchmark, and over-saturation ends higher rates."""
    driver = Guidellm(fake_guidellm.install(tmp_path))
    first = ended(driver.start(order(cell=STEP, limit_s=50, stop_over_saturated=True)))
    sent = read_object((tmp_path / "orders.jsonl").read_bytes(), what="order", limit=None)
    assert sent["profile"] == {"kind": "sweep", "sweep_size": 5, "strategy_type": "constant"}
    assert sent["constraints"] == [
        {"kind": "max_requests", "count": 16},
        {"kind": "max_duration", "seconds": 10.0},
        {"kind": "over_saturation", "mode": "enforce", "stopping_scope": "all"},
    ]
    results = (first, *first.following)
    assert [len(each.rows) for each in results] == [16] * 5
    assert [each.rate for each in results] == [None, None, *(pytest.approx(rate) for rate in (12.5, 18.75, 25.0))]
    gaps = [b.started_s - a.started_s for a, b in pairwise(results[2].rows)]
    assert gaps == pytest.approx([1 / 12.5] * 15, abs=1e-5)


def test_request_rates_are_refused_where_the_load_generator_has_no_such_run(tmp_path: Path) -> None:
    """Before anything is started."""
    with pytest.raises(InputRejected, match=r"vllm bench serve has no run .* Hint: use --driver guidellm"):
        VllmBench(tmp_path / "gone").start(order(cell=STEP))


@pytest.mark.slow
def test_real_guidellm_measures_request_rates_of_a_server_with_known_speed(tmp_path: Path) -> None:
    """Four answers of 160 ms at once: about 6 a second alone, 25 at most; the rates lie between, the last is the most."""
    driver = real(Driver.GUIDELLM)
    with LoadServer(slots=4, step_s=0.01, key="sk-key") as server:
        tokenizer = str(tmp_path / "tokenizer")
        write_tokenizer(Path(tokenizer))
        said = {"cell": STEP.with_(requests=24), "tokenizer": tokenizer, "api_key": "sk-key", "limit_s": 300}
        first = ended(driver.start(order(server.url, **said)), limit_s=240)
    results = (first, *first.following)
    rates = [each.rate for each in results]
    assert (len(results), rates[:2], all(rates[2:])) == (5, [None, None], True)
    alone, most = (measured_cell(each.rows, began_at=each.began_at).requests_per_s for each in results[:2])
    assert alone < rates[2] < rates[3] < rates[4] <= most * 1.5
    assert [len(each.rows) for each in results] == [24] * 5
    assert not any(each.unfinished for each in results)


@pytest.mark.slow
def test_real_guidellm_ends_a_cell_that_is_over_saturated(tmp_path: Path) -> None:
    """One answer of 1.6 s at a time and 64 in flight: after its own 30 s guidellm sends no more, and says why."""
    driver = real(Driver.GUIDELLM)
    with LoadServer(slots=1, step_s=0.1, key="sk-key") as server:
        tokenizer = str(tmp_path / "tokenizer")
        write_tokenizer(Path(tokenizer))
        cell = CELL.with_(concurrency=64, requests=336, warmup_requests=64)
        said = {"cell": cell, "tokenizer": tokenizer, "api_key": "sk-key", "limit_s": 120, "stop_over_saturated": True}
        found = ended(driver.start(order(server.url, **said)), limit_s=240)
    assert found.over_saturated
    assert 0 < len(found.rows) < 64
    assert found.unfinished > 0


def write_tokenizer(folder: Path) -> None:
    """Lay a tokenizer there that knows every byte and no more."""
    from json import dumps

    folder.mkdir()
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [number for number in range(256) if number not in printable]
    letters = [chr(n) for n in printable] + [chr(256 + n) for n in range(len(others))]
    vocabulary = {letter: number for number, letter in enumerate(["<unk>", *letters])}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "vocab": vocabulary, "merges": []},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(dumps(tokenizer))
    said = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>", "model_max_length": 131072}
    (folder / "tokenizer_config.json").write_text(dumps(said))
    (folder / "config.json").write_text('{"model_type": "llama"}')
