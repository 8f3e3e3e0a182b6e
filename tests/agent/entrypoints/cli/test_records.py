"""Sources come apart by their content; a bad row costs itself only, and no source costs more than a little memory."""

import gzip
import io
import json
import tracemalloc
from pathlib import Path

import pytest

from agent.entrypoints.cli.records import (
    RECORD_LIMIT,
    BadRecord,
    JsonRecord,
    Progress,
    TextRecord,
    files_of,
    progress_on,
    records_in,
    records_of,
)
from agent.errors import InputRejected

SAMPLES = Path(__file__).resolve().parents[3] / "data" / "samples"
ENTRY = json.loads((SAMPLES / "log_vllm_kv_cache_too_small.json").read_text())
THREE = [ENTRY | {"insertId": str(number)} for number in range(3)]


def read(data, **options):
    return list(records_in(io.BytesIO(data), origin="x", **options))


def lines(*rows):
    return "\n".join(json.dumps(row) for row in rows).encode()


FORMS = {
    "lines": lines(*THREE),
    "lines, CRLF and blank ones": b"\r\n\r\n" + lines(*THREE).replace(b"\n", b"\r\n\r\n") + b"\r\n",
    "lines, byte-order mark": b"\xef\xbb\xbf" + lines(*THREE),
    "lines, UTF-16": lines(*THREE).decode().encode("utf-16"),
    "lines, gzip": gzip.compress(lines(*THREE)),
    "lines, gzip with a byte-order mark": gzip.compress(b"\xef\xbb\xbf" + lines(*THREE)),
    "array on one line": json.dumps(THREE).encode(),
    "array, indented": json.dumps(THREE, indent=2).encode(),
    "objects, indented, one after another": b"\n".join(json.dumps(row, indent=2).encode() for row in THREE),
}


@pytest.mark.parametrize("data", FORMS.values(), ids=FORMS.keys())
def test_every_spelling_of_three_entries_gives_three_records(data):
    """The content decides; a suffix is never looked at."""
    found = read(data)
    assert [record.value for record in found] == THREE
    assert all(isinstance(record, JsonRecord) for record in found)


def test_records_say_the_line_they_begin_on():
    """Lines count from 1, blank lines too, in every form."""
    assert [record.line for record in read(b"\n" + FORMS["lines"])] == [2, 3, 4]
    size = json.dumps(ENTRY, indent=2).count("\n") + 1
    assert [record.line for record in read(FORMS["array, indented"])] == [2, 2 + size, 2 + 2 * size]


BAD_ROWS = {
    "no JSON": b"not json",
    "cut off": b'{"textPayload":"x',
    "NaN": b'{"a":NaN}',
    "a key twice": b'{"a":1,"a":2}',
    "no object": b"[1]",
    "not UTF-8": b'{"a":"\xff"}',
    "deep": b'{"a":' + b"[" * 90 + b"]" * 90 + b"}",
    "too long": b'{"a":"' + b"x" * RECORD_LIMIT + b'"}',
}


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_a_bad_line_is_an_error_row_and_the_rest_is_read(bad):
    """The row says its line and its reason."""
    found = read(b"\n".join([lines(THREE[0]), bad, lines(THREE[1])]))
    assert [type(record) for record in found] == [JsonRecord, BadRecord, JsonRecord]
    assert found[1].line == 2
    assert "line 2 of 'x'" in found[1].error.what


@pytest.mark.parametrize("bad", [b'{"a":NaN}', b"[1]", b"7", b'{"a":1,"a":2}', b'{"a":"' + b"x" * RECORD_LIMIT + b'"}'])
def test_a_bad_element_is_an_error_row_and_the_rest_is_read(bad):
    """An array goes on after an element that cannot be read, an endless one included."""
    found = read(b"[" + b",\n".join([lines(THREE[0]), bad, lines(THREE[1])]) + b"]")
    assert [type(record) for record in found] == [JsonRecord, BadRecord, JsonRecord]
    assert found[1].line == 2


