"""Where the console of a state folder is reached: noted by the service, read by the commands beside it."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from agent.settings import Settings

NAME: Final = "console.url"


def note_console(settings: Settings) -> None:
    """Write the console's address into the state folder; one that cannot be written is not noted."""
    with suppress(OSError):
        _path(settings).write_text(f"{settings.public_url}\n", encoding="utf-8")


def console_url(settings: Settings) -> str:
    """Return ``PUBLIC_URL`` where it is set, else the address that the last service of this state folder noted."""
    if settings.embedded and "public_url" not in settings.model_fields_set:
        with suppress(OSError, UnicodeDecodeError):
            return _path(settings).read_text(encoding="utf-8").strip() or settings.public_url
    return settings.public_url


def _path(settings: Settings) -> Path:
    return settings.state / NAME
