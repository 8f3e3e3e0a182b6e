"""A bundled file: read as TOML or JSON, and refused with every mistake at once."""

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources.abc import Traversable
from typing import Any, cast

from pydantic import ValidationError

from agent.errors import SettingsRejected


def read_table(path: Traversable) -> dict[str, Any]:
    """Return what a file says.

    Args:
        path: Ends in ``.json``, or holds TOML.

    Raises:
        SettingsRejected: It is not there, or is neither.
    """
    try:
        text = path.read_text(encoding="utf-8")
        if not path.name.endswith(".json"):
            return tomllib.loads(text)
        return cast("dict[str, Any]", json.loads(text))  # not strict: our own catalogue
    except (OSError, ValueError) as error:
        raise SettingsRejected(
            f"catalogue {path.name!r} was not read", why=str(error), hint="restore the file"
        ) from error


class Mistakes:
    """The mistakes of a catalogue, gathered while it is read.

    Args:
        what: The file or folder, as it is refused.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self.found: list[str] = []

    @contextmanager
    def of(self, entry: str) -> Iterator[None]:
        """Gather what is wrong with one entry, and go on with the next."""
        try:
            yield
        except ValidationError as error:
            self.found += [f"{entry}: {_says(dict(row))}" for row in error.errors()]
        except KeyError as error:
            self.found.append(f"{entry}: needs {error}")
        except (TypeError, ValueError, AssertionError) as error:
            self.found.append(f"{entry}: {error or type(error).__name__}")

    def refuse(self) -> None:
        """Refuse the catalogue where anything was found.

        Raises:
            SettingsRejected: With all of it.
        """
        if self.found:
            why = f"{len(self.found)} mistakes: " + "; ".join(self.found)
            raise SettingsRejected(f"catalogue {self._what!r} was refused", why=why, hint="correct the entries named")


def _says(row: dict[str, Any]) -> str:
    """Say a mistake with the key where it stands; what is wrong with an entry as a whole stands at none."""
    key, given = ".".join(map(str, row["loc"])), repr(row["input"])[:80]
    match row["type"]:
        case "missing":
            return f"{key} is missing"
        case "extra_forbidden":
            return f"unknown key {key!r}"
        case "value_error":
            return f"{key}: {row['ctx']['error']}" if key else str(row["ctx"]["error"])
        case _:
            return f"{key} is {given}: {row['msg']}"
