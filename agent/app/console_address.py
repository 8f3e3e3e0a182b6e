"""Where the console of a state folder is reached: noted by the service, read by the commands beside it."""

import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from agent.settings import Settings

NAME: Final = "console.url"
MOST: Final = 2_048
"""The most characters of an address."""


def note_console(settings: Settings) -> None:
    """Write the console's address into the state folder; one that cannot be written is not noted."""
    place = _path(settings)
    draft = place.with_name(f".{NAME}.{secrets.token_hex(8)}")
    with suppress(OSError):
        try:
            draft.touch(mode=0o600, exist_ok=False)
            draft.write_text(f"{settings.public_url}\n", encoding="utf-8")
            draft.replace(place)
        finally:
            draft.unlink(missing_ok=True)


def console_url(settings: Settings) -> str:
    """Return ``PUBLIC_URL`` where it is set, else the address that the last service of this state folder noted.

    Whoever may write the folder may have written the note, and reports link to it: what is no plain address is ignored.
    """
    if settings.embedded and "public_url" not in settings.model_fields_set:
        with suppress(OSError, UnicodeDecodeError), _path(settings).open(encoding="utf-8", newline="") as file:
            noted = file.read(MOST + 2).removesuffix("\n")
            return noted if _is_address(noted) else settings.public_url
    return settings.public_url


def _is_address(text: str) -> bool:
    """Whether it is one line with a scheme of the web and a host, and nothing that ends or opens a link in a report."""
    if not text.isascii() or not text.isprintable() or len(text) > MOST or set(text) & set(" <>\"'()`\\|*@"):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _path(settings: Settings) -> Path:
    return settings.state / NAME
