"""The report has every part that a reader looks for, and leaves out what there is nothing to say of."""

from agent.core.sweep.cell import Outcome
from agent.core.sweep.findings import find
from agent.presentation.sweep.report import sweep_report
from tests.agent.core.sweep.served import provenance, sweep_of
from tests.agent.presentation.sweep import scenes


def titles(report):
    return [section.title for section in report.sections]


def section(report, title):
    return next(s for s in report.sections if s.title == title)


def test_one_clean_context_has_no_table_of_failures_and_no_map():
    report = scenes.report_of_a_known_server()
    assert titles(report) == [
        "", "128 tokens (32 of them output)", "Predicted and measured", "What was measured", "How it was measured",
    ]  # fmt: skip
    assert [plot.name for plot in report.plots] == ["throughput-c128-o32", "ttft-c128-o32", "itl-c128-o32"]
    assert report.title == "Load sweep of chat (example/tiny on nvidia-l4)"


def test_each_row_has_the_figures_of_its_cell():
    table = section(scenes.report_of_a_known_server(), "128 tokens (32 of them output)").table
    row = dict(zip(table.columns, table.rows[-1], strict=True))
    assert (row["concurrent"], row["succeeded"], row["failed"], row["at once"]) == ("64", "200", "0", "8")
    assert row["TTFT p50"].endswith(" s")
    assert row["ITL p50"] == "9.95 ms"


def test_what_was_not_measured_stands_with_its_reason():
    report = scenes.report_of_everything()
    lost = section(report, "Not measured, or not to the end").table.rows
    assert [(row[1], row[2], row[3]) for row in lost] == [
        ("1", "not sent", scenes.HOSTILE),
        ("2", "failed", "no reason was stored"),
    ]
    assert section(report, "Failed requests").table.rows == (("128 tokens (32 of them output)", "64", "12", "503"),)
    assert "2 of 9 cells were not measured; the reasons are below." in report.sections[0].items
    assert section(report, "4,096 tokens (32 of them output)").plots == ()
    assert "throughput" in [plot.name for plot in report.plots]  # the map


def test_a_cell_that_was_cut_off_is_shown_and_said():
    cells, rows = sweep_of(8)
    cut = (*cells[:-1], cells[-1].with_(outcome=Outcome.PARTIAL, why="the kill switch is on"))
    report = sweep_report(find(cut, rows), cut)
    assert section(report, "128 tokens (32 of them output)").table.rows[-1][0] == "64 (cut off)"
    assert section(report, "Not measured, or not to the end").table.rows[0][2:] == ("cut off", "the kill switch is on")


def test_what_nobody_said_is_unknown_and_never_left_out():
    cells, rows = sweep_of(8, image="", flags=None, vllm="", region="", platform="", accelerator="")
    told = dict(section(sweep_report(find(cells, rows), cells), "What was measured").table.rows)
    assert {told[name] for name in ("image", "flags", "vLLM", "platform", "accelerator")} == {"unknown"}
    told = dict(section(scenes.report_of_a_known_server(), "What was measured").table.rows)
    made = provenance()
    for text in (made.image, made.flags, made.vllm, made.region, made.accelerator, made.driver_version, made.sweep):
        assert any(text in row for row in told.values()), text
