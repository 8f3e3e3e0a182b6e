"""A comparison of two sweeps in the form of a report: what is better, what is worse, and how sure that is."""

from agent.core.sweep.comparison import Comparison, Difference, Verdict
from agent.presentation.report.document import Document, Section, Table
from agent.presentation.sweep.figure_text import NONE, rate_text, seconds_text, share_text
from agent.presentation.sweep.sentences import context_name

_SAID = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.SAME: "no difference seen",
    Verdict.TOO_FEW: "too few requests",
}
_NAMES = {
    "output_tokens_per_s": "output tokens/s",
    "ttft_p50": "TTFT p50",
    "ttft_p99": "TTFT p99",
    "itl_p50": "ITL p50",
    "itl_p99": "ITL p99",
    "error_share": "failed requests",
}


def comparison_report(found: Comparison) -> Document:
    """Put a comparison in reading order: the count of differences, what is unlike, each figure, how it was done."""
    rows = tuple(_row(one) for one in found.differences)
    columns = ("context", "concurrent requests", "figure", "before", "after", "change", "95 % interval", "verdict")
    table = Table(columns=columns, rows=rows, numbers=3)
    sections = [Section(items=tuple(_summary(found)))]
    if found.unlike:
        unlike = tuple((one.what, one.before or "unknown", one.after or "unknown") for one in found.unlike)
        sections.append(
            Section(title="What differs", table=Table(columns=("", "before", "after"), rows=unlike, numbers=3))
        )
    sections.append(Section(title="Differences", table=table))
    sections.append(Section(title="How it was compared", items=(found.method,)))
    return Document(title=f"Sweep {found.after.sweep} against {found.before.sweep}", sections=tuple(sections))


def _summary(found: Comparison) -> list[str]:
    count = {verdict: sum(one.verdict is verdict for one in found.differences) for verdict in Verdict}
    cells = len({(one.context_tokens, one.output_tokens, one.concurrency) for one in found.differences})
    better, worse, same, few = (count[v] for v in (Verdict.BETTER, Verdict.WORSE, Verdict.SAME, Verdict.TOO_FEW))
    said = [f"{len(found.differences)} figures of {cells} cells: {better} better, {worse} worse."]
    if same or few:
        said.append(f"{same} show no difference, {few} are of too few requests.")
    if found.unlike:
        said.append(
            f"The sweeps are unlike in {', '.join(one.what for one in found.unlike)}: any of it may be the cause."
        )
    for name, only in (("first", found.only_before), ("second", found.only_after)):
        if only:
            said.append(f"Only the {name} measured {', '.join(only)}.")
    if found.not_compared:
        said.append("Request rates are not compared: each run sets its own from what the server came to.")
    return said


def _row(one: Difference) -> tuple[str, ...]:
    absolute = one.figure == "error_share"
    ends = NONE if one.low is None or one.high is None else f"{share_text(one.low)} to {share_text(one.high)}"
    return (
        context_name(one.context_tokens, one.output_tokens),
        f"{one.concurrency}",
        _NAMES[one.figure],
        _figure(one.figure, one.before),
        _figure(one.figure, one.after),
        NONE if one.change is None else share_text(one.change).replace("%", "points" if absolute else "%"),
        ends,
        _SAID[one.verdict],
    )


def _figure(figure: str, value: float | None) -> str:
    if value is None:
        return NONE
    if figure == "error_share":
        return f"{value:.1%}".replace("%", " %")
    return rate_text(value) if figure == "output_tokens_per_s" else seconds_text(value)
