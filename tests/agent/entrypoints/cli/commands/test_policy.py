"""The policy command explains what decides, and its guide shows what it prints."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.app import build_app
from agent.catalogue.load_bundled import load_default_policy
from agent.core.decision.decision import Channel
from agent.core.decision.limit_use import limit_uses
from agent.core.decision.policy import parse_policy
from agent.core.plan.action import ForPerson, Restart, SetAccelerator, SetFlag, SetScaling
from agent.entrypoints.cli.commands import change
from agent.entrypoints.cli.main import main
from agent.entrypoints.service import handlers
from agent.ports.control import KillSwitch
from agent.ports.store import Query
from agent.presentation.policy_explanation import Answer, Subject, explain, is_allowed
from agent.settings import read_settings
from tests.agent.entrypoints.waiting_plan import EXAMPLE
from tests.contracts import values

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
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    monkeypatch.setenv("PLATFORM", "host")
    for name in ("SERVICES", "DECIDE_URL"):
        monkeypatch.delenv(name, raising=False)
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
        (["nothing.json"], "it is no file, and no id of a plan or a request"),
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


def use(most=2, *made, service="", window_s=3600):
    policy = parse_policy(f"change_window_s = {window_s}\nchanges_per_hour = {most}")
    found = limit_uses(policy, "s", of_service=made, of_all=[(at, "s") for at in made], now=TUESDAY)
    return next(one for one in found if one.service == service)


def test_limits_say_what_was_made_and_when_the_next_may_begin():
    made = datetime(2026, 11, 24, 11, 50, tzinfo=UTC)
    full, free, none = use(1, made), use(2, made), use(0)
    assert rows([SCALE], limits=(free,))["limits"] == (Answer.OK, "2 an hour over all; 1 made, the last 10 min ago")
    assert rows([SCALE], limits=(full,))["limits"] == (
        Answer.NEEDS,
        "1 an hour over all; 1 made, the last 10 min ago; the next may begin at 2026-11-24 12:50:00 UTC",
    )
    assert rows([SCALE], limits=(none,))["limits"][0] is Answer.REFUSED
    window = rows([SCALE], limits=(use(9, made, service="s", window_s=900),))["limits"]
    assert window[1].startswith("at most one change of s every 900 s; 1 made")


@pytest.mark.parametrize(
    ("fields", "check", "says"),
    [
        ({"closed": "the incident is APPROVED"}, "plan", "the incident is APPROVED"),
        ({"expires_at": TUESDAY}, "plan", "it expired at 2026-11-24 12:00:00 UTC"),
        ({"stopped": "the kill switch is on (by ada: audit)"}, "switch", "by ada: audit"),
        ({"asker": "ada@example.com", "by": "Ada"}, "by", "who asks does not approve"),
    ],
)
def test_what_is_not_the_policys_refuses_too(fields, check, says):
    found = rows([SCALE], **fields)
    assert (found[check][0], says in found[check][1]) == (Answer.REFUSED, True)


def test_a_freeze_whose_glass_was_broken_stops_nothing_more_and_says_who_may_break_it():
    assert rows([SCALE], at=WEEKEND, broken=("weekend",))["freeze"][0] is Answer.NEEDS
    assert rows([SCALE], at=WEEKEND, by="Ben")["by"][1] == "'Ben' may approve it, and may break the glass of weekend"
    alone = parse_policy(POLICY.replace('leads = ["Ada", "Ben"]', 'leads = ["Ada"]\nboth = ["Ada", "Ben"]').replace(
        'groups = ["oncall", "leads"]', 'groups = ["both", "leads"]'), default=load_default_policy())  # fmt: skip
    subject = Subject(service="gemma4-26b-l4", actions=(SCALE,))
    said = {row.check: row.says for row in explain(alone, subject, at=WEEKEND, by="Ben")}
    assert said["by"] == "'Ben' may approve it, and may not break the glass of weekend"


def test_who_asked_through_an_ai_client_never_approves_whatever_a_rule_says():
    own = POLICY.replace("approvals = 2 ", "self_approve = true\napprovals = 2 ")
    policy = parse_policy(own, default=load_default_policy())
    asked = Subject(service="gemma4-26b-l4", actions=(SCALE,), asker="ada@example.com")
    for through, answer in ((Channel.CONSOLE, Answer.OK), (Channel.MCP, Answer.REFUSED)):
        found = explain(policy, asked.with_(asked_through=through), at=TUESDAY, by="Ada")
        assert found[-1].answer is answer


def test_where_nobody_is_named_only_a_machine_of_ones_own_has_an_operator():
    policy, subject = parse_policy(""), Subject(service="s", actions=(Restart(),))
    assert "the operator of this machine (not verified) can approve" in explain(policy, subject, at=TUESDAY)[-1].says
    cloud = explain(policy, subject.with_(local=False), at=TUESDAY)[-1]
    assert (cloud.answer, "operator" in cloud.says) == (Answer.REFUSED, False)


SERVICE = "gemma4-26b-qat-l4"
LIMITED = """
changes_per_hour = 1
budget_usd_per_h = 4
[[approvers]]
name = "Ada"
email = "ada@example.com"
services = ["gemma4-*"]
"""


@pytest.fixture
def machine(tmp_path, monkeypatch, capsys):
    """One machine with a simulated service, a request whose plan is asked about, and the command."""
    (tmp_path / "policy.toml").write_text(LIMITED)
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    monkeypatch.setenv("PLATFORM", f"rehearsal:{EXAMPLE}")
    monkeypatch.setenv("POLICY", str(tmp_path / "policy.toml"))
    for name in ("SERVICES", "DECIDE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(change, "WAIT_S", 0.0)
    main(["change", SERVICE, "--set-flag", "max-model-len=32768", "--why", "longer", "--by", "bob"])
    app = build_app(read_settings())

    class Machine:
        control = app.control

        def work(self):
            app.worker(handlers(app), threads=1).run_due()
            return app.store.incidents(Query())[0]

        def test(self, *words):
            capsys.readouterr()
            code = main(["policy", "test", *words, "--json"])
            told = json.loads(capsys.readouterr().out)
            said = {row["check"]: (row["answer"], row["says"]) for row in told["rows"]}
            answer, says = said["freeze"]  # of this very second
            return code, said | {"freeze": (answer, re.sub(r" at [\d-]+ [\d:]+ UTC", "", says))}

    return Machine()


def test_a_plan_and_its_request_are_explained_as_they_stand(machine):
    """Before the plan is made the request is explained by what it asks for."""
    life = machine.work()
    code, found = machine.test(life.plan.id, "--by", "ada")
    assert (code, found) == machine.test(life.id, "--by", "ada")
    assert code == 0
    assert set(found) == {
        "plan", "policy", "switch", "rule", "bounds", "proof", "freeze", "limits", "budget", "approvals", "approvers",
        "by",
    }  # fmt: skip
    assert {answer for answer, _ in found.values()} == {"ok", "needs"}
    assert found["limits"][1] == "1 an hour over all; none made"
    assert found["proof"] == ("ok", "proved to fit, or no proof is needed")
    assert found["budget"] == ("ok", "4.00 USD/h over all; kept now; looked at again before it is applied")


def test_a_plan_that_cannot_be_answered_any_more_is_refused(machine):
    plan = machine.work().plan
    assert machine.test(plan.id, "--at", plan.expires_at.isoformat())[1]["plan"][0] == "refused"
    main(["reject", plan.id, "--why", "no", "--by", "ada"])
    code, found = machine.test(plan.id)
    assert (code, found["plan"][1]) == (
        1,
        "it cannot be answered any more, the request is REJECTED: reject by ada",
    )


def test_the_changes_really_made_and_the_kill_switch_are_looked_up(machine):
    plan = machine.work().plan
    now = plan.made_at
    made = values.intent(service="another", applied_at=now)
    machine.control.begin(made)
    machine.control.set_kill_switch(KillSwitch(on=True, by="cyd", why="audit", at=now))
    code, found = machine.test(plan.id)
    assert code == 1
    assert found["switch"] == ("refused", "the kill switch is on (by cyd: audit)")
    assert found["limits"][0] == "needs"
    assert "1 an hour over all; 1 made, the last" in found["limits"][1]


def test_a_file_about_a_watched_service_is_proved_and_priced_at_once(machine, tmp_path):
    machine.work()
    path = tmp_path / "more.json"
    scale = {"kind": "set_scaling", "min_instances": 0, "max_instances": 4}
    path.write_text(json.dumps({"service": SERVICE, "asker": "bob", "actions": [scale]}))
    code, found = machine.test(str(path))
    assert code == 1
    assert found["proof"][0] == "ok"
    assert found["budget"] == (
        "refused",
        "all watched services would cost 4.19 USD/h with it, and the budget is 4.00 USD/h",
    )


@pytest.mark.parametrize("named", ["p-4d24780e817e-1", "p-rq-nothing-1", "rq-nothing"])
def test_what_is_not_stored_is_bad_input(machine, capsys, named):
    assert main(["policy", "test", named]) == 2
    assert "Hint:" in capsys.readouterr().err


def test_what_is_automatic_asks_nobody_and_a_task_for_a_person_changes_nothing():
    policy = parse_policy('[[rules]]\nservices = ["a"]\nkinds = ["restart"]\nmode = "automatic"')
    subject = Subject(service="a", actions=(Restart(),))
    found = explain(policy, subject, at=TUESDAY)
    assert [row.check for row in found] == ["rule", "bounds", "proof", "freeze", "limits", "budget"]
    assert is_allowed(found)
    task = Subject(service="a", actions=(ForPerson(action="fix_quota", instruction="ask"),))
    assert explain(policy, task, at=TUESDAY)[-1].says == "a task for a person; the agent changes nothing"
