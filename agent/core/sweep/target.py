"""Target: what a service must keep to, read from ``ttft_p99<1s,itl_p99<50ms``."""

import difflib
import re
from collections.abc import Mapping
from math import isfinite
from typing import Final

from agent.core.value import Value
from agent.errors import InputRejected

_TIMES: Final = {
    f"{name}_{rank}": f"{said} ({rank})"
    for name, said in (("ttft", "time to first token"), ("itl", "time between tokens"), ("latency", "whole request"))
    for rank in ("p50", "p90", "p99")
}
FIGURES: Final[Mapping[str, str]] = {
    **_TIMES,
    "output_tokens_per_s": "output tokens per second of all requests together",
    "error_share": "failed requests in all requests",
}
"""What a target may be about; times in seconds, a share between 0 and 1."""

EXAMPLE: Final = "ttft_p99<1s,itl_p99<50ms"

_HINT: Final = f"write it like {EXAMPLE}"
_MOST_TEXT: Final = 400
_SHAPE: Final = re.compile(r"([a-z0-9_]+)(<=|>=|<|>)([0-9]{1,12}(?:\.[0-9]{1,9})?)(ms|s|%|)", re.ASCII)
_PER_UNIT: Final = {"ms": 0.001, "s": 1.0, "%": 0.01, "": 1.0}


class Condition(Value):
    """One condition of a target.

    Attributes:
        figure: A key of FIGURES.
        below: True where the figure must stay below the value, False where it must stay above.
        inclusive: The value itself is good enough.
        value: Seconds, tokens per second or a share, by the figure.
        text: As it was written.
    """

    figure: str
    below: bool
    inclusive: bool
    value: float
    text: str

    def is_met(self, found: float | None) -> bool:
        """True where the figure was measured and keeps to the condition; absence of a figure never does."""
        if found is None:
            return False
        if found == self.value:
            return self.inclusive
        return (found < self.value) is self.below

    def miss(self, found: float | None) -> float:
        """By which share of its value the figure misses it; 0 where it is met, infinite where it was not measured."""
        if self.is_met(found):
            return 0.0
        if found is None:
            return float("inf")
        return abs(found - self.value) / self.value if self.value else float("inf")


class Target(Value):
    """Every condition that a service must keep to at once.

    Attributes:
        conditions: At least one, each figure at most once per direction.
    """

    conditions: tuple[Condition, ...]

    @property
    def text(self) -> str:
        """As it was written, without blanks."""
        return ",".join(condition.text for condition in self.conditions)

    def is_met(self, figures: Mapping[str, float | None]) -> bool:
        """True where every condition is met by measured figures."""
        return all(condition.is_met(figures.get(condition.figure)) for condition in self.conditions)

    def missed(self, figures: Mapping[str, float | None]) -> tuple[Condition, ...]:
        """The conditions that are not met."""
        return tuple(condition for condition in self.conditions if not condition.is_met(figures.get(condition.figure)))

    def miss(self, figures: Mapping[str, float | None]) -> float:
        """The worst miss as a share of the value; what orders settings of which none is good."""
        return max(condition.miss(figures.get(condition.figure)) for condition in self.conditions)

    @property
    def request_bounds_s(self) -> dict[str, float]:
        """What each single request must keep to for goodput, by ttft, itl and latency; the strictest of each."""
        found: dict[str, float] = {}
        for condition in self.conditions:
            name, _, rank = condition.figure.partition("_")
            if rank in {"p50", "p90", "p99"}:
                found[name] = min(condition.value, found.get(name, condition.value))
        return found


def read_target(text: str) -> Target:
    """Read a target such as ``ttft_p99<1s,itl_p99<50ms``.

    Args:
        text: Conditions with a comma between; each a figure, ``<``, ``<=``, ``>`` or ``>=``, and a number with its
            unit: ``ms`` or ``s`` for times, ``%`` or none for shares, none for rates. A time without a unit is refused.

    Raises:
        InputRejected: It is no such text: what is wrong with which condition, and what is nearly right.
    """
    if len(text) > _MOST_TEXT:
        raise _refused(text[:40], f"it has {len(text)} characters, at most {_MOST_TEXT} are taken")
    conditions = tuple(_condition("".join(part.split())) for part in text.split(","))
    seen: set[tuple[str, bool]] = set()
    for condition in conditions:
        if (condition.figure, condition.below) in seen:
            raise _refused(text, f"it says twice what {condition.figure!r} must be")
        seen.add((condition.figure, condition.below))
    return Target(conditions=conditions)


def _condition(text: str) -> Condition:
    if not text:
        raise _refused(text, "a condition is empty")
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise _refused(text, "it is no figure, comparison and number")
    figure, comparison, number, unit = found.groups()
    if figure not in FIGURES:
        near = difflib.get_close_matches(figure, FIGURES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(FIGURES)}"
        raise _refused(text, f"{figure!r} is no figure of a sweep", hint=hint)
    _check_unit(text, figure, unit)
    below = comparison.startswith("<")
    if below is (figure == "output_tokens_per_s"):
        raise _refused(text, f"{figure!r} is better when {'higher' if below else 'lower'}", hint="turn the sign round")
    value = float(number) * _PER_UNIT[unit]
    assert isfinite(value)
    return Condition(figure=figure, below=below, inclusive=comparison.endswith("="), value=value, text=text)


def _check_unit(text: str, figure: str, unit: str) -> None:
    wanted = ("ms", "s") if figure in _TIMES else ("", "%") if figure == "error_share" else ("",)
    if unit not in wanted:
        units = " or ".join(repr(word) if word else "no unit" for word in wanted)
        raise _refused(text, f"{figure!r} takes {units}, not {unit or 'a number alone'!r}")


def _refused(text: str, why: str, *, hint: str = _HINT) -> InputRejected:
    return InputRejected(f"the target {text!r} was not read", why=why, hint=hint)
