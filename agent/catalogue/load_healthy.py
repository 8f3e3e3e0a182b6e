"""Lines that healthy servers write, read from their file."""

import tomllib
from pathlib import Path

from agent.errors import SettingsRejected

FILE = Path(__file__).with_name("healthy.toml")


def load_healthy(path: Path = FILE) -> tuple[str, ...]:
    """Return the lines.

    Raises:
        SettingsRejected: The file holds none, or says not whence and when they were read.
    """
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    lines = table.get("lines")
    if not lines or not all(isinstance(line, str) and line for line in lines) or not table.get("source"):
        raise SettingsRejected(
            f"{path.name} was not read", why="it wants source, date and a list of lines", hint="mend the file"
        )
    return tuple(lines)
