"""What was measured here of a model family on an accelerator, and whether enough of it agrees to be used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

ENOUGH: Final = 3
"""Measurements that must agree before a range rests on them."""

AGREE: Final = 1.3
"""The largest of those that agree is at most this times the smallest."""

MARGIN: Final = 0.1
"""By which the range goes beyond what was measured, at both ends."""

START_STORAGE: Final = "gcs-fuse"
"""Where a woken instance is taken to read its checkpoint from: the only storage whose bundled rate was measured."""


class Kind(StrEnum):
    """What was measured, and its unit."""

    BANDWIDTH_SHARE = "bandwidth_share"  # of the data sheet, by one request that decodes, everything included
    LOAD_RATE = "load_rate"  # bytes per second from the storage
    ACTIVATIONS = "activations"  # bytes on one device, peak of the profile run


@dataclass(frozen=True, kw_only=True, slots=True)
class Measurement:
    """One figure of one start or one cell of a sweep.

    Attributes:
        id: Names it for the command that removes it.
        kind: What was measured.
        family: Of the model, as the catalogue names it.
        accelerator: Contract name.
        vllm: Version, major and minor: "0.32".
        storage: Where the checkpoint was read from; empty for other kinds.
        value: In the unit of the kind.
        at: When it was measured, ISO.
        model: The checkpoint.
        source: Sweep and cell, incident, or log with its digest.
    """

    id: str
    kind: Kind
    family: str
    accelerator: str
    vllm: str
    storage: str = ""
    value: float
    at: str
    model: str
    source: str

    @property
    def group(self) -> tuple[str, str, str, str, str]:
        """What two measurements must share to be compared."""
        return self.kind.value, self.family, self.accelerator, self.vllm, self.storage


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """The measurements of one group.

    Attributes:
        measurements: All of them, the oldest first.
        why_not: Why no range rests on them; empty where one does.
    """

    measurements: tuple[Measurement, ...]
    why_not: str = ""

    @property
    def range(self) -> tuple[float, float] | None:
        """What was measured, and a tenth on both sides; None where too few agree."""
        if self.why_not:
            return None
        values = [each.value for each in self.measurements]
        return min(values) * (1 - MARGIN), max(values) * (1 + MARGIN)

    @property
    def not_applied(self) -> str:
        """Why no figure of ours rests on the group, whatever agrees; empty where one does."""
        first = self.measurements[0]
        if first.kind is Kind.ACTIVATIONS:
            return "no proof rests on it"
        if first.kind is Kind.LOAD_RATE and first.storage != START_STORAGE:
            return f"starts are computed for {START_STORAGE}"
        return ""


def minor(version: str) -> str:
    """Return major and minor of a version: what a calibration holds for."""
    return ".".join(version.removeprefix("v").split(".")[:2])


def calibrations(measurements: Iterable[Measurement]) -> tuple[Calibration, ...]:
    """Return the groups, in the order of their names, each with its range or why it has none."""
    groups: dict[tuple[str, ...], list[Measurement]] = {}
    for each in sorted(measurements, key=lambda one: (one.group, one.at, one.id)):
        groups.setdefault(each.group, []).append(each)
    return tuple(Calibration(measurements=tuple(group), why_not=_why_not(group)) for group in groups.values())


def calibrated(
    measurements: Iterable[Measurement], kind: Kind, *, family: str, accelerator: str, vllm: str, storage: str = ""
) -> tuple[float, float] | None:
    """Return the range that measurements of this very group give; None where too few agree.

    Args:
        measurements: All that are stored.
        kind: What is asked for.
        family: Of the model.
        accelerator: Contract name.
        vllm: Any version; major and minor count.
        storage: For a load rate.
    """
    wanted = (kind.value, family, accelerator, minor(vllm), storage)
    (found,) = calibrations(each for each in measurements if each.group == wanted) or (None,)
    return None if found is None else found.range


def _why_not(group: Sequence[Measurement]) -> str:
    if len(group) < ENOUGH:
        return f"{len(group)} of the {ENOUGH} that must agree"
    values = [each.value for each in group]
    if min(values) <= 0 or max(values) / min(values) > AGREE:
        return f"they differ by more than a factor of {AGREE:g}: {min(values):.4g} to {max(values):.4g}"
    return ""
