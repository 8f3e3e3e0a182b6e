"""The proof of a plan in sentences, and the log lines that it rests on."""

from typing import Final

from agent.core.plan.plan import Plan
from agent.core.plan.proof import Proof
from agent.core.text.safe_text import terminal

GIB: Final = 2**30
PROOFS: Final = {
    Proof.NOT_NEEDED: "not needed, no more memory is used",
    Proof.COMPUTED: "computed, fits at the pessimistic end of every term",
    Proof.MEASURED: "measured, from the server's own figures at the failed start",
    Proof.NONE: "none, so it is not offered for approval",
}


def memory_line(plan: Plan) -> str:
    """Return in one line what is known of the memory after the plan; empty for a task of a person."""
    if plan.by_person:
        return ""
    if plan.proof is Proof.NOT_NEEDED:
        return "Memory: no more than before"
    report = plan.fit_after.report or {}
    peak, total = report.get("required_bytes"), report.get("total_bytes")
    sizes = ""
    if isinstance(peak, int | float) and isinstance(total, int | float):
        sizes = f", peak {peak / GIB:.1f} of {total / GIB:.1f} GiB"
    said = {Proof.COMPUTED: f"fits{sizes} (computed)", Proof.MEASURED: "fits (measured)", Proof.NONE: "not proved"}
    return f"Memory: {said[plan.proof]}"


def proof_lines(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return the log lines that prove a plan, each once, as (place, line); the lines are outside text."""
    return tuple(dict.fromkeys((f.place or "", f.line) for f in plan.proof_figures if f.line is not None))


def proof_text(plan: Plan) -> list[str]:
    """Return the proof for a terminal: how it is known, the engine's figures with their line, or what is missing."""
    said = [f"    proof    {PROOFS[plan.proof]}"]
    said += [f"    figure   {terminal(f.name)}: {terminal(f.value)}" for f in plan.proof_figures if f.line is not None]
    said += [f"    line     [{place}] {terminal(line)}" for place, line in proof_lines(plan)]
    return said + [f"    missing  {terminal(text)}" for text in plan.proof_missing]
