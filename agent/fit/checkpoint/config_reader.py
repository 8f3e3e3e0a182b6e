"""A model's config.json, read key by key with a type, a range and a refusal that names the key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent.errors import InputRejected
from agent.strict_json import read_object

MAX_CONFIG_BYTES: Final = 4 * 2**20
_MOST: Final = 2**40
_HINT: Final = "check that it belongs to this model"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConfigReader:
    """One level of a config.

    Attributes:
        values: The parsed object.
        where: Names it in errors: "config.json", "config.json text_config".
    """

    values: Mapping[str, Any]
    where: str

    @classmethod
    def of(cls, raw: bytes) -> ConfigReader:
        """Parse the bytes of a config.json.

        Raises:
            InputRejected: Too large, or not one strict JSON object.
        """
        # some published configs hold an infinite limit in keys that nobody here reads
        values = read_object(raw, what="config.json", limit=MAX_CONFIG_BYTES, hint=_HINT, allow_infinite=True)
        return cls(values=values, where="config.json")

    def section(self, key: str) -> ConfigReader | None:
        """A nested object; None if absent or null."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _refused(self.where, f"{key!r} is {value!r:.80}, want an object")
        return ConfigReader(values=value, where=f"{self.where} {key}")

    def size(self, key: str, default: int | None = None) -> int:
        """A count of at least 0.

        Raises:
            InputRejected: Absent without a default, or not an integer in 0..2**40.
        """
        value = self.values.get(key)
        value = default if value is None else value
        if type(value) is not int or not 0 <= value <= _MOST:
            raise _refused(self.where, f"{key!r} is {value!r:.80}, want a whole number")
        return value

    def positive(self, key: str, default: int | None = None) -> int:
        """A count of at least 1."""
        value = self.size(key, default)
        if value == 0:
            raise _refused(self.where, f"{key!r} is 0, want at least 1")
        return value

    def number(self, key: str, default: float) -> float:
        """A finite number, whole or not; ``default`` if absent or null."""
        value = self.values.get(key)
        if value is None:
            return default
        if type(value) not in {int, float} or not abs(value) <= _MOST:
            raise _refused(self.where, f"{key!r} is {value!r:.80}, want a number")
        return float(value)

    def truth(self, key: str, *, default: bool) -> bool:
        """A flag; ``default`` if absent or null."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise _refused(self.where, f"{key!r} is {value!r:.80}, want true or false")
        return value

    def text(self, key: str, default: str = "") -> str:
        """A short printable string; ``default`` if absent or null."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, str) or len(value) > 256 or not value.isprintable():
            raise _refused(self.where, f"{key!r} is {value!r:.80}, want a short string")
        return value

    def words(self, key: str) -> tuple[str, ...]:
        """A list of short strings; () if absent or null."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or len(value) > 65_536 or not all(isinstance(word, str) for word in value):
            raise _refused(self.where, f"{key!r} is {value!r:.80}, want a list of strings")
        return tuple(word[:256] for word in value)

    def sizes(self, key: str) -> tuple[int, ...]:
        """A list of counts; () if absent or null."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(type(item) is int and 0 <= item <= _MOST for item in value):
            raise _refused(self.where, f"{key!r} is {value!r:.80}, want a list of whole numbers")
        return tuple(value)

    def refuse(self, why: str) -> InputRejected:
        """The error for a value that contradicts another."""
        return _refused(self.where, why)


def _refused(where: str, why: str) -> InputRejected:
    return InputRejected(f"the {where} was not read", why=why, hint=_HINT)
