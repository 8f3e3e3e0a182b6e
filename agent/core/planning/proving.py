"""How a plan is proved: by the arithmetic, by the engine's own figures, or not at all."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent.core.plan.action import Action, ForPerson, SetFlag
from agent.core.plan.capacity import ContainerFit
from agent.core.plan.plan import FitSummary
from agent.core.plan.printed_memory import Printed
from agent.core.plan.proof import Memory, Proof, ProofFigure, affected_memory

GIB: Final = 2**30

_SHOWN: Final = (
    ("Peak memory of one device", "required_bytes"),
    ("Memory of one device", "total_bytes"),
    ("Weights", "weights_bytes"),
    ("KV cache", "kv_cache_bytes"),
)


@dataclass(frozen=True, kw_only=True)
class Proven:
    """The proof of a plan.

    Attributes:
        proof: How it is known.
        figures: What proves it; empty where nothing does or nothing has to.
        missing: What would have to be known; empty unless ``proof`` is ``none``.
    """

    proof: Proof
    figures: tuple[ProofFigure, ...] = ()
    missing: tuple[str, ...] = ()


def prove(
    actions: tuple[Action, ...], *, fit: FitSummary, container: ContainerFit, printed: Printed | None = None
) -> Proven:
    """Prove that the memory suffices after some actions.

    Args:
        actions: What would be done.
        fit: What the arithmetic says of the device's memory after it; its ``false`` is never overridden.
        container: What it says of the container's memory after it.
        printed: What the engine printed at the start of this very configuration; None where it did not.

    Returns:
        ``computed`` only where everything that the actions touch is computed to fit at the pessimistic end.
    """
    need = affected_memory(actions)
    if not need:
        return Proven(proof=Proof.NOT_NEEDED)
    figures: list[ProofFigure] = []
    missing: list[str] = []
    measured = False
    if Memory.DEVICE in need:
        if fit.fits is True:
            figures += _device_figures(fit)
        elif fit.fits is None and printed is not None and _within(actions, printed):
            measured = True
            figures += _printed_figures(printed)
        else:
            missing.append(fit.sentence)
    if Memory.CONTAINER in need:
        if container.fits is True:
            figures += container.figures
        else:
            missing.append(container.sentence)
    if missing:
        return Proven(proof=Proof.NONE, missing=tuple(missing))
    return Proven(proof=Proof.MEASURED if measured else Proof.COMPUTED, figures=tuple(figures))


def _within(actions: tuple[Action, ...], printed: Printed) -> bool:
    """Whether the actions lower the flag that the engine spoke of to what it said would fit, and do nothing else."""
    match tuple(a for a in actions if affected_memory((a,))):
        case (SetFlag(name=name, value=value),):
            digits = value is not None and value.isdecimal()
            return name.replace("_", "-") == printed.flag and digits and 1 <= int(value or 0) <= printed.most
        case (ForPerson(action=fix),):
            return fix == manual_task(printed)
        case _:
            return False


def manual_task(printed: Printed) -> str:
    """Return the fix action that a person is asked to carry out with the engine's own figure."""
    return f"set_flag {printed.flag.replace('-', '_')} lower"


def _printed_figures(printed: Printed) -> tuple[ProofFigure, ...]:
    said = {"max-model-len": ("Longest context that would have fitted", "tokens"),
            "max-num-seqs": ("Most sequences that would have fitted", "sequences")}  # fmt: skip
    name, unit = said[printed.flag]
    rows = (
        (name, f"{printed.most:,} {unit}"),
        (f"Needed for {printed.asked:,}", printed.need),
        ("There", printed.pool),
    )
    return tuple(ProofFigure(name=n, value=v, line=printed.line, place=printed.place) for n, v in rows)


def _device_figures(fit: FitSummary) -> tuple[ProofFigure, ...]:
    """The figures of the report; a summary without one (a test's) has its sentence alone."""
    report = fit.report or {}
    sources = report.get("sources")
    source = "; ".join(map(str, sources[:2])) if isinstance(sources, list) else "computed"
    rows = ((name, _gib(report, key)) for name, key in _SHOWN)
    found = tuple(ProofFigure(name=name, value=value, source=source) for name, value in rows if value)
    return found or (ProofFigure(name="Device memory", value=fit.sentence, source="computed"),)


def _gib(report: Mapping[str, object], key: str) -> str:
    size = report.get(key)
    return f"{size / GIB:.2f} GiB" if isinstance(size, int | float) and not isinstance(size, bool) else ""
