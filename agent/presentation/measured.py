"""What was measured, in sentences: what each measurement is worth, and whether anything real was asked."""

from agent.core.change.startup_figures import Figure
from agent.core.change.verification import INFORMATIVE, Check, Measurement, Verdict, Verification
from agent.core.text.field_labels import field_label
from agent.core.text.field_labels import figure as number

COMPUTED = "computed, not recorded"
"""What stands beside everything that a rehearsal took from the arithmetic, on every surface."""

VERDICTS: dict[Verdict, str] = {
    Verdict.RECOVERED: "recovered",
    Verdict.NOT_RECOVERED: "not recovered",
    Verdict.INCONCLUSIVE: "inconclusive, which does not count as success",
}


def judgement_text(measurement: Measurement) -> str:
    """Return what a measurement is worth, in words: also that it was made and nothing judges it."""
    if measurement.good is None:
        return "not measured" if measurement.value is None else "not judged"
    if measurement.good:
        return "good"
    return "deviates" if measurement.check in INFORMATIVE else "bad"


def figure_words(figure: Figure) -> str:
    """Return a figure of a start-up beside its prediction, for people."""
    seen = f"{field_label(figure.name)}: {number(figure.observed)}"
    if figure.predicted is None:
        return f"{seen}, nothing was predicted"
    off = f", {figure.off:+.1%} off" if figure.off is not None else ""
    return f"{seen}, predicted {number(figure.predicted)}{off}"


def how_checked(verification: Verification | None) -> str:
    """Say by what a success was seen: a real completion, or a simulated one, recorded or computed."""
    answer = verification.latest(Check.COMPLETION) if verification is not None else None
    if answer is None:
        return "the checks passed"
    if answer.real:
        return "a real completion was answered"
    source = COMPUTED if COMPUTED in answer.says else "from the record"
    return f"a simulated check passed ({source}; no real service was asked)"
