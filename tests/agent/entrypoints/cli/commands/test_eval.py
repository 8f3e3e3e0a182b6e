"""sre-agent eval: figures, the bars on the labelled corpus, a diff, and no model without an endpoint."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.entrypoints.cli.main import main
from tests.outside import shared


def evaluate(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["eval", *words, "--json"]) == 0
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    rows = [
        {"id": "a", "log": "OOMKilled", "class": "host_oom", "fix_action": "increase_memory_limit"},
        {"id": "b", "log": "the lamp is out", "class": "disk_full", "fix_action": "increase_disk"},
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + '\nbroken\n{"id": "c", "log": "no label"}\n')
    return path


def test_figures_by_class_and_errors(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = evaluate(capsys, str(small))
    assert result["by_class"]["host_oom"]["right"] == 1
    assert result["confusions"] == [{"class": "disk_full", "answer": "unknown", "records": 1}]
    assert len(result["errors"]) == 2


def test_a_diff_against_an_earlier_run(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = evaluate(capsys, str(small))
    before["records"][0]["answer"] = "unknown"
    before["records"][0]["class_right"] = False
    earlier = tmp_path / "before.json"
    earlier.write_text(json.dumps(before))
    result = evaluate(capsys, str(small), "--diff", str(earlier))
    assert [row["id"] for row in result["changes"]] == ["a"]
    assert main(["eval", str(small), "--diff", str(earlier)]) == 0
    assert "better a: unknown -> host_oom" in capsys.readouterr().out


def test_bad_input_ends_with_two_and_a_missing_model_with_three(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["eval", str(tmp_path / "nothing")]) == 2
    (tmp_path / "no.json").write_text("[]")
    assert main(["eval", str(small), "--diff", str(tmp_path / "no.json")]) == 2
    unlabelled = tmp_path / "plain.log"
    unlabelled.write_text("just a log\n")
    assert main(["eval", str(unlabelled)]) == 2


@pytest.mark.shared
def test_the_labelled_corpus_meets_its_bars(capsys: pytest.CaptureFixture[str]) -> None:
    result = evaluate(capsys, str(shared("data", "incidents-dev.jsonl")))
    assert result["core"]["class"]["share"] >= 0.97
    assert result["core"]["fix"]["share"] >= 0.90
    assert result["benign_false_alarms"] == []
    assert result["certain"]["share"] >= 0.97
