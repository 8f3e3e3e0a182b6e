"""Inputs of classify: told apart by content, one each, in order, in bounded memory."""

import io
import json
from pathlib import Path

import pytest

from agent.app.catalogues import matcher
from agent.entrypoints.cli import classified_records
from agent.entrypoints.cli.classified_records import WHOLE_CHARS, ClassifyInput, finding_of, inputs_of, platform_of
from agent.entrypoints.cli.records import records_in
from tests.counts import tries

FAILED = Path(__file__).resolve().parents[3] / "data" / "vllm-cpu-logs"


def read(text: str) -> list[ClassifyInput]:
    return list(inputs_of(records_in(io.BytesIO(text.encode()), origin="file"), matcher=matcher()))


def test_json_lines_an_array_and_plain_text_are_told_apart_by_content() -> None:
    rows = [{"id": "a", "log": "one"}, {"id": "b", "log": "two\nthree", "platform": "host"}]
    for text in ("\n".join(map(json.dumps, rows)), json.dumps(rows), json.dumps(rows, indent=2)):
        assert [(r.id, r.log, r.platform, r.whole_log) for r in read(text)] == [
            ("a", "one", None, False),
            ("b", "two\nthree", "host", True),
        ]
    [plain] = read("INFO started\nERROR ended")
    assert (plain.id, plain.log, plain.whole_log) == ("file", "INFO started\nERROR ended", True)


def test_a_log_entry_gives_its_insert_id_and_platform() -> None:
    entry = {"insertId": "i1", "textPayload": "Killed", "resource": {"type": "cloud_run_revision"}}
    [record] = read(json.dumps(entry))
    assert (record.id, record.log, record.platform) == ("i1", "Killed", "cloud_run")


@pytest.mark.parametrize(
    ("row", "part"),
    [
        ("not json", "line 2: Expecting value"),
        ('{"id": 1}', "neither"),
        ('{"id": 2, "log": 5}', "want a string"),
        ("[1]", "object"),
        ("[" * 9999, "deep"),
    ],
)
def test_a_bad_row_is_told_and_the_rest_goes_on(row: str, part: str) -> None:
    good = '{"id": "a", "log": "x"}'
    records = read(f"{good}\n{row}\n{good}")
    assert [bool(record.error) for record in records] == [False, True, False]
    assert part in records[1].error


def test_a_log_of_json_entries_is_taken_apart() -> None:
    log = "\n".join(json.dumps({"textPayload": text}) for text in ("one", "two"))
    [record] = read(json.dumps({"id": "x", "log": log}))
    assert record.log == "one\ntwo"


def test_a_plain_log_that_begins_with_a_bracket_is_text() -> None:
    [record] = read("[rank0]: Traceback (most recent call last)\n[rank0]: ValueError: no")
    assert record.id == "file"


@pytest.mark.parametrize(("text", "why"), [("", "it is empty"), (" \n", "it is empty"), ("[]", "it holds no record")])
def test_a_source_that_says_nothing_is_said_to_say_nothing(text: str, why: str) -> None:
    [found] = read(text)
    assert (found.id, found.error, found.unread) == ("file", why, True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["10_kv_too_small_env", "18_port_in_use"][: tries(1, ci=2, soak=2)])
