"""What a change takes away: each thing that a user has less of, as a share and in one line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agent.fit.speed.price import price_change

_WORTH_A_WORD = 0.005
"""Share below which a loss is not said: half a percent of the context is no loss that anybody notices."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tradeoff:
    """What one setup takes away from another.

    Attributes:
        modalities: Inputs that are lost, "images", "sound".
        model: (before, after) where a smaller checkpoint would serve; None where not.
        context_tokens, users: (before, after); None is not known.
        tokens_per_s: The slow ends for one request; None is not known.
        usd_per_h: Prices of a running hour; None is not known.
        let_in: Requests at once, (before, after), where a change lets in more of them; None is not known.
        held: Requests of full length that the KV cache holds at once; None is not known.
        modality_share, model_share: Shares lost, 0 to 1.
    """

    modalities: tuple[str, ...] = ()
    model: tuple[str, str] | None = None
    context_tokens: tuple[int | None, int | None] = (None, None)
    users: tuple[int | None, int | None] = (None, None)
    tokens_per_s: tuple[float | None, float | None] = (None, None)
    usd_per_h: tuple[float | None, float | None] = (None, None)
    let_in: tuple[int | None, int | None] = (None, None)
    held: int | None = None
    modality_share: float = 0.0
    model_share: float = 0.0

    @property
    def losses(self) -> tuple[float, ...]:
        """Shares lost of modality, context, concurrency, speed and checkpoint, largest first."""
        pairs = (self.context_tokens, self.users, self.tokens_per_s)
        shares = (self.modality_share, self.model_share, *(_share(*pair) for pair in pairs))
        return tuple(sorted((round(share, 2) for share in shares), reverse=True))

    @property
    def line(self) -> str:
        """One line for people; what did not change is left out, but for the price, which is said once.

        Such as "loses images; 36 -> 5 tokens/s; 1.42 -> 2.84 USD/h". More requests than the KV cache holds are said to
        wait rather than to lose nothing.
        """
        return "; ".join(self._parts())

    @property
    def taken(self) -> tuple[str, ...]:
        """What is less than it was, one entry each; without the price."""
        return tuple(self._taken())

    def _taken(self) -> Iterator[str]:
        if self.modalities:
            yield f"loses {' and '.join(self.modalities)}"
        if self.model is not None:
            yield f"{self.model[1]} instead of {self.model[0]}"
        if _share(*self.context_tokens) > _WORTH_A_WORD:
            yield f"{self.context_tokens[0]:,} -> {self.context_tokens[1]:,} tokens of context"
        if _share(*self.users) > _WORTH_A_WORD:
            yield f"{self.users[0]} -> {self.users[1]} full-length requests at once"
        if _share(*self.tokens_per_s) > _WORTH_A_WORD:
            yield f"{_speed(self.tokens_per_s[0])} -> {_speed(self.tokens_per_s[1])} tokens/s"

    def _parts(self) -> Iterator[str]:
        waiting = self._waiting()
        yield from self.taken or (() if waiting else ("loses nothing",))
        if waiting:
            yield waiting
        if self.usd_per_h != (None, None):
            yield f"{price_change(*self.usd_per_h)} USD/h"

    def _waiting(self) -> str:
        before, after = self.let_in
        if after is None or self.held is None or after <= max(before or 0, self.held):
            return ""
        return f"{after} requests at once are let in, the KV cache holds {self.held} of full length: the others wait"


def _share(before: float | None, after: float | None) -> float:
    """The share lost; an unknown is no loss, and neither is more."""
    if not before or after is None:
        return 0.0
    return max(0.0, 1 - after / before)


def _speed(tokens_per_s: float | None) -> str:
    if tokens_per_s is None:
        return "unknown"
    return f"{tokens_per_s:.0f}" if tokens_per_s >= 10 else f"{tokens_per_s:.1f}"
