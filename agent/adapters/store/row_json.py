"""JSON and times of stored rows; times are whole microseconds since 1970 UTC, so that they sort and compare exactly."""

from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from agent.core.value import Value
from agent.errors import DependencyFailed, InputRejected

V = TypeVar("V", bound=Value)


def to_text(value: Value) -> str:
    """Return the JSON of a value.

    Raises:
        InputRejected: It holds text that JSON cannot say (half a surrogate pair).
    """
    try:
        return value.model_dump_json()
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        raise InputRejected(
            f"a {type(value).__name__} was not stored",
            why="it holds characters that are no Unicode text",
            hint="send it as UTF-8; it is not tried again",
        ) from error


def from_text(kind: type[V], text: str) -> V:
    """Return the value that :func:`to_text` wrote.

    Raises:
        DependencyFailed: The store holds something else: damaged, or written by a newer program.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DependencyFailed(
            f"a stored {kind.__name__} was not read",
            why=f"{where or 'the whole'}: {first['msg']}",
            hint="run the program that wrote it, or a newer one; if none can read it, restore the last backup",
        ) from error


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_us(at: datetime) -> int:
    """Return microseconds since 1970 UTC of an aware time."""
    return (at - _EPOCH) // _MICROSECOND


def from_us(us: int) -> datetime:
    """Return the aware UTC time of ``us`` microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=us)