TEXTS = {
    "a log": b"INFO start\nERROR boom\n",
    "a log that begins with a bracket": b"[2026-11-20 10:00] ERROR boom\n[2] x\n",
    "a log that begins with a brace": b"{'EngineCore': 1} failed\n",
    "a log with one JSON line": b'{"a": 1}\nTraceback\n  File "x"\nValueError: x\n',
    "a log with a torn JSON line": b'{"a": "cut off\nTraceback\n  File "x"\nValueError: x\n',
    "one line without an end": b"CUDA out of memory",
    "not UTF-8": b"caf\xe9 boom\n",
}


@pytest.mark.parametrize("data", TEXTS.values(), ids=TEXTS.keys())
def test_plain_text_is_one_record_where_it_is_short(data):
    """Brackets and stray JSON do not make a log something else."""
    (record,) = read(data)
    assert isinstance(record, TextRecord)
    assert record.text == data.decode("utf-8", "replace")
    assert record.last


def test_a_torn_record_below_an_empty_line_is_a_bad_row():
    """It is refused by its line, as it is without the empty line."""
    (record,) = read(b'\n{"a": "cut off')
    assert isinstance(record, BadRecord)
    assert record.line == 2


@pytest.mark.parametrize(
    "data",
    [b"", b" \r\n", b"\xef\xbb\xbf", b"[]", gzip.compress(b"")],
    ids=["nothing", "blanks", "byte-order mark", "empty array", "packed nothing"],
)
def test_a_source_without_a_record_is_said_to_hold_none(data):
    """Nothing read is not nothing wrong."""
    (record,) = read(data)
    assert (record.line, record.error.why) == (0, "it holds no record" if data == b"[]" else "it is empty")


@pytest.mark.parametrize("limit", [4, 5, 7, 64])
def test_a_line_that_is_cut_up_loses_no_character(limit):
    """Stretches end between characters, whatever their limit."""
    text = "naïve 漢字 🙂🙂🙂 " * 40
    found = read(text.encode(), text_limit=limit)
    assert "".join(record.text for record in found) == text
    assert found[-1].last
    assert not any(record.last for record in found[:-1])


def test_a_glob_that_the_shell_left_alone_is_expanded(tmp_path):
    """In the order of names; one without a match is refused."""
    for name in ("b.log", "a.log", "c.txt"):
        (tmp_path / name).write_text("boom\n")
    assert [file.name for file in files_of(str(tmp_path / "*.log"))] == ["a.log", "b.log"]
    with pytest.raises(InputRejected) as refused:
        files_of(str(tmp_path / "*.nothing"))
    assert refused.value.why == "no file matches it"


