"""Incidents on the command line: what is listed, shown and told of them."""

import json

import pytest

from agent.app import build_app
from agent.entrypoints.cli.main import main
from agent.ports.store import Change
from agent.settings import read_settings

ROW = {"id", "service", "run", "phase", "class", "opened_at", "plan"}


def said(capsys, *words):
    code = main(["incidents", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_the_list_is_json_lines_with_the_keys_of_the_contract(asked, capsys):
    code, out, err = said(capsys, "list", "--json")
    (row,) = map(json.loads, out.splitlines())
    assert (code, err) == (0, "")
    assert set(row) == ROW
    assert (row["id"], row["phase"], row["plan"]) == (asked.id, "ASKED", asked.plan.id)


def test_people_see_the_plan_that_waits_for_them(asked, capsys):
    code, out, _ = said(capsys)
    assert code == 0
    heading, line = out.splitlines()
    assert heading.split()[:2] == ["INCIDENT", "STATE"]
    assert line.startswith(f"{asked.id}  Needs approval")
    assert line.index(asked.plan.id) == heading.index("PLAN")
    assert "\x1b" not in out


def test_the_state_is_coloured_where_that_is_forced(asked, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[33mNeeds approval\x1b[0m" in said(capsys)[1]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in said(capsys)[1]


def test_a_list_that_is_not_whole_says_so(asked, capsys):
    assert said(capsys, "list", "--limit", "1")[2] == ""
    build_app(read_settings()).store.commit(Change(incident=asked.with_(id="inc-b", version=0)))
    code, out, err = said(capsys, "list", "--limit", "1", "--json")
    assert (code, len(out.splitlines())) == (0, 1)
    assert "the newest 1 are listed; to see others: --limit 1000" in err
    assert said(capsys, "list", "--limit", "2")[2] == ""


def test_a_limit_belongs_to_a_list(asked, capsys):
    code, out, err = said(capsys, "show", asked.id, "--limit", "2")
    assert (code, out) == (2, "")
    assert "--limit belongs to list" in err


@pytest.mark.parametrize("limit", ["0", "1001", "-1"])
def test_no_more_are_listed_than_a_store_gives(asked, capsys, limit):
    code, out, err = said(capsys, "list", "--limit", limit)
    assert (code, out) == (2, "")
    assert "Hint: want 1 to 1000" in err


@pytest.mark.parametrize(
    ("words", "listed"),
    [
        (["--open"], True),
        (["--run", "live"], True),
        (["--run", "replay-1"], False),
        (["--service", "nobody"], False),
    ],
    ids=["open", "run", "another run", "another service"],
)
def test_a_list_is_narrowed(asked, capsys, words, listed):
    code, out, _ = said(capsys, "list", "--json", *words)
    assert code == 0
    assert (asked.id in out) is listed


def test_one_is_shown_with_its_evidence_and_its_plan(asked, capsys):
    shown = json.loads(said(capsys, "show", asked.id, "--json")[1])
    assert shown["id"] == asked.id
    assert shown["plan"]["id"] == asked.plan.id
    assert shown["evidence"]
    for_people = said(capsys, "show", asked.id)[1]
    assert f"sre-agent approve {asked.plan.id}" in for_people


def test_the_timeline_tells_the_phases_in_their_order(asked, capsys):
    rows = [json.loads(line) for line in said(capsys, "timeline", asked.id, "--json")[1].splitlines()]
    phases = list(dict.fromkeys(row["phase"] for row in rows))
    assert phases == ["OPEN", "DIAGNOSED", "PLANNED", "ASKED"]
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    assert len(said(capsys, "timeline", asked.id)[1].splitlines()) == len(rows)


@pytest.mark.parametrize("what", ["show", "timeline"])
@pytest.mark.parametrize("name", ["inc-nothing", "../../etc/passwd", "\x1b[31m"])
def test_an_incident_that_is_not_there_is_bad_input(asked, capsys, what, name):
    code, out, err = said(capsys, what, name)
    assert (code, out) == (2, "")
    assert "sre-agent incidents:" in err
    assert "\x1b" not in err


@pytest.mark.parametrize("what", ["show", "timeline"])
def test_none_named_is_bad_input_and_says_where_the_names_are(asked, capsys, what):
    code, _, err = said(capsys, what)
    assert code == 2
    assert "sre-agent incidents list" in err


def test_an_installation_without_incidents_says_so_and_json_stays_empty(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    assert "no incidents" in said(capsys)[1]
    assert said(capsys, "list", "--json")[:2] == (0, "")
