"""Predicted decode rates beside every recorded one, as docs/fit.md states them.

    python benchmarks/decode_speed.py

The recorded ones are tests/agent/fit/speed/recorded_speeds.json. Predicted is the geometric middle of the range, as
`fit` prints it (decode_tokens_per_s).
"""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent.catalogue.load_fit import load_fit_catalogue
from agent.fit.flags.flags import parse_flags
from agent.fit.speed.speed import decode_speed

RECORDED = Path(__file__).parents[1] / "tests" / "agent" / "fit" / "speed" / "recorded_speeds.json"


class Row(NamedTuple):
    """One recorded rate and what is predicted of it, tokens/s."""

    name: str
    tuned: bool
    seen: float
    low: float
    best: float
    high: float

    @property
    def ratio(self) -> float:
        """Predicted over measured."""
        return self.best / self.seen

    @property
    def off(self) -> float:
        """By which factor they differ, at least 1, less 1."""
        return max(self.ratio, 1 / self.ratio) - 1

    @property
    def inside(self) -> bool:
        """Whether the measured rate lies in the range."""
        return self.low <= self.seen <= self.high


def rows() -> list[Row]:
    """Return every recorded rate with its prediction."""
    fit = load_fit_catalogue()
    return [_row(entry, fit) for entry in json.loads(RECORDED.read_text(encoding="utf-8"))["rows"]]


def _row(entry: dict[str, Any], fit: Any) -> Row:
    model, card = fit.models.find(entry["model"]), fit.accelerator(entry["accelerator"])
    found = decode_speed(
        model, card, parse_flags(entry["flags"]), fit.rules(entry["vllm"]), sequences=entry["requests"]
    )
    assert found is not None
    return Row(entry["id"], entry["tuned"], entry["tokens_per_s"], found.low, found.best, found.high)


def summary(found: Sequence[Row]) -> str:
    """Return count, median and worst factor, and how many lie in their range."""
    off = [row.off for row in found]
    inside = sum(row.inside for row in found)
    median, worst = statistics.median(off), max(off)
    return f"n {len(found)}, median {median:.0%} off, worst {worst:.0%}, {inside} of {len(found)} inside"


def main() -> None:
    """Print the table and the two summaries."""
    found = rows()
    for row in found:
        place = "inside" if row.inside else "OUTSIDE"
        kind = "tuned to" if row.tuned else "new"
        print(f"{row.name:26} {row.seen:7.1f} seen  {row.best:7.1f} ({row.low:.1f} to {row.high:.1f})  "
              f"x{row.ratio:.2f}  {place}, {kind}")  # fmt: skip
    print(f"all:  {summary(found)}")
    print(f"new:  {summary([row for row in found if not row.tuned])}")


if __name__ == "__main__":
    main()
