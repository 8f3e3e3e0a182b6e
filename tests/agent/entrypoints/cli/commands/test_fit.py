"""The fit command answers one question or a file of them, in the contract's words."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from agent.entrypoints.cli.main import main

FITS = [
    "fit",
    "--model",
    "google/gemma-4-26B-A4B-it-qat-w4a16-ct",
    "--accelerator",
    "nvidia-l4",
    "--flags",
    "--max-model-len 16384 --kv-cache-dtype fp8",
]
DIES = [
    "fit",
    "--model",
    "google/gemma-4-31B-it-qat-w4a16-ct",
    "--accelerator",
    "nvidia-l4",
    "--flags",
    "--max-model-len 4096 --kv-cache-dtype fp8",
]


@pytest.fixture(autouse=True)
def _own_state(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (FITS, 0),
        (DIES, 1),
        ([*FITS[:-1], "--max-model-len 16384 --enable-lora"], 1),
        ([*FITS[:-1], "--max-model-len -1x"], 2),
        (["fit", "--model", "nobody/knows", "--accelerator", "nvidia-l4"], 2),
        (["fit", "--model", "google/gemma-4-31B-it", "--accelerator", "abacus"], 2),
        (["fit", "--model", "google/gemma-4-31B-it", "--accelerator", "a100"], 2),
        ([*FITS[:-1], "--max-model-length 16384 --kv-cache-dtype fp8"], 2),
        ([*FITS, "--count", "0"], 2),
        ([*FITS[:-1], "-tp 3"], 2),
        ([*FITS[:-1], "vllm serve google/gemma-4-31B-it --max-model-len 16384 --kv-cache-dtype fp8"], 2),
        ([*FITS[:-1], "vllm serve /models/g --max-model-len 16384 --kv-cache-dtype fp8"], 0),
        ([*FITS, "--vllm", "latest"], 2),
        (["fit", "--model", "google/gemma-4-31B-it"], 2),
        (["fit", "--batch", "absent.jsonl"], 2),
    ],
)
def test_exit_codes(words, code, capsys):
    assert main(words) == code
    told = capsys.readouterr()
    assert (told.err if code == 2 else told.out).strip()


def test_a_path_in_the_flags_is_an_assumption_of_the_answer(capsys):
    assert main([*FITS[:-1], "vllm serve /models/g --max-model-len 16384 --kv-cache-dtype fp8", "--json"]) == 0
    assert any("/models/g" in told for told in json.loads(capsys.readouterr().out)["assumptions"])


def test_json_stands_alone_on_standard_output(capsys):
    assert main([*FITS, "--json"]) == 0
    told = capsys.readouterr()
    answer = json.loads(told.out)
    assert answer["fits"] is True
    assert answer["decode_tokens_per_s"] > 0
    assert answer["cost_usd_per_h"] > 0
    assert "Fits: peak " in told.err


def test_people_see_the_bar_on_standard_output(capsys):
    assert main(DIES) == 1
    told = capsys.readouterr()
    assert "Does not fit (while the weights are loaded)" in told.out
    assert "load transient" in told.out
    assert told.err == ""


def test_needs_are_kept(capsys):
    assert main([*FITS, "--need-users", "500"]) == 1
    assert "one request of full length does not fit" in capsys.readouterr().out
    assert main([*FITS, "--need-users", "none"]) == 2


def test_a_picture_is_written(tmp_path, capsys):
    assert main([*FITS, "--svg", "bar.svg"]) == 0
    assert ET.parse(tmp_path / "bar.svg").getroot().tag.endswith("svg")
    assert main([*FITS, "--svg", "no/such/folder/bar.svg"]) == 2


def test_a_file_is_answered_row_by_row_and_bad_rows_do_not_stop_it(tmp_path, capsys):
    rows = [
        '{"id":"a","model":"google/gemma-4-12B-it","accelerator":"nvidia-a100-80gb","count":1,"flags":"--max-model-len 8192","vllm":"0.25.1"}',
        "",
        '{"id":"b","model":"nobody/knows","accelerator":"nvidia-l4"}',
        "{not json",
        "[1]",
        '{"model":"google/gemma-4-E2B-it","accelerator":"nvidia-l4"}',
        '{"id":7,"model":"google/gemma-4-E2B-it","accelerator":"nvidia-l4","flags":"-tp 2","count":1}',
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    assert main(["fit", "--batch", "rows.jsonl", "--json"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["id"] for each in answers] == ["a", "b", 4, 5, 6, 7]
    assert answers[0]["fits"] is True
    assert [set(each) == {"id", "error"} for each in answers] == [False, True, True, True, False, True]


def test_the_oracles_rows_are_answered_through_a_file(tmp_path, capsys):
    row = {
        "id": 1, "model": "google/gemma-4-E4B-it", "accelerator": "nvidia-b300", "count": 2, "vllm": "0.32",
        "flags": "--tensor-parallel-size 2 --kv-cache-dtype auto --max-model-len 16384 --max-num-batched-tokens 4096 "
        "--async-scheduling --block-size 16 --kv-cache-memory-bytes 13453985054",
    }  # fmt: skip
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    assert main(["fit", "--batch", "rows.jsonl"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["num_gpu_blocks"], answer["kv_tokens"], answer["max_concurrency"]) == (102_645, 703_949, 42.9657)


def test_only_light_modules_are_imported(tmp_path):
    """Cold start is a promise: nothing that takes long to import is touched by one answer."""
    heavy = (
        "google.cloud.firestore",
        "grpc",
        "requests",
        "httpx",
        "flask",
        "numpy",
        "jinja2",
        "sqlalchemy",
        "structlog",
    )
    code = f"import sys; from agent.entrypoints.cli.main import main; main({DIES!r}); print([m for m in {heavy!r} if m in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stderr.strip().endswith("[]")


def test_a_byte_that_is_no_text_and_a_raw_separator_spoil_at_most_their_own_row(tmp_path, capsys):
    row = b'{"id":"%s","model":"google/gemma-4-E2B-it","accelerator":"nvidia-l4","flags":"--served-model-name a%sb"}'
    rows = tmp_path / "rows.jsonl"
    rows.write_bytes(b"\n".join([row % (b"x", b"\xff"), row % (b"y", b"\xe2\x80\xa8"), row % (b"z", b"")]))
    assert main(["fit", "--batch", str(rows)]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(answer["id"], answer.get("fits")) for answer in answers][1:] == [("y", True), ("z", True)]


def test_a_refusal_is_the_verdict_whatever_else_is_noted_of_the_question(capsys):
    """Devices that are not used are an assumption, and no reason why a server does not start."""
    words = ["fit", "--model", "google/gemma-4-31B-it", "--accelerator", "nvidia-h100-80gb", "--vllm", "0.9.0"]
    assert main([*words, "--count", "3"]) == 1
    said = capsys.readouterr().out
    assert "Does not start: " in said.splitlines()[0]
    assert "devices are not used" not in said.splitlines()[0]
    assert "assumed: 2 of 3 devices are not used" in said
