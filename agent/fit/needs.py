"""What the user needs of a server, beyond that it starts: a context, and users who have it at once."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """Stated needs.

    Attributes:
        context_tokens: Shortest context that serves; None: the one that the flags give.
        users: Requests of that context at once.
    """

    context_tokens: int | None = None
    users: int = 1
