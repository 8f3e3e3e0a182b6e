"""The report of an incident on the command line: printed, written into a file, and refused without a trace."""

import json
import shlex
from pathlib import Path

import pytest

from agent.entrypoints.cli.incident_report import FORMATS
from agent.entrypoints.cli.main import main
from tests.agent.entrypoints.waiting_plan import asked

__all__ = ["asked"]

GUIDE = Path(__file__).resolve().parents[4] / "docs" / "operate.md"


@pytest.mark.parametrize("form", ["md", "json", "html"])
def test_a_report_is_written_whole_into_its_file(asked, tmp_path, capsys, form):
    out = tmp_path / f"report.{form}"
    assert main(["incidents", "report", asked.id, "--format", form, "--out", str(out)]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert str(out) in told.err
    assert asked.id in out.read_text(encoding="utf-8")
    assert [p.name for p in tmp_path.glob("*.part")] == []


def test_the_commands_of_the_guide_are_understood(asked, tmp_path, monkeypatch, capsys):
    section = GUIDE.read_text(encoding="utf-8").partition("## After an incident")[2].partition("\n## ")[0]
    shown = [shlex.split(line, comments=True) for line in section.splitlines() if line.startswith("sre-agent ")]
    assert len(shown) == len(FORMATS)
    monkeypatch.chdir(tmp_path)
    for words in shown:
        assert main([asked.id if word == "ID" else word for word in words[1:]]) == 0
        capsys.readouterr()
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_json_is_printed_alone(asked, capsys):
    assert main(["incidents", "report", asked.id, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["incident"], shown["format"]) == (asked.id, "sre-agent/incident-report/1")


def test_a_folder_that_is_not_there_is_said(asked, tmp_path, capsys):
    out = tmp_path / "no" / "report.md"
    assert main(["incidents", "report", asked.id, "--out", str(out)]) == 3
    assert "no such file or directory" in capsys.readouterr().err
    assert not Path(tmp_path / "no").exists()


def test_format_belongs_to_report(asked, capsys):
    assert main(["incidents", "show", asked.id, "--format", "md"]) == 2
    assert "belong to report" in capsys.readouterr().err
