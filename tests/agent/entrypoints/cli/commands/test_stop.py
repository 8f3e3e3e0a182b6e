"""The kill switch from the command line: on with a reason, off, and in the record."""

import json

import pytest

from agent.entrypoints.cli.main import main


@pytest.fixture(autouse=True)
def installation(tmp_path, monkeypatch):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path}")


def said(capsys, *words):
    code = main(list(words))
    return code, capsys.readouterr().out


def test_it_is_off_until_it_is_turned_and_every_turn_is_recorded(capsys):
    assert "is off" in said(capsys, "stop")[1]
    assert "by ada: maintenance" in said(capsys, "stop", "--why", "maintenance", "--by", "ada")[1]
    assert "is on" in said(capsys, "stop")[1]
    assert "is off" in said(capsys, "stop", "--off", "--by", "ben")[1]
    rows = [json.loads(line) for line in said(capsys, "audit", "show", "--json")[1].splitlines()]
    assert [(row["kind"], row["who"]) for row in rows] == [("kill_switch.on", "ada"), ("kill_switch.off", "ben")]
    assert said(capsys, "audit", "verify")[0] == 0


def test_a_secret_in_the_reason_is_neither_shown_nor_recorded(capsys):
    secret = "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH"
    assert "leaked [redacted:" in said(capsys, "stop", "--why", f"leaked {secret}")[1]
    assert secret not in said(capsys, "stop")[1] + said(capsys, "audit", "show", "--json")[1]


def test_on_and_off_at_once_is_neither(capsys):
    assert said(capsys, "stop", "--off", "--why", "x")[0] == 2
    assert "is off" in said(capsys, "stop")[1]


@pytest.mark.parametrize("why", ["", " "])
def test_who_gives_no_reason_stops_all_the_same(capsys, why):
    """At three in the morning nobody should read "is off" because the reason was empty."""
    assert "is on" in said(capsys, "stop", "--why", why)[1]
    assert "is on" in said(capsys, "stop")[1]
    assert said(capsys, "stop", "--off", "--why", why)[0] == 2


def test_each_state_says_how_to_come_to_the_other(capsys):
    assert "sre-agent stop --why TEXT" in said(capsys, "stop")[1]
    assert "sre-agent stop --off" in said(capsys, "stop", "--why", "x")[1]
