"""From a recorded event to RESOLVED as in the cloud: the console hands the answer on, `decide` signs, the executor acts."""

import shlex
import sys

import pytest

from agent.core.decision.decision import Channel
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.main import main
from tests import google_tokens
from tests.journeys.cloud_doors import Cloud

PROBE = "gemma4-26b-l4-startup-probe"


@pytest.fixture
def cloud(journey):
    made = Cloud(journey(PROBE))
    yield made
    made.close()


def test_an_answer_in_the_console_ends_in_a_service_that_serves(cloud):
    plan = cloud.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300).plan
    assert cloud.press(plan, "approve") == 303
    decision = cloud.told.incidents()[0].decision
    assert (decision.who, decision.name, decision.channel) == ("ada@example.com", "Ada", Channel.CONSOLE)
    assert cloud.told.until(lambda i: i.ended, limit_s=900).phase is Phase.RESOLVED


def test_an_answer_from_the_command_line_does_too(cloud, tmp_path, monkeypatch, capsys):
    """The executor takes the receipt: who is proven by an ID token is an approver like any other."""
    plan = cloud.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300).plan
    token = google_tokens.id_token(google_tokens.id_claims(cloud.told.clock.now()))
    monkeypatch.setenv("DECIDE_URL", cloud.decide_url)
    monkeypatch.setenv("ID_TOKEN_COMMAND", shlex.join([sys.executable, "-c", f"print({token!r})"]))
    assert main(["approve", plan.id]) == 0
    assert "approved by ada@example.com" in capsys.readouterr().out
    assert cloud.told.until(lambda i: i.ended, limit_s=900).phase is Phase.RESOLVED


def test_a_word_that_nothing_proves_changes_nothing_there(cloud):
    """The same installation, the operator's unproven word: an approval that counts on one machine alone is none here."""
    from agent.errors import PolicyRefused

    plan = cloud.told.until(lambda i: i.phase is Phase.ASKED, limit_s=300).plan
    with pytest.raises(PolicyRefused, match="an unproven word counts on one machine's own service only"):
        cloud.told.answer(plan.id)
