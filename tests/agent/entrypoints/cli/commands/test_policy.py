"""The policy command explains what decides, and its guide shows what it prints."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.catalogue.load_bundled import load_default_policy
from agent.core.decision.policy import parse_policy
from agent.core.plan.action import ForPerson, Restart, SetAccelerator, SetFlag, SetScaling
from agent.entrypoints.cli.main import main
from agent.presentation.policy_explanation import Answer, Subject, explain, is_allowed

PAGE = (Path(__file__).resolve().parents[5] / "docs" / "policy.md").read_text()
POLICY, REQUEST = (re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL).group(1) for kind in ("toml", "json"))
SHOWN = re.search(r"```\n\$ sre-agent policy test request.json (.*?)\n(.*?)\n```", PAGE, re.DOTALL)
TUESDAY = datetime(2026, 11, 24, 12, tzinfo=UTC)
WEEKEND = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def files(tmp_path, monkeypatch):
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "request.json").write_text(REQUEST)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POLICY", str(tmp_path / "policy.toml"))
    return tmp_path


def test_the_guide_shows_what_it_prints(files, capsys):
    assert main(["policy", "test", "request.json", *SHOWN.group(1).split()]) == 1
    assert capsys.readouterr().out.rstrip() == SHOWN.group(2)


def test_json_holds_every_row(files, capsys):
    assert main(["policy", "test", "request.json", "--at", "2026-11-24T12:00:00Z", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["allowed"], told["service"], told["policy"]) == (False, "gemma4-26b-l4", whole().digest)
    assert {row["check"] for row in told["rows"]} >= {"rule", "bounds", "freeze", "limits", "budget", "approvals"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing.json"], "it is no file and no id of a plan"),
        (["bad.json"], "was not read"),
        (["strange.json"], "actions.0"),
        (["request.json", "--at", "tomorrow"], "'tomorrow' is none"),
        (["request.json", "--at", "2026-11-24T12:00:00"], "has no offset from UTC"),
    ],
)
def test_what_is_not_understood_is_bad_input(files, capsys, words, says):
    (files / "bad.json").write_text("{")
    (files / "strange.json").write_text('{"service": "s", "actions": [{"kind": "reboot"}]}')
    assert main(["policy", "test", *words]) == 2
    assert says in capsys.readouterr().err


def test_a_policy_with_mistakes_explains_nothing(files, capsys):
    (files / "policy.toml").write_text("[groups]\nempty = []\n")
    assert main(["policy", "test", "request.json"]) == 2
    assert "groups.empty: it is empty" in capsys.readouterr().err


def whole():
    return parse_policy(POLICY, default=load_default_policy())


def rows(actions, *, at=TUESDAY, by=None, **fields):
    subject = Subject(service="gemma4-26b-l4", actions=tuple(actions), **fields)
    return {row.check: (row.answer, row.says) for row in explain(whole(), subject, at=at, by=by)}


SCALE = SetScaling(min_instances=0, max_instances=3)


def test_a_plan_of_an_incident_needs_the_people_of_its_rule():
    found = rows([SCALE], unproved="", over_budget="", policy=whole().digest)
    assert found["rule"] == (Answer.NEEDS, "set_scaling min_instances=0 max_instances=3: rules.1 decides: person")
    assert found["approvals"] == (Answer.NEEDS, "2 needed, of oncall or leads")
    assert found["approvers"] == (Answer.NEEDS, "Ada, Ben")
    assert {answer for answer, _ in found.values()} <= {Answer.OK, Answer.NEEDS, Answer.UNKNOWN}


@pytest.mark.parametrize(
    ("actions", "fields", "check", "says"),
    [
        (
            [SetScaling(min_instances=0, max_instances=4)],
            {},
            "bounds",
            "4 instances are above the limit of 3 of 'production'",
        ),
        ([SetFlag(name="max-model-len", value="big")], {}, "bounds", "'big' is no value of flag --max-model-len"),
        ([SetAccelerator(accelerator="nvidia-b200", cpu=4, memory_mib=4096)], {}, "bounds", "is not on the list"),
        ([SCALE], {"unproved": "nothing proves it"}, "proof", "nothing proves it"),
        ([SCALE], {"over_budget": "it would cost 13"}, "budget", "it would cost 13"),
        ([SCALE], {"policy": "0" * 64}, "policy", "its approvals are void"),
        ([SCALE], {"at": WEEKEND}, "freeze", "nobody is on call"),
        ([SCALE], {"asker": "ada@example.com"}, "approvers", "too few, because who asks does not approve"),
        ([SCALE], {"by": "Eve"}, "by", "'Eve' is no approver"),
        ([SCALE], {"by": "U0456EFGH", "given": ("Ben",)}, "by", "'Ben' approved it already, and counts once"),
        ([SCALE], {"by": "ben", "asker": "U0456EFGH"}, "by", "'Ben' asked for it, and who asks does not approve"),
    ],
)
def test_each_row_can_refuse(actions, fields, check, says):
    found = rows(actions, **fields)
    assert found[check][0] is Answer.REFUSED
    assert says in found[check][1]


def test_what_is_automatic_asks_nobody_and_a_task_for_a_person_changes_nothing():
    policy = parse_policy('[[rules]]\nservices = ["a"]\nkinds = ["restart"]\nmode = "automatic"')
    subject = Subject(service="a", actions=(Restart(),))
    found = explain(policy, subject, at=TUESDAY)
    assert [row.check for row in found] == ["rule", "bounds", "proof", "freeze", "limits", "budget"]
    assert is_allowed(found)
    task = Subject(service="a", actions=(ForPerson(action="fix_quota", instruction="ask"),))
    assert explain(policy, task, at=TUESDAY)[-1].says == "a task for a person; the agent changes nothing"