def test_progress_is_shown_on_a_terminal_only():
    """One line that is written over, and ended when the source is."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    assert progress_on(io.StringIO()) is None
    screen = Terminal()
    show = progress_on(screen)
    for read_bytes, ended in ((1_000_000, False), (5_000_000, False), (9_000_000, True)):
        show(Progress(origin="x\x1b[31m", read_bytes=read_bytes, records=1, total_bytes=9_000_000, ended=ended))
    assert screen.getvalue() == "\rx: 5 of 9 MB read\rx: 9 of 9 MB read\n"


def test_a_long_log_comes_in_stretches_of_whole_lines():
    """All stretches make the log again; they are numbered and the last one says so."""
    text = "".join(f"line {number}\n" for number in range(10_000))
    found = read(text.encode(), text_limit=1000)
    assert "".join(record.text for record in found) == text
    assert [record.part for record in found] == list(range(len(found)))
    assert [record.last for record in found] == [False] * (len(found) - 1) + [True]
    assert all(len(record.text) <= 1000 and record.text.endswith("\n") for record in found)
    assert all(record.text.startswith("line ") for record in found)


@pytest.mark.parametrize("form", ["lines", "array", "text", "one line"])
@pytest.mark.slow
def test_memory_does_not_grow_with_the_source(form):
    """6 MiB of any form are read with less than 4 MiB, an endless line too."""
    size = 6 * 1024 * 1024
    row = json.dumps(ENTRY).encode()
    many = size // len(row)
    data = {
        "lines": lambda: (row + b"\n") * many,
        "array": lambda: b"[" + (row + b",") * many + row + b"]",
        "text": lambda: (b"ERROR CUDA out of memory" * 20 + b"\n") * (size // 481),
        "one line": lambda: b'{"a":"' + b"x" * size,
    }[form]()
    stream = io.BytesIO(data)
    tracemalloc.start()
    try:
        for _ in records_in(stream, origin="x"):
            pass
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("cut", [10, 100])
def test_broken_gzip_ends_with_an_error_row(cut):
    """What was packed badly says so; nothing else is raised."""
    found = read(gzip.compress(lines(*THREE) * 200)[:-cut])
    assert isinstance(found[-1], BadRecord)
    assert "gzip" in found[-1].error.why


def test_a_binary_file_is_refused_as_such():
    """A checkpoint given by mistake is not read as a log."""
    (record,) = read(b"\x7fELF\0\0\0\0" * 100)
    assert record.error.why == "it is binary"


def test_a_log_that_was_emptied_under_its_writer_is_read_around_the_hole():
    """What stood there is lost; what follows is not."""
    line = b"ERROR 05-06 07:08:09 [lamp.py:3] out\n"
    for zeros in (300, 2**16 - 5, 2**16, 2**16 + 5, 2_000_000):
        *_, record = read(b"\0" * zeros + line)
        assert record.text.endswith("[lamp.py:3] out\n")
    before = line * ((2**16 - 5) // len(line))
    *_, record = read(before.ljust(2**16 - 5, b"-") + b"\0" * 4096 + line)
    assert record.text.endswith("[lamp.py:3] out\n")
    (zeros,) = read(b"\0" * 300)
    (sparse,) = read(b"lamp\0\0out" + b"\0" * 300)
    assert (zeros.error.why, sparse.error.why) == ("it is binary", "it is binary")


def test_a_pub_sub_envelope_is_taken_off():
    """Exports of push bodies replay like the entries inside."""
    wrapped = (SAMPLES / "pubsub_push_wrapped.json").read_bytes()
    (record,) = read(wrapped)
    assert record.value == json.loads((SAMPLES / "log_startup_probe_http.json").read_text())
    broken = json.loads(wrapped)
    broken["message"]["data"] = "!!"
    (record,) = read(lines(broken))
    assert isinstance(record, BadRecord)


def test_a_folder_is_read_file_by_file_in_order(tmp_path):
    """Hidden files and what only explains stay out."""
    for name in ("b.log", "a.jsonl", "README.md", ".hidden", "provenance.toml"):
        (tmp_path / name).write_bytes(lines(ENTRY) if name == "a.jsonl" else b"boom\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c").write_bytes(b"boom\n")
    found = list(records_of(str(tmp_path), stdin=io.BytesIO()))
    assert [record.origin for record in found] == ["a.jsonl", "b.log", "sub/c"]


def test_standard_input_is_a_source():
    """A dash reads what is piped in, which cannot be rewound."""

    class Pipe(io.RawIOBase):
        def __init__(self):
            self.rest = lines(*THREE)

        def readable(self):
            return True

        def readinto(self, buffer):
            found, self.rest = self.rest[:7], self.rest[7:]
            buffer[: len(found)] = found
            return len(found)

    assert [record.value for record in records_of("-", stdin=io.BufferedReader(Pipe()))] == THREE


@pytest.mark.parametrize("name", ["nowhere", ""], ids=["missing", "empty folder"])
def test_a_source_that_cannot_be_read_is_refused(tmp_path, name):
    """The refusal names the source and what may be given."""
    with pytest.raises(InputRejected) as refused:
        list(records_of(str(tmp_path / name), stdin=io.BytesIO()))
    assert refused.value.hint.startswith("give a file or folder of log entries")


def test_progress_is_told_while_reading_and_at_the_end():
    """About once per MiB, with what was read so far."""
    told = []
    row = json.dumps(ENTRY).encode() + b"\n"
    count = 3 * 1024 * 1024 // len(row)
    read(row * count, progress=told.append, total_bytes=len(row) * count)
    assert len(told) >= 3
    assert [step.read_bytes for step in told] == sorted(step.read_bytes for step in told)
    assert (told[-1].records, told[-1].read_bytes, told[-1].total_bytes) == (count, len(row) * count, len(row) * count)
