"""On a terminal: the same sentences and tables, and nothing of others moves the cursor."""

from agent.presentation.report.document import Table
from agent.presentation.report.plain_text import plain_text, text_table
from tests.agent.presentation.sweep import scenes


def test_columns_stand_below_one_another():
    lines = list(text_table(Table(columns=("name", "n"), rows=(("a", "1"), ("longer", "100")))))
    assert lines == ["name      n", "a         1", "longer  100"]


def test_every_sentence_and_row_is_there_and_no_escape():
    report = scenes.report_of_everything()
    text = plain_text(report)
    assert "\x1b" not in text
    assert "from 8 on requests wait: --max-num-seqs 8" in text
    assert sum(line.startswith("    ") and "ms" in line for line in text.splitlines()) >= 7
