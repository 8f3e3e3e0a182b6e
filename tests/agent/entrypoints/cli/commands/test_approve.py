"""Approving from the command line: one plan, once, and everybody else is told who was faster."""

import pytest

from agent.entrypoints.cli.main import main
from agent.errors import StateConflict
from agent.presentation.plan_title import plan_title


def said(capsys, *words):
    code = main(list(words))
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_plan_is_approved_and_what_follows_is_told(asked, capsys):
    code, out, err = said(capsys, "approve", asked.plan.id, "--by", "ada")
    assert (code, err) == (0, "")
    assert f"plan {asked.plan.id} approved by ada (not verified)" in out
    assert f"sre-agent incidents show {asked.id}" in out
    shown = said(capsys, "incidents", "show", asked.id, "--json")[1]
    assert '"phase": "APPROVED"' in shown


def test_the_hint_names_the_very_plan_that_is_shown_and_is_taken_as_it_stands(asked, capsys):
    shown = said(capsys, "incidents", "show", asked.id)[1]
    (hint,) = [line for line in shown.splitlines() if "sre-agent approve" in line]
    words = hint.partition("sre-agent ")[2].split()
    assert words == ["approve", asked.plan.id, "--digest", asked.plan.digest[:16]]
    assert said(capsys, *words, "--by", "ada")[0] == 0


def test_another_digest_approves_nothing_and_the_plan_that_stands_is_told(asked, capsys):
    other = "0" * 16 if not asked.plan.digest.startswith("0" * 16) else "1" * 16
    code, out, err = said(capsys, "approve", asked.plan.id, "--digest", other)
    assert (code, out) == (2, "")
    assert f"what was shown had digest '00000000', the plan has '{asked.plan.digest[:8]}'" in err
    assert plan_title(asked.plan).rstrip(".") in err
    assert '"phase": "ASKED"' in said(capsys, "incidents", "show", asked.id, "--json")[1]
    assert said(capsys, "approve", asked.plan.id, "--digest", asked.plan.digest)[0] == 0


@pytest.mark.parametrize("digest", ["", "abcd", "g" * 16, "a" * 65])
def test_what_is_no_digest_is_bad_input(asked, capsys, digest):
    with pytest.raises(SystemExit) as ended:
        main(["approve", asked.plan.id, "--digest", digest])
    assert ended.value.code == 2
    assert "want 16 to 64 characters" in capsys.readouterr().err


@pytest.mark.parametrize("again", [("approve",), ("reject", "--why", "too late")], ids=["approve", "reject"])
def test_the_second_word_is_told_who_was_faster(asked, capsys, again):
    said(capsys, "approve", asked.plan.id, "--by", "ada")
    code, out, err = said(capsys, again[0], asked.plan.id, "--by", "ben", *again[1:])
    assert (code, out) == (StateConflict.exit_code, "")
    assert code == 2
    assert "ada" in err
    assert "ben" not in said(capsys, "incidents", "timeline", asked.id)[1]


@pytest.mark.parametrize("plan", ["p-nothing-1", "", "../x", "p-\x1b[31m-1"])
def test_a_plan_that_nobody_made_is_bad_input(asked, capsys, plan):
    code, out, err = said(capsys, "approve", plan)
    assert (code, out) == (2, "")
    assert "sre-agent approve:" in err
    assert "\x1b" not in err


def test_without_a_plan_nothing_is_approved(asked, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["approve"])
    assert ended.value.code == 2
    assert "PLAN" in capsys.readouterr().err


def test_a_name_cannot_put_words_on_the_terminal(asked, capsys):
    code, out, _ = said(capsys, "approve", asked.plan.id, "--by", "ada\x1b]0;x\x07\nplan p-2 approved by root")
    assert code in {0, 2}
    assert "\x1b" not in out
    assert len(out.splitlines()) <= 1


def test_a_name_or_a_reason_cannot_move_the_cursor_of_whoever_reads_an_error(asked, capsys):
    """S13: what others typed stands in refusals too; links of our own stay as they are."""
    assert main(["reject", asked.plan.id, "--why", "no", "--by", "\x1b[2J\x1b]0;t\x07eve\u202e"]) == 0
    capsys.readouterr()
    assert main(["approve", asked.plan.id]) == 2
    told = capsys.readouterr().err
    assert "eve" in told
    assert not {"\x1b", "\x07", "\u202e"} & set(told)
    assert main(["approve", "p-\x1b[31mx"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_the_id_of_an_incident_names_its_plan_and_decides_nothing(asked, capsys, verb):
    words = [verb, asked.id, *(["--why", "no"] if verb == "reject" else [])]
    assert main(words) == 2
    told = capsys.readouterr().err
    assert f"its plan is {asked.plan.id}" in told
    assert f"sre-agent {verb} {asked.plan.id}" in told
    assert main(["incidents", "show", asked.id, "--json"]) == 0
    assert '"phase": "ASKED"' in capsys.readouterr().out
