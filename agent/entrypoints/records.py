"""The records of a source: a file, a folder, standard input or a text, taken apart by content, never by suffix."""

import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agent.core.signal import TEXT_LIMIT
from agent.entrypoints.bytestream import head_of, lines_of, plain_bytes
from agent.entrypoints.json_values import values_of
from agent.entrypoints.pubsub import delivery_of, is_envelope
from agent.errors import InputRejected
from agent.strict_json import read_object

RECORD_LIMIT = 1_048_576  # bytes of one record; a log entry has at most 256 KB
PROGRESS_EVERY = 1_048_576  # bytes between two reports

_SKIPPED = ("readme", "provenance", "licence", "license", "index.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRecord:
    """One JSON object: a JSON line, an element of an array, a whole file; a Pub/Sub envelope is taken off.

    Attributes:
        origin: The file's name, ``-`` for standard input.
        line: The line it begins on, from 1.
    """

    origin: str
    line: int
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRecord:
    """A stretch of a plain log, whole lines of at most the chosen number of characters (a longer line is cut up).

    Attributes:
        part: Counts the stretches of one file, from 0.
        last: Whether the file ends with it.
    """

    origin: str
    line: int
    text: str
    part: int = 0
    last: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """A row that can never be read, and why; the rows after it were read."""

    origin: str
    line: int
    error: InputRejected


Record = JsonRecord | TextRecord | BadRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a source has been read.

    Attributes:
        read_bytes: Bytes after unpacking.
        total_bytes: Size of the file before unpacking, None where it is not known.
    """

    origin: str
    read_bytes: int
    records: int
    total_bytes: int | None


OnProgress = Callable[[Progress], None]


def records_of(
    source: str, *, stdin: IO[bytes], text_limit: int = TEXT_LIMIT, progress: OnProgress | None = None
) -> Iterator[Record]:
    """Yield the records of a source, in order and in bounded memory.

    Args:
        source: A file, a folder (its files by name, hidden ones and read-mes left out), or ``-``.
        stdin: What ``-`` reads.
        text_limit: The most characters of one stretch of plain text.
        progress: Called about once per MiB and at the end of each file.

    Raises:
        InputRejected: There is no such source, it may not be read, or the folder holds no file.
    """
    if source == "-":
        yield from records_in(stdin, origin="-", text_limit=text_limit, progress=progress)
        return
    for path in _files(Path(source)):
        try:
            with path.open("rb") as stream:
                size = path.stat().st_size
                yield from records_in(
                    stream, origin=path.name, text_limit=text_limit, progress=progress, total_bytes=size
                )
        except OSError as error:
            raise _unreadable(str(path), error.strerror or str(error)) from error


def records_of_text(words: str, *, origin: str, text_limit: int = TEXT_LIMIT) -> Iterator[Record]:
    """Yield the records of a text that is already here."""
    return records_in(io.BytesIO(words.encode("utf-8", "replace")), origin=origin, text_limit=text_limit)


def records_in(
    stream: IO[bytes],
    *,
    origin: str,
    text_limit: int = TEXT_LIMIT,
    progress: OnProgress | None = None,
    total_bytes: int | None = None,
) -> Iterator[Record]:
    """Yield the records of one stream: a JSON array, JSON lines, JSON objects, or a plain log, packed or not.

    What it is shows in its first 64 KiB. A byte-order mark, UTF-16 with one, CRLF and gzip are taken as they come.

    Args:
        stream: Bytes; read forward only.
        origin: Names the stream in every record.
        text_limit: The most characters of one stretch of plain text.
        progress: Told how far it is.
        total_bytes: The stream's size, for the progress.
    """
    counted = _Counted(origin, progress, total_bytes)
    try:
        plain = plain_bytes(stream)
        head = head_of(plain)
        if b"\0" in head:
            raise _unreadable(origin, "it is binary")
        form = _form(head)
        if form == "lines":
            found = _json_lines(plain, origin)
        elif form == "values":
            found = _json_values(plain, origin)
        else:
            found = _stretches(plain, origin, text_limit)
        for record in found:
            counted.add(plain.tell())
            yield record
        counted.end(plain.tell())
    except InputRejected as error:
        yield BadRecord(origin=origin, line=0, error=error)


def _form(head: bytes) -> str:
    """Return ``lines``, ``values`` or ``text``: what the beginning of a stream looks like."""
    start = head.lstrip()
    after = start[1:].lstrip()[:1]
    if start[:1] == b"[" and (after in {b"{", b"]"} or not after):
        return "values" if after else "text"
    rows = [row.strip() for row in head.split(b"\n")]
    rows = [row for row in (rows[:-1] or rows) if row]
    whole = [row.startswith((b'{"', b"{ ", b"{}")) and row.endswith(b"}") for row in rows]
    if sum(whole) * 2 >= len(rows) > 0:
        return "lines"
    if start[:1] != b"{" or after not in {b'"', b"}"} or whole[0]:
        return "text"
    if len(rows) == 1:
        return "lines"
    return "values" if rows[1].startswith((b'"', b"}", b"{", b"[", b"]")) else "text"


def _json_lines(plain: IO[bytes], origin: str) -> Iterator[Record]:
    for number, row in lines_of(plain, RECORD_LIMIT):
        if row is None:
            yield _too_long(origin, number)
        elif row.strip():
            yield _parsed(row.strip(), origin, number)


def _json_values(plain: IO[bytes], origin: str) -> Iterator[Record]:
    for number, raw in values_of(plain, RECORD_LIMIT):
        yield _too_long(origin, number) if raw is None else _parsed(raw, origin, number)


def _parsed(raw: bytes, origin: str, line: int) -> Record:
    try:
        value = read_object(raw, what=f"record at line {line} of {origin!r}", limit=RECORD_LIMIT)
        if is_envelope(value):
            message = delivery_of(value).data
            value = read_object(message, what=f"message at line {line} of {origin!r}", limit=RECORD_LIMIT)
    except InputRejected as error:
        return BadRecord(origin=origin, line=line, error=error)
    return JsonRecord(origin=origin, line=line, value=value)


def _stretches(plain: IO[bytes], origin: str, limit: int) -> Iterator[Record]:
    """Yield plain text in stretches of whole lines; one is held back so that the last knows that it is."""
    held: TextRecord | None = None
    rows: list[str] = []
    size, first, number = 0, 1, 0
    for number, row in lines_of(plain, limit, cut=True):
        words = (row or b"").decode("utf-8", "replace")
        if size + len(words) > limit and rows:
            if held is not None:
                yield held
            held = TextRecord(
                origin=origin, line=first, text="".join(rows), part=held.part + 1 if held else 0, last=False
            )
            rows, size, first = [], 0, number
        rows.append(words)
        size += len(words)
    if held is not None:
        yield held
    yield TextRecord(origin=origin, line=first, text="".join(rows), part=held.part + 1 if held else 0)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.exists():
        raise _unreadable(str(path), "there is no such file or folder")
    if not path.is_dir():
        return [path]
    found = sorted(
        item
        for item in path.rglob("*")
        if item.is_file()
        and not any(piece.startswith(".") for piece in item.relative_to(path).parts)
        and not item.name.lower().startswith(_SKIPPED)
    )
    if not found:
        raise _unreadable(str(path), "the folder holds no file")
    return found


def _too_long(origin: str, line: int) -> BadRecord:
    return BadRecord(
        origin=origin,
        line=line,
        error=InputRejected(
            f"the record at line {line} of {origin!r} was not read",
            why=f"it has more than {RECORD_LIMIT} bytes",
            mend="a log entry has at most 256 KB: cut it, or give the log as plain text",
        ),
    )


def _unreadable(name: str, why: str) -> InputRejected:
    return InputRejected(
        f"the source {name!r} was not read",
        why=why,
        mend="give a file or folder of log entries (JSON array, JSON lines) or of plain log text, or '-'",
    )


class _Counted:
    """Counts records and tells how far the reading is."""

    def __init__(self, origin: str, progress: OnProgress | None, total: int | None) -> None:
        self._origin, self._progress, self._total = origin, progress, total
        self._records, self._next = 0, PROGRESS_EVERY

    def add(self, read_bytes: int) -> None:
        self._records += 1
        if read_bytes >= self._next:
            self._next = read_bytes + PROGRESS_EVERY
            self.end(read_bytes)

    def end(self, read_bytes: int) -> None:
        if self._progress is not None:
            self._progress(
                Progress(origin=self._origin, read_bytes=read_bytes, records=self._records, total_bytes=self._total)
            )
