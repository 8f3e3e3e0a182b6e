"""The drop-in that changes a unit: one ExecStart in the place of the operator's, quoted as systemd reads it."""

import re
from typing import Final

from agent.errors import InputRejected
from agent.ports.platform import HINTS, Order

_PLAIN: Final = re.compile(r"[A-Za-z0-9_./:=,@+-]+")
_NOTE: Final = "# sre-agent:"
_ESCAPED: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "%": "%%", "$": "$$"})


def drop_in(words: tuple[str, ...], refs: frozenset[str], order: Order) -> str:
    """Return the text of the file.

    Args:
        words: The whole command.
        refs: Words that hold a reference to a secret variable, as they stood in the unit: systemd fills them in.
        order: Whose change it is, for people who find the file.

    Raises:
        InputRejected: A word cannot stand in a unit.
    """
    return (
        f"{_NOTE} written for {order.revision} (effect {order.effect_key}, {order.incident}).\n"
        f"{_NOTE} to undo it by hand, delete this file, then systemctl daemon-reload and restart the unit.\n"
        "[Service]\nExecStart=\n"
        f"ExecStart={' '.join(word if word in refs else _quoted(word) for word in words)}\n"
    )


def bare(text: str | None) -> str | None:
    """Return the text of a drop-in without our notes, to compare byte by byte."""
    if text is None:
        return None
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(_NOTE))


def _quoted(word: str) -> str:
    if not word.isprintable():
        raise InputRejected(
            "the change was refused",
            why=f"{word[:80]!r} has a character that cannot stand in a unit",
            hint=HINTS[InputRejected],
        )
    return word if _PLAIN.fullmatch(word) else f'"{word.translate(_ESCAPED)}"'
