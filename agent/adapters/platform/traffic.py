"""Traffic as it is recorded, the same on every platform; beside the port's adapters, since each of them reads it."""

from typing import Final

from pydantic import TypeAdapter, ValidationError

from agent.core.service.serving import Traffic
from agent.errors import InputRejected

LATEST: Final = (Traffic(percent=100),)
"""All of it goes to the newest revision; also where a platform knows no other way."""

_TRAFFIC: Final = TypeAdapter(tuple[Traffic, ...])


def parsed_traffic(text: str) -> tuple[Traffic, ...]:
    """Read traffic as it is recorded: the canonical JSON of ``Live.traffic``.

    Raises:
        InputRejected: It is none.
    """
    try:
        return _TRAFFIC.validate_json(text)
    except ValidationError as error:
        raise InputRejected(
            "the traffic was not read", why=f"{error.error_count()} mistakes in it", hint="use what was described"
        ) from error
