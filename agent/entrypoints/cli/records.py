"""The records of files, folders or standard input, read in bounded memory and taken apart by content."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import IO, Any, TextIO

from agent.core.intake.json_fields import is_envelope
from agent.core.intake.signal import TEXT_LIMIT
from agent.core.text.safe_text import inert
from agent.entrypoints.cli.byte_stream import head_of, is_binary, lines_of, plain_bytes, skip_zeros
from agent.entrypoints.cli.json_values import values_of
from agent.entrypoints.pubsub.delivery import delivery_of
from agent.errors import InputRejected
from agent.strict_json import read_object

RECORD_LIMIT = 1_048_576  # bytes of one record; a log entry has at most 256 KB
PROGRESS_EVERY = 1_048_576  # bytes between two reports
SHOW_FROM_BYTES = 4_000_000  # a shorter source is read before a person has read a line about it
SURE_ROWS = 20  # rows at the start that are looked at for a record beyond doubt

_SKIPPED = ("readme", "provenance", "licence", "license", "index.json", "expected.json")
_SETTINGS = (".toml", ".md")
_GLOB = "*?["


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
        ended: Whether the source has been read to its end.
    """

    origin: str
    read_bytes: int
    records: int
    total_bytes: int | None
    ended: bool = False


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One file of a source.

    Attributes:
        name: What its records are called by: the file's name, inside a folder its path there, ``-`` for standard input.
        path: Where it is; None for standard input.
    """

    name: str
    path: Path | None


def files_of(source: str) -> tuple[SourceFile, ...]:
    """Return the files that a source names, in order.

    Args:
        source: A file, a folder (its files by path; hidden ones, read-mes and settings left out), a glob that the
            shell did not expand, or ``-``.

    Raises:
        InputRejected: There is no such source, or the folder holds no file.
    """
    if source == "-":
        return (SourceFile(name="-", path=None),)
    path = Path(source)
    if path.is_dir():
        return _inside(path)
    if path.exists():
        return (SourceFile(name=path.name, path=path),)
    if any(sign in source for sign in _GLOB):
        found = tuple(file for name in sorted(glob(source)) for file in files_of(name))  # noqa: PTH207 - may be absolute
        if found:
            return found
        raise _unreadable(source, "no file matches it")
    raise _unreadable(source, "there is no such file or folder")


def records_of(source: str, *, stdin: IO[bytes], progress: OnProgress | None = None) -> Iterator[Record]:
    """Yield the records of a source, in order and in bounded memory.

    Args:
        source: As in :func:`files_of`.
        stdin: What ``-`` reads.
        progress: Called about once per MiB and at the end of each file.

    Raises:
        InputRejected: There is no such source, or the folder holds no file.
    """
    for file in files_of(source):
        yield from records_of_file(file, stdin=stdin, progress=progress)


def records_of_file(
    file: SourceFile,
    *,
    stdin: IO[bytes],
    text_limit: int = TEXT_LIMIT,
    record_limit: int = RECORD_LIMIT,
    progress: OnProgress | None = None,
) -> Iterator[Record]:
    """Yield the records of one file; one that cannot be read, is binary or is empty is one bad record at line 0."""
    limits: dict[str, Any] = {"text_limit": text_limit, "record_limit": record_limit, "progress": progress}
    if file.path is None:
        yield from records_in(stdin, origin=file.name, **limits)
        return
    try:
        with file.path.open("rb") as stream:
            yield from records_in(stream, origin=file.name, total_bytes=file.path.stat().st_size, **limits)
    except OSError as error:
        refused = _unreadable(file.name, (error.strerror or str(error)).lower())
        yield BadRecord(origin=file.name, line=0, error=refused)


def records_in(
    stream: IO[bytes],
    *,
    origin: str,
    text_limit: int = TEXT_LIMIT,
    record_limit: int = RECORD_LIMIT,
    progress: OnProgress | None = None,
    total_bytes: int | None = None,
) -> Iterator[Record]:
    """Yield the records of one stream: a JSON array, JSON lines, JSON objects, or a plain log, packed or not.

    What it is shows in its first 64 KiB. A byte-order mark, UTF-16 with one, CRLF and gzip are taken as they come.

    Args:
        stream: Bytes; read forward only.
        origin: Names the stream in every record.
        text_limit: The most bytes of one stretch of plain text, at least 4.
        record_limit: The most bytes of one JSON record.
        progress: Called with how far it is.
        total_bytes: The stream's size, for the progress.
    """
    counted = _Counted(origin, progress, total_bytes)
    try:
        plain = plain_bytes(stream)
        skipped = skip_zeros(plain)
        head = head_of(plain)
        if is_binary(head, skipped=skipped):
            raise _unreadable(origin, "it is binary")
        if not head.strip():
            raise _unreadable(origin, "it is empty")
        form = _form(head)
        if form == "lines":
            found = _json_lines(plain, origin, record_limit)
        elif form == "values":
            found = _json_values(plain, origin, record_limit)
        else:
            found = _stretches(plain, origin, text_limit)
        for record in found:
            counted.add(plain.tell())
            yield record
        if not counted.records:
            raise _unreadable(origin, "it holds no record")
        counted.end(plain.tell())
    except InputRejected as error:
        yield BadRecord(origin=origin, line=0, error=error)


def _form(head: bytes) -> str:
    """Return ``lines``, ``values`` or ``text``: what the beginning of a stream looks like."""
    start = head.lstrip()
    after = start[1:].lstrip()[:1]
    if start[:1] == b"[" and (after in {b"{", b"]"} or not after):
        return "values" if after else "text"
    rows = [row.strip() for row in start.split(b"\n")]
    rows = [row for row in (rows[:-1] or rows) if row]
    if any(map(_is_record, rows[:SURE_ROWS])):
        return "lines"
    whole = [row.startswith((b'{"', b"{ ", b"{}")) and row.endswith(b"}") for row in rows]
    if sum(whole) * 2 >= len(rows) > 0:
        return "lines"
    if start[:1] != b"{" or after not in {b'"', b"}"} or whole[0]:
        return "text"
    if len(rows) == 1:
        return "lines"
    return "values" if rows[1].startswith((b'"', b"}", b"{", b"[", b"]")) else "text"


def _is_record(row: bytes) -> bool:
    """Whether a row is a record beyond doubt, as no line of a plain log is: one of them makes its source JSON lines."""
    if not row.startswith(b"{") or not (b'"insertId"' in row or (b'"id"' in row and b'"log"' in row)):
        return False
    try:
        value = json.loads(row)  # not strict: what form it has; its record is read strictly
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and ("insertId" in value or {"id", "log"} <= value.keys())


def _json_lines(plain: IO[bytes], origin: str, limit: int) -> Iterator[Record]:
    for number, row in lines_of(plain, limit):
        if row is None:
            yield _too_long(origin, number, limit)
        elif row.strip():
            yield _parsed(row.strip(), origin, number, limit)


def _json_values(plain: IO[bytes], origin: str, limit: int) -> Iterator[Record]:
    for number, raw in values_of(plain, limit):
        yield _too_long(origin, number, limit) if raw is None else _parsed(raw, origin, number, limit)


def _parsed(raw: bytes, origin: str, line: int, limit: int) -> Record:
    try:
        value = read_object(raw, what=f"record at line {line} of {origin!r}", limit=limit)
        if is_envelope(value):
            message = delivery_of(value).data
            value = read_object(message, what=f"message at line {line} of {origin!r}", limit=limit)
    except InputRejected as error:
        return BadRecord(origin=origin, line=line, error=error)
    return JsonRecord(origin=origin, line=line, value=value)


def _stretches(plain: IO[bytes], origin: str, limit: int) -> Iterator[Record]:
    """Yield plain text in stretches of whole lines; one is held back so that the last knows that it is."""
    rest = b""
    part = 0
    held: TextRecord | None = None
    while chunk := plain.read(limit - len(rest)):
        rest += chunk
        if len(rest) < limit:
            continue
        end = rest.rfind(b"\n") + 1 or _between_characters(rest)
        if held is not None:
            yield held
        held = TextRecord(origin=origin, text=_words(rest[:end]), part=part, last=False)
        part += 1
        rest = rest[end:]
    if held is not None:
        if not rest:
            yield TextRecord(origin=origin, text=held.text, part=held.part)
            return
        yield held
    yield TextRecord(origin=origin, text=_words(rest), part=part)


def _between_characters(data: bytes) -> int:
    """Return where to cut bytes so that no character of UTF-8 is cut in two; the end itself may be cut off there."""
    for back in range(1, min(4, len(data)) + 1):
        first = data[-back]
        if first < 0x80:
            break
        if first >= 0xC0:
            return len(data) - back or len(data)
    return len(data)


def _words(data: bytes) -> str:
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    return data.decode("utf-8", "replace")


def _inside(folder: Path) -> tuple[SourceFile, ...]:
    found = sorted(
        item
        for item in folder.rglob("*")
        if item.is_file()
        and not any(piece.startswith(".") for piece in item.relative_to(folder).parts)
        and not item.name.lower().startswith(_SKIPPED)
        and item.suffix not in _SETTINGS
    )
    if not found:
        raise _unreadable(str(folder), "the folder holds no file")
    return tuple(SourceFile(name=item.relative_to(folder).as_posix(), path=item) for item in found)


def _too_long(origin: str, line: int, limit: int) -> BadRecord:
    return BadRecord(
        origin=origin,
        line=line,
        error=InputRejected(
            f"the record at line {line} of {origin!r} was not read",
            why=f"it has more than {limit} bytes",
            hint="a log entry has at most 256 KB: cut it, or give the log as plain text",
        ),
    )


def _unreadable(name: str, why: str) -> InputRejected:
    return InputRejected(
        f"the source {name!r} was not read",
        why=why,
        hint="give a file or folder of log entries (JSON array, JSON lines) or of plain log text, or '-'",
    )


class _Counted:
    """Counts records and tells how far the reading is."""

    def __init__(self, origin: str, progress: OnProgress | None, total: int | None) -> None:
        self._origin, self._progress, self._total = origin, progress, total
        self.records, self._next = 0, PROGRESS_EVERY

    def add(self, read_bytes: int) -> None:
        self.records += 1
        if read_bytes >= self._next:
            self._next = read_bytes + PROGRESS_EVERY
            self._tell(read_bytes, ended=False)

    def end(self, read_bytes: int) -> None:
        self._tell(read_bytes, ended=True)

    def _tell(self, read_bytes: int, *, ended: bool) -> None:
        if self._progress is not None:
            self._progress(
                Progress(
                    origin=self._origin,
                    read_bytes=read_bytes,
                    records=self.records,
                    total_bytes=self._total,
                    ended=ended,
                )
            )


def progress_on(stream: TextIO) -> OnProgress | None:
    """Return what shows the progress of a long source on a terminal; None where the stream is no terminal."""
    if not stream.isatty():
        return None

    def show(progress: Progress) -> None:
        if progress.read_bytes < SHOW_FROM_BYTES:
            return
        total = progress.total_bytes or 0
        of = f" of {total / 1e6:,.0f}" if progress.read_bytes <= total else ""  # a packed file holds more than its size
        said = f"\r{inert(progress.origin)}: {progress.read_bytes / 1e6:,.0f}{of} MB read"
        print(said, end="\n" if progress.ended else "", file=stream, flush=True)

    return show
