"""Which file names a checkpoint may hold: an index is outside text, and must not lead out of its folder."""

from __future__ import annotations

import re
from typing import Final

from agent.errors import InputRejected

_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")


def plain(name: str) -> str:
    """Return a file name that stays in its folder.

    Args:
        name: From an index or from us.

    Raises:
        InputRejected: It has a folder, a control character, a leading dot, or more than 255 characters.
    """
    if _PLAIN.fullmatch(name) and ".." not in name:
        return name
    raise InputRejected(
        f"the checkpoint file {name[:80]!r} was not read",
        why="it is not a plain file name",
        hint="look at model.safetensors.index.json: it must name files beside it",
    )
