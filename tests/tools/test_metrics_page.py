"""The page of metrics is current, and says so to a script."""

from tools import metrics_page
from tools.metrics_page import main, page


def test_the_committed_page_is_current():
    """Where it is not, run it without --check."""
    assert main(["--check"]) == 0


def test_a_page_that_is_not_current_is_told_and_written(tmp_path, monkeypatch, capsys):
    """The exit code is for scripts, the hint for people."""
    monkeypatch.setattr(metrics_page, "PAGE", tmp_path / "metrics.md")
    assert main(["--check"]) == 1
    assert "python -m tools.metrics_page" in capsys.readouterr().err
    assert main([]) == 0
    assert metrics_page.PAGE.read_text() == page()


def test_another_argument_is_refused(capsys):
    assert main(["--write"]) == 2
    assert "nothing or --check" in capsys.readouterr().err
