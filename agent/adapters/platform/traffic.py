"""Traffic as it is recorded, the same on every platform; beside the port's adapters, since each of them reads it."""

from typing import Final

from pydantic import TypeAdapter, ValidationError

from agent.core.service.serving import Traffic
from agent.errors import InputRejected

LATEST: Final = (Traffic(percent=100),)
"""All of it goes to the newest revision; also where a platform knows no other way."""

TAG_OF_LATEST: Final = "sre-new"
TAG_OF_PINNED: Final = "sre-new-pin"
"""Tags (Container Apps: labels) of a staged revision; which one it is tells what the traffic followed before."""

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


def staged_traffic(before: tuple[Traffic, ...], revision: str, *, serving: str | None) -> tuple[Traffic, ...]:
    """Return the traffic as it is, with the latest pinned to what serves now, and a tag at 0 % for the new revision.

    Raises:
        InputRejected: Nothing does.
    """
    if not serving:
        what, hint = f"{revision!r} was not staged", "change the service in place"
        raise InputRejected(what, why="no revision serves now", hint=hint)
    kept = tuple(t.with_(revision=t.revision or serving) for t in before)
    tag = TAG_OF_LATEST if before == LATEST else TAG_OF_PINNED
    return (*(t for t in kept if t.tag not in {TAG_OF_LATEST, TAG_OF_PINNED}), Traffic(revision=revision, tag=tag))


def shifted_traffic(before: tuple[Traffic, ...], revision: str, *, latest_ready: str) -> tuple[Traffic, ...]:
    """Return all traffic on a revision; where it followed the latest before it was staged, so again."""
    follows = any(t.tag == TAG_OF_LATEST for t in before) and revision == latest_ready
    return LATEST if follows else (Traffic(revision=revision, percent=100),)


def check_not_pinned(service: str, traffic: tuple[Traffic, ...]) -> None:
    """Refuse a change in place whose revision would not get all of the traffic.

    Raises:
        InputRejected: A share of the traffic is pinned to a revision.
    """
    pinned = next((t.revision for t in traffic if t.revision and t.percent), None)
    if pinned:
        raise InputRejected(
            f"service {service!r} was not changed",
            why=f"its traffic, or a share of it, is pinned to {pinned!r}, so a new one would not serve alone",
            hint="let all of the traffic follow the latest revision first",
        )
