"""The notify command: a list of names, and a test that really arrives."""

import pytest

from agent.entrypoints.cli.main import main
from tests.journeys.fake_pagerduty import KEY, FakePagerDuty


@pytest.fixture
def pager(monkeypatch):
    made = FakePagerDuty()
    monkeypatch.setenv("PAGERDUTY_ROUTING_KEY", KEY)
    monkeypatch.setenv("PAGERDUTY_URL", made.url)
    monkeypatch.setenv("NOTIFY_TARGETS", "team=gchat://a/b/c")
    yield made
    made.close()


def test_the_list_names_who_is_told_and_where_it_goes(pager, capsys, monkeypatch):
    """Of an address the host alone: the rest of it may be a secret."""
    monkeypatch.setenv("WEBHOOK_URLS", "https://hooks.example.com/s3cret")
    monkeypatch.setenv("WEBHOOK_SECRETS", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    assert main(["notify"]) == 0
    out = capsys.readouterr().out
    heading, *rows = out.splitlines()
    assert heading.split() == ["TARGET", "GOES", "TO", "EVENTS"]
    assert [row.split()[0].partition("-")[0] for row in rows] == ["pagerduty", "webhook", "notify"]
    assert rows[1].split()[1:] == ["hooks.example.com", "all"]
    assert "incident.escalated" in rows[2]
    assert "s3cret" not in out


def test_without_any_it_says_where_to_begin(capsys, monkeypatch):
    monkeypatch.delenv("PAGERDUTY_ROUTING_KEY", raising=False)
    assert main(["notify", "list"]) == 0
    assert "docs/notifications.md" in capsys.readouterr().out


def test_without_a_checkout_a_guide_is_said_to_be_in_the_repository(capsys, monkeypatch, tmp_path):
    """The package holds no page of docs/."""
    monkeypatch.setattr("agent.entrypoints.cli.output.DOCS", tmp_path / "docs")
    monkeypatch.delenv("PAGERDUTY_ROUTING_KEY", raising=False)
    assert main(["notify", "list"]) == 0
    assert "docs/notifications.md in the source repository" in capsys.readouterr().out
    assert main(["notify", "test", "pager"]) == 2
    assert "docs/notifications.md in the source repository" in capsys.readouterr().err


def test_a_test_arrives_and_leaves_nothing_open(pager, capsys):
    assert main(["notify", "test", "pagerduty"]) == 0
    assert pager.actions == ["trigger", "resolve"]
    assert pager.alerts == {"sre-agent-test": "resolved"}
    assert pager.errors == []
    assert "has arrived" in capsys.readouterr().out


def test_a_test_that_is_not_taken_is_a_failed_dependency(pager, capsys):
    pager.answers = [503]
    assert main(["notify", "test", "pagerduty"]) == 3
    assert "503" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["notify", "test"], ["notify", "test", "pager"]])
def test_an_unknown_target_is_refused_with_the_names(pager, capsys, words):
    assert main(words) == 2
    assert "pagerduty, notify-team" in capsys.readouterr().err
