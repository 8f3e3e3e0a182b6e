"""Untrusted JSON objects, field by field: a field of the wrong type is no field."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from agent.core.intake.signal import TEXT_LIMIT
from agent.errors import InputRejected

FIELD_LIMIT = 1024  # characters of one small fact

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,12})?)?(?:Z|[+-]\d\d:?\d\d)?")
_GO_TIME = re.compile(r"(\S+ \S+?) ([+-]\d{4}) [A-Z]{2,5}")  # Go's time.String(), as Container Apps prints it
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@ -]{0,252}")
_CUT = "\n[... cut ...]\n"
_YEARS = range(2000, 2100)


def part(body: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return the object at ``path``, empty where there is none."""
    here: Any = body
    for key in path:
        here = here.get(key)
        if not isinstance(here, dict):  # parsed JSON; asking for Mapping costs four times as much
            return {}
    return here  # type: ignore[no-any-return]


def is_envelope(body: Mapping[str, Any]) -> bool:
    """Whether a parsed body is an envelope around a message."""
    return "specversion" in body or bool(part(body, "message") and "subscription" in body)


def rows(body: Mapping[str, Any], key: str) -> Sequence[Any]:
    """Return the array under ``key``, empty where there is none."""
    found = body.get(key)
    return found if isinstance(found, list) else ()


def text(body: Mapping[str, Any], *keys: str) -> str:
    """Return the first non-empty string under any of ``keys``; empty where there is none."""
    for key in keys:
        found = body.get(key)
        if isinstance(found, str) and found:
            return found
    return ""


def name(value: object) -> str | None:
    """Return a value that can name a service, revision or instance, else None."""
    return value if isinstance(value, str) and _NAME.fullmatch(value) else None


def names(*values: object) -> tuple[str, ...]:
    """Return the usable names among ``values``, each once, in order."""
    return tuple(dict.fromkeys(found for value in values if (found := name(value))))


def facts(**values: object) -> dict[str, str]:
    """Return small facts as strings, cut, without the empty ones."""
    return {
        key: str(value)[:FIELD_LIMIT]
        for key, value in values.items()
        if isinstance(value, str | int | float) and value != ""
    }


def cut(said: str) -> str:
    """Return at most ``TEXT_LIMIT`` characters: the head and the tail, where exceptions stand."""
    if len(said) <= TEXT_LIMIT:
        return said
    tail = TEXT_LIMIT // 4
    return said[: TEXT_LIMIT - tail - len(_CUT)] + _CUT + said[-tail:]


def time_of(value: object) -> datetime | None:
    """Return a moment, UTC, or None where the value is none.

    Args:
        value: RFC 3339 text (up to nanoseconds, which are cut to microseconds; no zone means UTC), Go's
            printed time, or seconds since 1970. A year outside 2000..2099 is a sender's zero value or a lie.
    """
    try:
        if isinstance(value, str):
            go = _GO_TIME.fullmatch(value)
            said = f"{go[1]}{go[2]}" if go else value
            if not _RFC3339.fullmatch(said):
                return None
            at = datetime.fromisoformat(said)
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            at = datetime.fromtimestamp(value, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return at if at.year in _YEARS else None


def first_time(*values: object) -> datetime | None:
    """Return the first value that is a moment."""
    return next((at for value in values if (at := time_of(value))), None)


def shown(value: object) -> str:
    """Return a value short enough for an error."""
    said = repr(value)
    return said if len(said) <= 80 else f"{said[:77]}..."


def missing(shape: str, field: str, value: object = None) -> InputRejected:
    """Return the refusal of a body whose ``field`` is missing or unusable."""
    why = f"{field} is missing" if value is None else f"{field} is {shown(value)}"
    return InputRejected(f"the {shape} became no signal", why=why, hint=f"send it with a usable {field}")
