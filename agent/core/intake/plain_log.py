"""A plain log, such as a file or a pasted text: whole stretches of lines become one signal each."""

from collections.abc import Sequence
from datetime import datetime

from agent.core.intake.ends import PlainEnds
from agent.core.intake.json_fields import names
from agent.core.intake.origin import HOST, Ignored, IgnoredBecause, Origin, Reading, signal
from agent.core.intake.signal import TEXT_LIMIT, Signal, Source, log_key
from agent.core.value import digest


def signals_of_text(
    words: str, *, named: str, reading: Reading, at: datetime, numbers: Sequence[int] = ()
) -> tuple[Signal | Ignored, ...]:
    """Return the signals of a log without envelopes, each at most ``TEXT_LIMIT`` characters, cut between lines.

    Args:
        words: The text.
        named: Where it is from, such as a file's name; part of the dedup key, and the service's name where
            ``reading.service`` says none.
        reading: What must be known from elsewhere.
        at: The time that all of it counts as; the lines' own times have no zone and often no year.
        numbers: Of each line its place in its file, from 1, or 0 where nobody knows it; empty for a whole file.

    Raises:
        InputRejected: Neither the reading nor ``named`` names a service.
    """
    origin = Origin(shape="plain log", platform=HOST, names=names(reading.service or named))
    found: list[Signal | Ignored] = []
    line = 1
    ends = PlainEnds(origin.names)
    for stretch in _stretches(words):
        if stretch.strip():
            place = numbers[line - 1] if numbers else line
            key = log_key(reading.run, log_name=named, insert_id=f"{line}/{digest(stretch)[:16]}", timestamp="")
            found.append(
                signal(
                    origin,
                    reading,
                    key=key,
                    source=Source.APP_LOG,
                    at=at,
                    said=stretch,
                    fields={"line": str(place)} if place else {},
                    end=ends.read_all(stretch.splitlines()),
                )
            )
        line += stretch.count("\n")
    return tuple(found) or (Ignored(because=IgnoredBecause.EMPTY, what=named[:80]),)


def _stretches(words: str) -> list[str]:
    stretches: list[str] = []
    start = 0
    while start < len(words):
        end = start + TEXT_LIMIT
        if end < len(words):
            newline = words.rfind("\n", start, end)
            end = newline + 1 if newline >= start else end
        stretches.append(words[start:end])
        start = end
    return stretches
