"""Model profiles as JSON, for any store that keeps bytes."""

from __future__ import annotations

from typing import Final

from pydantic import TypeAdapter, ValidationError

from agent.errors import DependencyFailed
from agent.fit.checkpoint.checkpoint import ModelProfile

_PROFILE: Final = TypeAdapter(ModelProfile)


def to_json(profile: ModelProfile) -> bytes:
    """A profile as JSON, fields by name."""
    return _PROFILE.dump_json(profile)


def from_json(body: bytes, *, where: str) -> ModelProfile:
    """Read what :func:`to_json` wrote.

    Args:
        body: JSON.
        where: Names it in the error.

    Raises:
        DependencyFailed: It is no profile: damaged, or written by another version.
    """
    try:
        return _PROFILE.validate_json(body)
    except ValidationError as error:
        raise DependencyFailed(
            f"the {where} was not read",
            why=f"{error.error_count()} fields are wrong, {error.errors()[0]['loc']!r} first",
            hint="read the checkpoint again: sre-agent models add SOURCE",
        ) from error
