"""Runs of request rates in the report: the sentence, the table, and the plot of latency over the rate."""

from agent.core.sweep.cell import Outcome
from agent.core.sweep.findings import find
from agent.core.sweep.target import read_target
from agent.presentation.sweep.report import sweep_report
from tests.agent.core.sweep import values
from tests.agent.core.sweep.rate_cells import rate_cells

SLO = read_target("latency_p99<1s")


def report(target=None, cells=None):
    made = (values.cell(1), values.cell(8), *rate_cells()) if cells is None else cells
    return sweep_report(find(made, {}, target), made)


def rates(document):
    (found,) = (section for section in document.sections if section.title == "Request rates, 128 tokens")
    return found


def test_the_highest_rate_that_keeps_the_target_is_said_marked_and_in_the_table():
    document = report(SLO)
    said = "128 tokens (32 of them output): highest request rate that keeps latency_p99<1s: 4 requests/s; measured were 2 to 6 requests/s."
    assert said in document.sections[0].items
    section = rates(document)
    assert section.items[1:] == ("p99 of a cell with fewer than 100 requests is its slowest request.",)
    (plot,) = section.plots
    assert plot.name == "rates-c128-o32"
    for drawn in (
        "Latency over request rate",
        "requests/s (log scale); s,",
        "keeps the target up to",
        "4 requests/s",
        "p99: 2 at 6",
    ):
        assert drawn in plot.svg
    assert section.table.columns[-1] == "keeps the target"
    loads = [(row[0], row[-1]) for row in section.table.rows]
    assert loads == [
        ("one at a time", ""), ("all at once", ""), ("2 requests/s", "yes"), ("4 requests/s", "yes"), ("6 requests/s", "no"),
    ]  # fmt: skip
    assert section.table.rows[2][5:9] == ("400 ms", "400 ms", "200 ms", "200 ms")


def test_without_a_target_the_rates_are_shown_and_none_is_named():
    document = report()
    assert any(
        "request rates: measured were 2 to 6 requests/s; with --slo" in one for one in document.sections[0].items
    )
    assert rates(document).table.columns[-1] == "ITL p99"
    assert "keeps the target" not in rates(document).plots[0].svg


def test_that_no_rate_keeps_the_target_is_said():
    document = report(read_target("latency_p99<1ms"))
    assert any(
        "no request rate keeps latency_p99<1ms: measured were 2 to 6" in one for one in document.sections[0].items
    )


def test_a_run_of_which_nothing_was_measured_has_its_reasons_alone():
    lost = tuple(c.with_(measured=None, rate=None, outcome=Outcome.FAILED, why="gone") for c in rate_cells())
    document = report(SLO, (values.cell(1), *lost))
    assert any("no request rate was measured" in one for one in document.sections[0].items)
    assert (rates(document).plots, rates(document).table) == ((), None)
    (missing,) = (section for section in document.sections if section.title == "Not measured, or not to the end")
    assert [row[1] for row in missing.table.rows] == [
        "one at a time",
        "all at once",
        *(f"rate {n} of 3" for n in (1, 2, 3)),
    ]
