"""sre-agent classify: the contract, and the recorded vLLM runs."""

import gzip
import json
from pathlib import Path

import pytest

from agent.entrypoints.cli.main import main
from agent.failures.score import same_fix

LOGS = Path(__file__).parents[4] / "data" / "vllm-cpu-logs"
KEYS = ["id", "class", "signature", "confidence", "certain", "benign", "fields", "evidence", "fix_actions"]


@pytest.fixture(scope="module")
def logs() -> Path:
    return LOGS


def classify(capsys: pytest.CaptureFixture[str], path: Path) -> list[dict[str, object]]:
    assert main(["classify", str(path), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_one_answer_per_record_in_order_and_a_bad_row_does_not_stop_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "records"
    source.write_text('{"id": 1, "log": "OOMKilled"}\nnonsense\n{"id": 3, "log": "all is well with the lamp"}\n')
    first, bad, last = classify(capsys, source)
    assert list(first) == KEYS
    assert (first["id"], first["class"], first["benign"]) == (1, "host_oom", False)
    assert set(bad) == {"id", "error"}
    assert (last["class"], last["signature"], last["certain"]) == ("unknown", None, False)
    assert isinstance(last["confidence"], float)
    assert last["confidence"] <= 0.3


def test_a_source_that_cannot_be_read_ends_with_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["classify", str(tmp_path / "nothing")]) == 2
    assert capsys.readouterr().out == ""


def test_people_get_words_and_no_escapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "x.log"
    source.write_text("\x1b[31mOOMKilled\x1b[0m exit code 137\n")
    assert main(["classify", str(source)]) == 0
    out = capsys.readouterr().out
    assert "host_oom" in out
    assert "increase_memory_limit" in out
    assert "\x1b" not in out


@pytest.mark.slow
def test_recorded_runs_get_their_class_and_healthy_ones_none(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    fixed = 0
    labels = [json.loads(line) for line in (logs / "labels.jsonl").read_text().splitlines()]
    for label in labels:
        [row] = classify(capsys, logs / label["file"])
        if row["class"] not in {label["class"], *label["also_acceptable_class"]}:
            wrong.append((label["file"], row["class"]))
        fixes = row["fix_actions"]
        assert isinstance(fixes, list)
        fixed += same_fix(fixes[0], label["fix_action"])
    assert wrong == []
    assert fixed >= len(labels) - 1


def test_half_a_character_and_an_escape_in_a_record_break_neither_output(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    source = tmp_path / "records"
    source.write_text(r'{"id": "\ud800", "log": "\udfff out"}' "\n" r'{"id": "\u001b[31m\u2028", "log": "x"}')
    assert main(["classify", str(source), "--json"]) == 0
    rows = [json.loads(line) for line in capsysbinary.readouterr().out.decode().splitlines()]
    assert [row["id"] for row in rows] == [None, "\x1b[31m\u2028"]
    assert "surrogate" in rows[0]["error"]
    assert main(["classify", str(source)]) == 0
    assert b"\x1b" not in capsysbinary.readouterr().out


def test_files_folders_and_globs_are_read_in_the_order_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plain log is called by its file's name; inside a folder by its path there."""
    (tmp_path / "logs" / "pod-1").mkdir(parents=True)
    (tmp_path / "logs" / "pod-1" / "server.log").write_text("OOMKilled\n")
    (tmp_path / "logs" / "README.md").write_text("what these are\n")
    (tmp_path / "old.log.gz").write_bytes(gzip.compress(b"OOMKilled\n"))
    (tmp_path / "new.jsonl").write_text('{"id": 7, "log": "OOMKilled"}\n')
    sources = [str(tmp_path / name) for name in ("new.jsonl", "logs", "*.gz")]
    assert main(["classify", *sources, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["id"], row["class"]) for row in rows] == [
        (7, "host_oom"),
        ("pod-1/server.log", "host_oom"),
        ("old.log.gz", "host_oom"),
    ]


@pytest.mark.parametrize(
    ("body", "why"), [(b"\x7fELF\0\0" * 90, "it is binary"), (b"", "it is empty"), (b"[]", "it holds no record")]
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_answered(
    body: bytes, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_bytes(body)
    (tmp_path / "b").write_text("OOMKilled\n")
    assert main(["classify", str(tmp_path), "--json"]) == 2
    first, second = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert first == {"id": "a", "error": why}
    assert second["class"] == "host_oom"


def test_of_a_missing_source_nothing_is_begun(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b").write_text("OOMKilled\n")
    assert main(["classify", str(tmp_path / "b"), str(tmp_path / "*.nothing")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "no file matches it" in told.err


def test_a_row_without_an_id_is_named_by_its_file_and_line(tmp_path, capsys):
    (tmp_path / "rows.jsonl").write_text('{"textPayload": "a"}\n{"textPayload": "CUDA out of memory"}\n{"broken\n')
    assert main(["classify", str(tmp_path / "rows.jsonl")]) == 0
    said = capsys.readouterr().out
    assert "None" not in said
    assert "rows.jsonl, line 2: gpu_oom" in said
    assert "rows.jsonl: not read: line 3: " in said


def test_a_source_of_which_no_row_can_be_read_is_bad_input(tmp_path, capsys):
    (tmp_path / "rows.json").write_text('{"textPayload": "a"')
    assert main(["classify", str(tmp_path / "rows.json")]) == 2
