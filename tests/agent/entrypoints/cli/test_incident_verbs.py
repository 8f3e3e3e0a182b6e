"""What people do about an incident on the command line: done, said in a sentence or as JSON, refused with a way on."""

import json
import shlex
from pathlib import Path

import pytest

from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.incident_verbs import VERBS
from agent.entrypoints.cli.main import main
from agent.ports.store import Change
from agent.presentation.plan_title import plan_title
from tests.agent.entrypoints.waiting_plan import Service, asked, run_until

__all__ = ["asked"]

GUIDE = Path(__file__).resolve().parents[4] / "docs" / "operate.md"


def said(capsys, *words):
    code = main(["incidents", *words])
    told = capsys.readouterr()
    return code, told.out, told.err


def escalated(incident: Incident) -> Incident:
    """The incident after a person was needed."""
    now = incident.phase_at
    moved = incident.move(Phase.EXPIRED, now=now).move(Phase.ESCALATED, now=now, due_at=None, ended_why="unanswered")
    return Service().app.store.commit(Change(incident=moved))


def test_a_life_is_led_from_the_first_word_to_the_next_plan_and_to_its_end(asked, capsys):
    """Each verb says what it did and how the incident stands; everything is in the timeline and in the record."""
    name = asked.id
    code, out, err = said(capsys, "ack", name, "--by", "ana")
    assert (code, err) == (0, "")
    assert out.startswith(f"incident {name} is acknowledged. A plan needs your approval until ")
    assert "Acknowledged by ana (not verified) at " in out
    assert "assigned to Ben" in said(capsys, "assign", name, "Ben")[1]
    said(capsys, "comment", name, "the", "quota", "is", "raised", "--by", "ana")
    escalated(Service().app.store.load(name))
    code, out, _ = said(capsys, "replan", name, "--json")
    assert (code, json.loads(out)["incident"]["replan"]["channel"]) == (0, "command_line")
    service = Service()
    while (again := service.app.store.load(name)).phase is not Phase.ASKED:
        service.step()
    assert again.plan.id != asked.plan.id
    escalated(again)
    code, out, _ = said(capsys, "close", name, "--why", "the node was replaced", "--by", "ana")
    stands = "A person closed the incident; the agent does nothing more here. Nothing has been changed."
    assert code == 0
    assert out.startswith(f"incident {name} is closed. {stands} Acknowledged by ana (not verified) at ")
    assert out.endswith("; assigned to Ben.\n")
    timeline = said(capsys, "timeline", name)[1]
    assert "Comment by ana (not verified): the quota is raised" in timeline
    kinds = [row.kind for row in service.app.control.audit() if row.kind.startswith("incident.")]
    assert kinds == [f"incident.{kind}" for kind in ("acknowledge", "assign", "comment", "replan", "close")]


WRONG = {
    "no id": (["ack"], "the incident's id is missing"),
    "unknown": (["ack", "inc-none"], "inc-none"),
    "no comment": (["comment", "ID"], "it takes TEXT after the id"),
    "nobody named": (["assign", "ID"], "it takes WHO after the id"),
    "no reason": (["close", "ID"], "it needs a reason"),
    "a reason of blanks": (["roll-back", "ID", "--why", " "], "it needs a reason"),
    "words too many": (["close", "ID", "over"], "'over' does not belong to it"),
    "words of a list": (["show", "ID", "more"], "'more' does not belong to it"),
}


@pytest.mark.parametrize(("words", "why"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_read_is_refused_and_says_how(asked, capsys, words, why):
    code, out, err = said(capsys, *(asked.id if word == "ID" else word for word in words))
    assert (code, out) == (2, "")
    assert why in err
    assert "Hint: " in err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["close", "--why", "over"], "Hint: reject its plan: sre-agent reject p-"),
        (["done"], "its plan is no task for a person"),
        (["replan"], "Hint: reject it for the next: sre-agent reject p-"),
        (["roll-back", "--why", "bad"], "nothing was changed; reject its plan"),
    ],
    ids=["close", "done", "replan", "roll-back"],
)
def test_what_does_not_go_with_the_phase_says_what_does(asked, capsys, words, why):
    verb, *more = words
    code, _, err = said(capsys, verb, asked.id, *more)
    assert code != 0
    assert why in err
    assert Service().app.store.load(asked.id).phase is Phase.ASKED


def test_a_roll_back_shows_the_plan_whose_change_it_puts_back(asked, capsys):
    """It is bound to what is shown, or to the digest that was given; the answer stands alone on stdout."""
    main(["approve", asked.plan.id])
    run_until(Phase.VERIFYING)
    capsys.readouterr()
    code, out, err = said(capsys, "roll-back", asked.id, "--why", "bad", "--digest", "0" * 16)
    assert (code, out, "what was shown had digest '00000000'" in err) == (2, "", True)
    code, out, err = said(capsys, "roll-back", asked.id, "--why", "bad", "--json")
    assert (code, json.loads(out)["incident"]["roll_back"]["plan_digest"]) == (0, asked.plan.digest)
    assert err == f"puts back what plan {asked.plan.id} changed: {plan_title(asked.plan)}\n"


def test_the_commands_of_the_guide_are_those_of_the_command_line(asked, capsys):
    """Each is understood: it does its work, or says of this phase why it cannot be done."""
    section = GUIDE.read_text().partition("## What you can do about an incident")[2].partition("\n## ")[0]
    shown = [shlex.split(line, comments=True) for line in section.splitlines() if line.startswith("sre-agent ")]
    assert {words[2] for words in shown} == set(VERBS)
    for words in shown:
        code, out, err = said(capsys, *(asked.id if word == "ID" else word for word in words[2:]))
        assert (code == 0 and out.startswith(f"incident {asked.id} ")) or f"incident {asked.id!r} " in err, words