def test_a_log_of_any_length_is_answered_as_its_telling_part(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed start behind more lines than are kept whole has the class, signature and fields that it has alone."""
    whole = WHOLE_CHARS // tries(16, ci=1, soak=1)
    monkeypatch.setattr(classified_records, "WHOLE_CHARS", whole)
    short = (FAILED / f"{name}.log").read_text()
    noise = "INFO 11-20 03:00:00 [loggers.py:257] a line that tells nothing of any failure, number {}\n"
    long = "".join(noise.format(n) for n in range(whole // 80)) + short + "".join(map(noise.format, range(4000)))
    [alone], [found] = read(short), read(long)
    assert len(found.log) < whole / 4
    answers = [matcher().classify(one.log, whole_log=True, platform=None) for one in (alone, found)]
    assert answers[0].class_ is answers[1].class_
    assert (answers[0].signature, answers[0].fields) == (answers[1].signature, answers[1].fields)


def test_an_error_that_no_rule_knows_is_not_lost_in_the_middle_of_a_long_log() -> None:
    calm = "INFO 11-20 03:00:00 [loggers.py:257] all is calm\n" * (WHOLE_CHARS // 45)
    [found] = read(calm + "ERROR 11-20 03:00:01 [engine.py:1] the flux fell out of its bounds\n" + calm)
    assert "the flux fell out" in found.log


def test_platforms_by_resource() -> None:
    assert platform_of({"resource": {"type": "k8s_pod"}}) == "kubernetes"
    assert platform_of({"resource": {"type": "tpu_worker"}}) == "tpu_vm"
    assert platform_of({"resource": "odd"}) is None


def test_a_pod_or_an_event_of_another_platform_is_a_record_too() -> None:
    [pod] = read(
        json.dumps(
            {"kind": "Pod", "status": {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]}},
            indent=1,
        )
    )
    assert "ErrImagePull" in pod.log
    [row] = read(json.dumps({"Msg": "Probe of Startup failed", "Reason": "ProbeFailed"}))
    assert row.log == "ProbeFailed: Probe of Startup failed"


def test_a_line_ends_with_a_line_feed_alone() -> None:
    """Separators that JSON allows raw in a string do not cut its record in two."""
    rows = [{"id": sign, "log": f"a{sign}b"} for sign in ("\u2028", "\x85", "\u2029")]
    records = read("\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    assert [record.id for record in records] == [row["id"] for row in rows]


def test_many_bad_rows_do_not_turn_records_into_a_plain_log() -> None:
    records = read('garbage\nnull\n[1]\n{"id": "a", "log": "OOMKilled"}\n{"id": NaN, "log": "x"}')
    assert [bool(record.error) for record in records] == [True, True, True, False, True]


def test_a_plain_log_with_an_object_in_it_stays_plain() -> None:
    [record] = read('INFO started\n{"model": "m", "port": 8000}\nINFO ready\nERROR ended')
    assert record.id == "file"


ORDINARY = [
    "(APIServer pid=1) INFO:     Application startup complete.",
    '(APIServer pid=1) INFO:     10.0.0.8:51412 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
]


@pytest.mark.parametrize(
    ("lines", "class_", "shown"),
    [
        (["Container called exit(0)."], "unknown", "Container called exit(0)."),
        ([*ORDINARY, "Container called exit(0)."], "unknown", "Container called exit(0)."),
        (["INFO:     Application shutdown complete.", "vllm-1 exited with code 0"], "unknown", "vllm-1 exited with code 0"),
        (["systemd[1]: vllm.service: Deactivated successfully."], "unknown", "systemd[1]: vllm.service: Deactivated"),
        (["INFO trigger received signal=SIGTERM", "Container called exit(0)."], "benign", ""),
        (["systemd[1]: Stopping vllm.service - LLM...", "systemd[1]: vllm.service: Deactivated successfully."], "benign", ""),
        (["ERROR torch.OutOfMemoryError: CUDA out of memory.", "Container called exit(0)."], "gpu_oom_weights", "ERROR torch"),
        (["model-download-1 exited with code 0", *ORDINARY], "benign", ""),
    ],
)  # fmt: skip
def test_an_end_that_nobody_asked_for_is_never_benign(lines: list[str], class_: str, shown: str) -> None:
    """What ended with 0 and without a stop is unknown; beside a cause it is that cause."""
    found = finding_of(ClassifyInput(id="a", log="\n".join(lines), whole_log=True), matcher())
    assert found.class_ == class_
    assert found.benign == (class_ == "benign")
    assert not shown or found.evidence[0].text.startswith(shown)
