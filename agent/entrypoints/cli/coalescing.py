"""Long sources in bounded memory: equal records are counted, plain logs become one digest for each file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent.core.incident.correlation import LOUD
from agent.core.intake.ends import cloud_run_end, reports_sigterm
from agent.core.intake.log_sample import LogSample, PowerOfTwoCounter
from agent.entrypoints.cli.records import BadRecord, JsonRecord, Record, TextRecord
from agent.failures.match.matcher import Matcher
from agent.failures.text.entry_text import entry_lines, stretch_lines

BATCH = 4096
APP_LOGS = ("%2Fstdout", "%2Fstderr", "/stdout", "/stderr")


@dataclass(kw_only=True)
class Coalescing:
    """Passes on what tells something new.

    Attributes:
        read: Records so far.
        passed: Records passed on; the rest repeats them, or is an app's line that no rule knows.
        digests: Plain logs by the name of their file.
    """

    matcher: Matcher
    read: int = 0
    passed: int = 0
    digests: dict[str, LogSample] = field(default_factory=dict)
    _tally: PowerOfTwoCounter = field(default_factory=PowerOfTwoCounter)

    def records(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records that tell something new, in order; plain text goes to ``digests``."""
        batch: list[JsonRecord] = []
        for record in records:
            self.read += 1
            if isinstance(record, TextRecord):
                self._digest(record)
                continue
            if isinstance(record, JsonRecord):
                batch.append(record)
                if len(batch) < BATCH:
                    continue
            yield from self._new(batch)
            batch = []
            if isinstance(record, BadRecord):
                yield record
        yield from self._new(batch)

    def _new(self, batch: list[JsonRecord]) -> Iterator[JsonRecord]:
        for record, kind in zip(batch, self._kinds(batch), strict=True):
            if kind is not None and self._tally.tells(kind):
                self.passed += 1
                yield record

    def _digest(self, record: TextRecord) -> None:
        digest = self.digests.setdefault(record.origin, LogSample(self.matcher))
        digest.add(stretch_lines(record.text.removesuffix("\n")))

    def _kinds(self, entries: list[JsonRecord]) -> list[tuple[Any, ...] | None]:
        """Return what each entry is one of; None for an app's line that no rule knows."""
        texts = [" ".join(entry_lines(entry.value)) for entry in entries]
        signatures: dict[int, str] = {index: match.signature for index, match in self.matcher.scan(texts)}
        return [_kind(entry.value, signatures.get(n), texts[n]) for n, entry in enumerate(entries)]


def _kind(entry: Mapping[str, Any], signature: str | None, text: str) -> tuple[Any, ...] | None:
    name = entry.get("logName")
    if not isinstance(name, str):
        return (text,)
    labels = _part(_part(entry, "resource"), "labels")
    place = (labels.get("service_name"), labels.get("revision_name"), labels.get("pod_name"), labels.get("node_id"))
    if cloud_run_end(text) is not None or reports_sigterm(text):  # each instance ends for itself, asked or not
        return (name, *map(str, place), str(_part(entry, "labels").get("instanceId")), text[:200])
    if signature is None and name.endswith(APP_LOGS):
        return None
    if signature is None and entry.get("severity") not in LOUD:
        return (name, *map(str, place), str(_part(entry, "httpRequest").get("status", "")), text[:200])
    return (name, *map(str, place), signature or text[:200])


def _part(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = entry.get(key)
    return found if isinstance(found, Mapping) else {}
