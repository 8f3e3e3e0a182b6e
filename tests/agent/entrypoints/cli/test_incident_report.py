"""The report of an incident on the command line: printed, written into a file, and refused without a trace."""

import json
import shlex
from pathlib import Path

import pytest

from agent.entrypoints.cli.incident_report import FORMATS
from agent.entrypoints.cli.main import main
from tests.agent.entrypoints.waiting_plan import asked
from tests.model_server import FAULTS, MODEL, Server, answering

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


@pytest.fixture
def reworded(asked, monkeypatch, capsys):
    """Print the report with its summary worded anew by a server that says this; what was asked stays with the server."""
    monkeypatch.setenv("MODEL_WAKE_WHEN", "never")
    monkeypatch.delenv("MODEL_NAME", raising=False)

    def make(say, *, form="json"):
        with Server(answering(say)) as server:
            monkeypatch.setenv("MODEL_ENDPOINTS", server.url)
            assert main(["incidents", "report", asked.id, "--format", form, "--reword"]) == 0
        return capsys.readouterr(), server.questions

    return make


def test_a_summary_that_a_model_worded_is_marked_and_the_own_one_is_kept(reworded):
    """It sees the summary and nothing else of the record; every other sentence stays as it was."""
    said = "A startup probe gave up before the start was done, and no instance is serving."
    told, (question,) = reworded(lambda _: json.dumps({"summary": said}))
    draft = json.loads(told.out)
    assert (draft["summary"], draft["summary_by"]) == ([said], "model")
    assert draft["summary_model"].startswith(f"{MODEL}, prompt reword.v1 ")
    own = " ".join(draft["record_summary"])
    assert "the startup probe gave up before it was done" in own
    user = question["messages"][-1]["content"]
    assert own in user
    assert not any(item["line"] in user for item in draft["evidence"])
    text = reworded(lambda _: json.dumps({"summary": said}), form="md")[0].out
    assert text.index("Summary worded by a model (") < text.index(said) < text.index("in the record's own words: ")


@pytest.mark.parametrize(
    ("say", "why"),
    [
        (lambda _: json.dumps({"summary": "It took 31 s."}), "it states '31 s', which the original does not"),
        (lambda _: json.dumps({"summary": "It was fixed."}), "it states 'fixed'"),
        (FAULTS["cut off"], "it was cut off"),
        (FAULTS["wrong schema"], "not the one text"),
        (FAULTS["HTTP 500"], ""),
        (FAULTS["reset in the middle"], ""),
    ],
    ids=["a figure of its own", "an end that is none", "cut off", "wrong schema", "no answer", "broken"],
)
def test_a_summary_that_cannot_be_used_leaves_the_report_as_it_is(reworded, say, why):
    told, questions = reworded(say)
    draft = json.loads(told.out)
    assert (draft["summary_by"], draft["summary_model"], draft["record_summary"]) == ("record", "", [])
    assert questions
    assert why in told.err
    assert "The report has the summary of the record." in told.err


def test_without_a_model_nothing_is_worded(asked, monkeypatch, capsys):
    monkeypatch.delenv("MODEL_ENDPOINTS", raising=False)
    assert main(["incidents", "report", asked.id, "--reword"]) == 2
    assert "no model is configured. Hint: name an endpoint in MODEL_ENDPOINTS" in capsys.readouterr().err


def test_format_belongs_to_report(asked, capsys):
    assert main(["incidents", "show", asked.id, "--format", "md"]) == 2
    assert "belong to report" in capsys.readouterr().err
