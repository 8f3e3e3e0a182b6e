"""The command line of the cloud: real requests to the real deciding function, with the operator's own token."""

import json
import shlex
import socket
import sys
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent.core.change.config_drift import Drift, ServiceRecord
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.main import main
from agent.entrypoints.http import operators
from agent.entrypoints.operator_client import remote
from agent.entrypoints.operator_client.local import open_operator_client
from agent.errors import NotFound
from agent.ports.store import Query
from tests.contracts import values

SERVICES = Path(__file__).resolve().parents[4] / "infra" / "services.example.toml"


@pytest.fixture
def operator(served, desk, tmp_path, monkeypatch, capsys):
    """A command line with the settings of a cloud, whose token is Ada's unless it is changed."""
    token = tmp_path / "token"

    def as_(**claims):
        token.write_text(desk.token(**claims))

    def run(*words):
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    as_()
    run.as_ = as_
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STORE", "firestore:example")
    monkeypatch.setenv("BUS", "pubsub:example")
    monkeypatch.setenv("SERVICES", str(SERVICES))
    monkeypatch.setenv("DECIDE_URL", served.url)
    printing = f"import sys; print(open({str(token)!r}).read())"
    monkeypatch.setenv("ID_TOKEN_COMMAND", shlex.join([sys.executable, "-c", printing]))
    return run


def test_approve_decides_in_the_cloud_and_says_by_whom(operator, desk):
    code, out, _ = operator("approve", desk.plan.id)
    assert (code, desk.phase()) == (0, Phase.APPROVED)
    assert f"plan {desk.plan.id} approved by ada@example.com. The plan is checked once more" in out
    assert "not verified" not in out
    decision = desk.stage.world.store.load(desk.incident.id).decision
    assert (decision.verified, decision.channel) == (True, "command_line")


def test_reject_brings_its_reason(operator, desk):
    assert operator("reject", desk.plan.id, "--why", "the quota is used up")[0] == 0
    assert desk.stage.world.store.load(desk.incident.id).decision.why == "the quota is used up"


def test_services_come_with_what_the_tick_saw_and_without_a_platform_here(operator, desk):
    """Incidents and what was seen come through `decide`; nobody describes a service without PLATFORM."""
    assert operator("services", "list", "--json")[0] == 0
    name = json.loads(operator("services", "list", "--json")[1].splitlines()[0])["name"]
    seen = ServiceRecord(
        service=name,
        state={"max_instances": "4"},
        drift=(Drift(path="max_instances", wanted="2", live="4", against="approved"),),
        seen_at=desk.stage.clock.now(),
    )
    desk.stage.world.service_records.keep_service_record(seen)
    code, out, _ = operator("services", "drift", name)
    assert (code, "not asked from here" in out) == (1, True)
    assert "the most instances is 4, approved is 2" in out


def test_the_address_alone_is_enough(operator, desk, monkeypatch):
    """A laptop knows where `decide` is, and nothing else of the installation."""
    for name in ("STORE", "BUS", "SERVICES"):
        monkeypatch.delenv(name)
    assert operator("approve", desk.plan.id)[0] == 0
    assert not Path("state").exists()


def test_a_refusal_is_shown_as_the_function_said_it(operator, desk):
    operator.as_(email="eve@example.com")
    code, _, err = operator("approve", desk.plan.id)
    assert (code, desk.phase()) == (2, Phase.ASKED)
    assert err == (
        f"sre-agent approve: plan {desk.plan.id!r} was not decided: policy.toml names no approver with the e-mail "
        "'eve@example.com'. Hint: ask somebody whom policy.toml names for this service\n"
    )
    operator.as_(aud="https://elsewhere.example")
    assert "which ID_TOKEN_AUDIENCES does not name" in operator("approve", desk.plan.id)[2]


def test_somebody_was_faster(operator, desk):
    assert desk.say("reject", jti="ben")[0] == 200
    code, _, err = operator("approve", desk.plan.id)
    assert (code, "said reject through command_line" in err) == (2, True)


