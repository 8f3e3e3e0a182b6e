"""The base of every value: frozen, keyword-only, and the same after a trip through JSON."""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, PlainSerializer, ValidationError

Moment = Annotated[AwareDatetime, PlainSerializer(datetime.isoformat, return_type=str, when_used="json")]
"""A time with its offset, in JSON such as ``2026-11-21T03:00:00+00:00``."""

EXCERPT_CHARS: Final = 2000
_CUT_WORD: Final = re.compile(r"[^\s\"',;]*\Z")


def _excerpt(text: str) -> str:
    if len(text) <= EXCERPT_CHARS:
        return text
    return _CUT_WORD.sub("", text[:EXCERPT_CHARS], count=1) or f"(a word of {len(text)} characters)"


Excerpt = Annotated[str, AfterValidator(_excerpt)]
"""What a platform or a server said, however much it sends: the whole words among its first 2,000 characters.

Half a secret would not be recognised as one.
"""


class Value(BaseModel):
    """A frozen value; a change makes a new one with ``with_(...)``."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    def with_(self, **changes: Any) -> Self:
        """Return a copy with some fields replaced, validated like a new value."""
        kept, fields = self.__dict__, self.__pydantic_fields__
        if len(kept) > len(fields):  # what was computed once is left behind
            kept = {name: kept[name] for name in fields}
        return type(self)(**{**kept, **changes})


def mistakes_of(error: ValidationError) -> tuple[str, ...]:
    """Return each mistake of what is no such value: the field and what it should be, not what was given."""
    return tuple(f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in error.errors())


_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(data: Any) -> bytes:
    """Return the one JSON form of ``data``: sorted keys, no blanks, UTF-8; what digests are taken over."""
    return _CANONICAL.encode(data).encode()


def digest(data: Any) -> str:
    """Return the SHA-256 of the canonical form of ``data``, 64 hex digits.

    Args:
        data: A value, or anything JSON can say.
    """
    if isinstance(data, BaseModel):
        data = data.model_dump(mode="json")
    return hashlib.sha256(canonical(data)).hexdigest()


def short_id(prefix: str, data: Mapping[str, Any]) -> str:
    """Return a name derived from ``data`` alone, so that two workers who make it make the same one."""
    return f"{prefix}-{digest(dict(data))[:12]}"
