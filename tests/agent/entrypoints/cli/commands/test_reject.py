"""Rejecting from the command line: never without a reason, and never what is decided already."""

import pytest

from agent.entrypoints.cli.main import main


def said(capsys, *words):
    code = main(list(words))
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_plan_is_rejected_and_the_reason_is_kept(asked, capsys):
    code, out, _ = said(capsys, "reject", asked.plan.id, "--why", "not on a Friday", "--by", "ada")
    assert code == 0
    assert (
        f"plan {asked.plan.id} rejected by ada (not verified). The plan was rejected. Whether another plan is left"
        in out
    )
    assert "not on a Friday" in said(capsys, "incidents", "show", asked.id, "--json")[1]


def test_a_reason_is_needed(asked, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["reject", asked.plan.id])
    assert ended.value.code == 2
    assert "--why" in capsys.readouterr().err
    assert '"phase": "ASKED"' in said(capsys, "incidents", "show", asked.id, "--json")[1]


def test_what_was_rejected_cannot_be_approved_and_who_rejected_it_is_told(asked, capsys):
    said(capsys, "reject", asked.plan.id, "--why", "no", "--by", "ada")
    code, out, err = said(capsys, "approve", asked.plan.id, "--by", "ben")
    assert (code, out) == (2, "")
    assert "ada" in err


def test_a_plan_that_nobody_made_is_bad_input(asked, capsys):
    code, out, err = said(capsys, "reject", "p-nothing-1", "--why", "no")
    assert (code, out) == (2, "")
    assert "p-nothing-1" in err