def test_a_name_by_hand_is_refused_before_anything_is_sent(operator, desk, served):
    for words in (("approve", desk.plan.id, "--by", "ada"), ("stop", "--why", "x", "--by", "ada")):
        code, _, err = operator(*words)
        assert code == 2
        assert "--by works in local mode only" in err
    assert served.asked == []


def test_a_roll_back_is_bound_to_the_plan_that_it_showed(operator, desk):
    """The function refuses one that says no plan; this one is refused for its phase alone."""
    code, _, err = operator("incidents", "roll-back", desk.incident.id, "--why", "bad")
    assert (code, desk.phase()) == (2, Phase.ASKED)
    assert f"puts back what plan {desk.plan.id} changed: " in err
    assert "it is ASKED" in err


def test_the_kill_switch_is_turned_and_told(operator, desk):
    assert "is off" in operator("stop")[1]
    assert "is on (by ada@example[.]com: it burns)" in operator("stop", "--why", "it burns")[1]
    assert desk.stage.world.control.kill_switch().on
    assert "is off" in operator("stop", "--off")[1]


def test_incidents_are_listed_shown_and_told(operator, desk):
    code, out, _ = operator("incidents")
    assert code == 0
    assert desk.incident.id in out
    assert desk.plan.id in out.splitlines()[1].split()
    assert operator("incidents", "list", "--service", "other")[1].startswith("no incidents")
    assert json.loads(operator("incidents", "list", "--open", "--json")[1])["plan"] == desk.plan.id
    assert "Nobody answered the plan by" in operator("incidents", "show", desk.incident.id)[1]
    shown = json.loads(operator("incidents", "show", desk.incident.id, "--json")[1])
    assert shown["plan"]["digest"] == desk.plan.digest
    assert "needs approval." in operator("incidents", "timeline", desk.incident.id)[1]
    assert operator("incidents", "show", "../secrets?x=1#y")[0] == 2


def test_the_record_is_shown_and_checked_here(operator, desk):
    operator("reject", desk.plan.id, "--why", "no")
    operator("stop", "--why", "x")
    assert [line.split()[0] for line in operator("audit", "show")[1].splitlines()] == ["ROW", "1", "2"]
    code, out, _ = operator("audit", "verify")
    assert (code, "sound: 2 rows" in out) == (0, True)


def forge(control, *, row):
    with control._database.writing() as db:
        db.execute("DROP TRIGGER audit_is_never_changed")
        db.execute("UPDATE audit SET who = 'nobody' WHERE number = ?", (row,))


def test_a_record_longer_than_one_answer_is_checked_from_its_first_row(operator, desk, monkeypatch):
    """Piece by piece, the last one not full; a change in the oldest piece is found."""
    monkeypatch.setattr("agent.entrypoints.operator_client.remote.PIECE", 3)
    control = desk.stage.world.control
    for n in range(8):
        control.append(at=desk.now(), kind="k", incident="", who="ada", body=str(n))
    assert "sound: 8 rows" in operator("audit", "verify")[1]
    assert [line.split()[0] for line in operator("audit", "show", "--limit", "4")[1].splitlines()] == ["ROW", *"5678"]
    forge(control, row=2)
    code, out, _ = operator("audit", "verify")
    assert (code, "row 2 says something else" in out) == (1, True)


def test_a_function_that_sends_the_same_rows_again_is_no_endless_record(operator, desk, monkeypatch):
    monkeypatch.setattr("agent.entrypoints.operator_client.remote.PIECE", 2)
    control = desk.stage.world.control
    for n in range(4):
        control.append(at=desk.now(), kind="k", incident="", who="ada", body=str(n))
    whole = control.audit
    monkeypatch.setattr(control, "audit", lambda limit, **_: whole(limit))  # as an older version would
    code, _, err = operator("audit", "verify")
    assert (code, "sends rows of the record again" in err) == (3, True)


def test_a_record_that_was_changed_is_found_from_outside(operator, desk):
    operator("stop", "--why", "x")
    control = desk.stage.world.control
    forge(control, row=1)
    assert operator("audit", "verify")[0] == 1


def test_without_an_address_it_says_which_setting(operator, desk, monkeypatch):
    monkeypatch.delenv("DECIDE_URL")
    code, _, err = operator("approve", desk.plan.id)
    assert (code, "DECIDE_URL is unset" in err) == (2, True)


