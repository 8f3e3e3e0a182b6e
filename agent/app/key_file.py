"""A secret key in a file of its owner: made whole or not at all, and the same for all who start at once."""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent.errors import DependencyFailed, SettingsRejected

KEY_BYTES: Final = 32


def own_key(path: Path) -> bytes:
    """Return the key in a file; where there is none, a new one is put there, readable by its owner alone.

    Args:
        path: The file; its folder is made.

    Raises:
        SettingsRejected: The file holds no whole key.
        DependencyFailed: The file cannot be read or made.
    """
    try:
        found = _read(path)
        if found is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            _make(path)
            found = path.read_bytes()
    except OSError as error:
        raise DependencyFailed(
            f"the key file {str(path)!r} was not opened",
            why=str(error),
            hint="let the process read and write it and its folder, or set RECEIPT_KEY",
        ) from error
    if len(found) < KEY_BYTES:
        raise SettingsRejected(
            f"the key file {str(path)!r} was not used",
            why=f"it has {len(found)} bytes, a key has {KEY_BYTES}",
            hint="restore the file; or delete it and approve open plans again; or set RECEIPT_KEY",
        )
    return found


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _make(path: Path) -> None:
    """Write a key beside the place and link it there: whoever is first gives the name, and nobody sees half a key."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    file = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(secrets.token_bytes(KEY_BYTES))
            out.flush()
            os.fsync(out.fileno())
        with suppress(FileExistsError):  # somebody was quicker: theirs counts
            os.link(draft, path)
    finally:
        draft.unlink()
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Let the new name outlive a power cut: what is signed with a key that is gone can never be checked."""
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)