def test_without_a_token_nothing_is_sent(operator, desk, served, monkeypatch):
    monkeypatch.setenv("ID_TOKEN_COMMAND", shlex.join([sys.executable, "-c", "import sys; sys.exit('not logged in')"]))
    code, _, err = operator("approve", desk.plan.id)
    assert (code, "ended with 1: not logged in" in err, "gcloud auth login" in err) == (3, True, True)
    assert served.asked == []


def test_an_address_where_nobody_listens_says_that_nothing_was_sent(operator, desk, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("DECIDE_URL", f"http://127.0.0.1:{taken.getsockname()[1]}")
        code, _, err = operator("approve", desk.plan.id)
    assert (code, "nothing was sent" in err) == (3, True)


def test_a_lost_answer_is_said_to_be_lost_and_is_not_sent_again(operator, desk, monkeypatch):
    """The request arrives, the connection ends without a word: who asked must look."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(65536))

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        monkeypatch.setenv("DECIDE_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        code, _, err = operator("approve", desk.plan.id)
        stopped = operator("stop", "--why", "x")
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)
    assert (code, stopped[0]) == (3, 3)
    assert f"nobody knows whether plan {desk.plan.id!r} was decided" in err
    assert "sre-agent incidents list; to say the same again is safe" in err
    assert "nobody knows how the kill switch stands" in stopped[2]
    assert len([raw for raw in heard if raw]) == 2


def test_who_was_not_answered_may_say_it_again(operator, desk, served):
    """The first was recorded and its answer lost: with the same token the second is a replay, with a fresh one it is safe."""
    token = desk.token()
    assert desk.say(token=token, gate=served.gate)[0] == 200
    code, _, err = operator("approve", desk.plan.id)
    assert (code, "was used for it before" in err) == (2, True)
    operator.as_(jti="fresh")
    assert operator("approve", desk.plan.id)[0] == 0


@pytest.mark.parametrize(("status", "body"), [
    (200, b"<html>"), (200, b"[]"), (200, b'{"plan": 1}'), (302, b""), (403, b"<html>Forbidden"), (404, b""),
    (500, b'{"error": "x"}'), (503, b"{}"), (403, b'{"what": "", "why": "x", "hint": "y"}'), (200, b""),
])  # fmt: skip
def test_whatever_else_answers_is_not_believed(operator, desk, desks, monkeypatch, status, body):
    """A proxy's page, a redirect, another service: a failure in words, and never a decision."""
    from werkzeug.serving import make_server
    from werkzeug.wrappers import Response

    answer = Response(body, status=status, headers={"Location": "http://127.0.0.1:9/"} if status == 302 else {})
    server = make_server("127.0.0.1", 0, answer, threaded=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("DECIDE_URL", f"http://127.0.0.1:{server.server_port}")
    code, out, err = operator("approve", desk.plan.id)
    server.shutdown()
    server.server_close()
    assert (code, out) == (3, "")
    assert "decide" in err


def test_a_list_of_several_pages_is_read_to_its_end(operator, desk, monkeypatch):
    """Also where a page ends among incidents of one instant; the times of a query are asked for too."""
    monkeypatch.setattr(operators, "LIST_LIMIT", 3)
    monkeypatch.setattr(remote, "LIST_LIMIT", 3)
    for number in range(7):
        opened = values.T0 + timedelta(seconds=number // 2)
        desk.stage.world.store.commit(values.change(values.incident(f"inc-{number}", opened_at=opened)))
    wanted = [incident.id for incident in desk.stage.world.store.incidents(Query(service="gemma"))]

    def listed(*words):
        code, out, err = operator("incidents", "list", "--service", "gemma", "--json", *words)
        return code, [json.loads(line)["id"] for line in out.splitlines()], err

    assert (len(wanted), listed()) == (7, (0, wanted, ""))
    code, five, err = listed("--limit", "5")
    assert (code, five) == (0, wanted[:5])
    assert "to see others: --limit 1000" in err
    client = open_operator_client()
    times = {"since": values.T0 + timedelta(seconds=1), "before": values.T0 + timedelta(seconds=3)}
    assert [i.id for i in client.incidents(Query(service="gemma", **times))] == wanted[1:5]


def test_what_is_not_there_is_told_as_that(operator):
    client = open_operator_client()
    for ask in (client.incident, client.timeline):
        with pytest.raises(NotFound, match="inc-none"):
            ask("inc-none")
    assert operator("incidents", "show", "inc-none")[0] == 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_does_not_carry_the_token_elsewhere(operator, desk, served, monkeypatch, status):
    """Whoever stands at the old address may not send the operator's word to another place."""
    from werkzeug.serving import make_server
    from werkzeug.wrappers import Response

    server = make_server("127.0.0.1", 0, Response(status=status, headers={"Location": f"{served.url}/decisions"}))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("DECIDE_URL", f"http://127.0.0.1:{server.server_port}")
    assert [operator("approve", desk.plan.id)[0], operator("incidents")[0]] == [3, 3]
    server.shutdown()
    server.server_close()
    assert served.asked == []


def test_words_of_others_move_no_terminal(operator):
    """What the cloud says is shown, not obeyed."""
    operator("stop", "--why", "\x1b[31mred\x07")
    assert "\x1b" not in operator("stop")[1]


def test_a_change_is_asked_for_in_the_cloud_and_taken_back(operator, desk, served, monkeypatch):
    """The operator's own token says who asks; nothing but the deciding function is spoken to."""
    monkeypatch.setattr("agent.entrypoints.cli.commands.change.WAIT_S", 0.0)
    words = ("change", "gemma-free", "--set-flag", "max-model-len=32768", "--why", "longer documents")
    desk.watch("gemma-free")
    served.gate = replace(served.gate, context=desk.stage.world)
    code, out, err = operator(*words)
    assert (code, "ada@example[.]com asks for a change: longer documents" in out) == (0, True), err
    (held,) = (i.request for i in desk.stage.world.store.incidents(Query(service="gemma-free")))
    assert (held.asker, held.verified) == ("ada@example.com", True)
    assert "--by works in local mode only" in operator(*words, "--by", "eve")[2]
    assert operator("change", "gemma-free", "--withdraw", "--why", "no")[0] == 0


def test_a_policy_is_tested_against_what_the_cloud_really_did(operator, desk, tmp_path, monkeypatch):
    """The file is the operator's own; the kill switch and the changes made are the cloud's."""
    (tmp_path / "policy.toml").write_text("changes_per_hour = 1\n")
    monkeypatch.setenv("POLICY", str(tmp_path / "policy.toml"))
    at = (desk.now() + timedelta(minutes=5)).isoformat()

    def tested():
        code, out, err = operator("policy", "test", desk.plan.id, "--at", at, "--json")
        assert (code, err) == (1, "")
        return {row["check"]: (row["answer"], row["says"]) for row in json.loads(out)["rows"]}

    found = tested()
    assert (found["switch"][0], found["limits"]) == ("ok", ("ok", "1 an hour over all; none made"))
    assert found["policy"][0] == "refused"  # the plan was made under the policy of the cloud
    assert found["approvers"] == ("refused", "policy.toml names no approver: too few")
    desk.stage.world.control.begin(values.intent(service="another", applied_at=desk.now()))
    operator("stop", "--why", "audit")
    found = tested()
    assert found["switch"] == ("refused", "the kill switch is on (by ada@example.com: audit)")
    assert found["limits"][0] == "needs"
    assert "1 made, the last 5 min ago" in found["limits"][1]


def test_what_is_done_about_an_incident_is_done_in_the_cloud(operator, desk):
    """By whom the token proves; a name is refused there, and what does not go with the phase comes back in words."""
    code, out, _ = operator("incidents", "ack", desk.incident.id)
    assert (code, "Acknowledged by Ada at " in out) == (0, True), out
    assert operator("incidents", "comment", desk.incident.id, "hello", "--by", "eve")[0] == 2
    code, _, err = operator("incidents", "close", desk.incident.id, "--why", "over")
    assert (code, "reject its plan: sre-agent reject" in err) == (2, True), err
    assert [e.what for e in desk.stage.world.store.timeline(desk.incident.id) if e.kind] == ["acknowledged by Ada"]
