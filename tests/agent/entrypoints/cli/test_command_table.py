"""Every command shows examples that its parser takes, and a mistake names what is near to it."""

import re
import shlex

import pytest

from agent.entrypoints.cli.command_table import COMMANDS, parser_of, verbs_of
from agent.entrypoints.cli.main import main


def examples_of(name):
    shown = parser_of(name).format_help()
    return [line.strip() for line in shown.splitlines() if re.match(rf" +.*\bsre-agent {name}\b", line)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_of_a_command_parses(name):
    lines = examples_of(name)
    assert lines
    for line in lines:
        command = re.split(r" {3,}", line)[0]  # what stands behind it says what it does
        words = shlex.split(re.sub(r'^eval "\$\((.*)\)"$', r"\1", command), comments=True)
        words = words[words.index("sre-agent") :]
        cut = next((n for n, word in enumerate(words) if word in {">", "|"}), len(words))
        parser_of(name).parse_args(words[2:cut])


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (["incident"], "did you mean incidents?"),
        (["aprove", "p-1"], "did you mean approve?"),
        (["incidents", "--folow"], "did you mean --follow?"),
        (["incidents", "shwo"], "did you mean show?"),
        (["classify", "--jsno", "x"], "did you mean --json?"),
    ],
    ids=" ".join,
)
def test_a_word_that_is_nearly_right_is_named(capsys, words, near):
    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert near in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["reject", "p-1"],
            (
                "sre-agent reject: nothing was done: --why is missing. "
                'Hint: for example: sre-agent reject p-4d24780e817e-1 --why "not before the release"'
            ),
        ),
        (
            ["reject"],
            (
                "sre-agent reject: nothing was done: PLAN and --why are missing. "
                'Hint: for example: sre-agent reject p-4d24780e817e-1 --why "not before the release"'
            ),
        ),
        (
            ["models", "add"],
            (
                "sre-agent models add: nothing was done: source is missing. "
                "Hint: for example: sre-agent models add ./checkpoint"
            ),
        ),
        (
            ["up", "--port", "a\x1b[31mb"],
            (
                "sre-agent up: nothing was done: --port is 'a\\x1b[31mb', want a whole number. "
                "Hint: see: sre-agent up --help"
            ),
        ),
        (
            ["incidents", "report", "inc-1", "--format", "pdf"],
            (
                "sre-agent incidents: nothing was done: --format: 'pdf' is none of md, json, html. "
                "Hint: see: sre-agent incidents --help"
            ),
        ),
        (
            ["incidents", "--folow"],
            "sre-agent incidents: nothing was done: unknown argument: --folow. Hint: did you mean --follow?",
        ),
        (
            ["fit", "--model", "m", "--accelerator", "nvidia-l4", "--max-num-seqs", "8"],
            (
                "sre-agent fit: nothing was done: unknown argument: --max-num-seqs 8. "
                "Hint: vLLM's own flags are one string: --flags '--max-num-seqs 8'"
            ),
        ),
        (
            ["fit", "google/gemma-3-27b-it"],
            (
                "sre-agent fit: nothing was done: unknown argument: google/gemma-3-27b-it. Hint: for example: "
                'sre-agent fit --model google/gemma-3-27b-it --accelerator nvidia-l4 --flags "--max-model-len 8192"'
            ),
        ),
        (["incident"], "sre-agent: nothing was done: unknown command: incident. Hint: did you mean incidents?"),
        (
            ["up", "--port"],
            "sre-agent up: nothing was done: --port: expected one argument. Hint: see: sre-agent up --help",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_in_the_arguments_is_one_sentence_with_a_hint(capsys, words, says):
    """In the form of every other error: what failed, why, and what to do."""
    try:
        code = main(words)
    except SystemExit as ended:
        code = ended.code
    assert (code, capsys.readouterr().err) == (2, f"{says}\n")


def test_what_is_near_to_nothing_gets_the_list(capsys):
    assert main(["\x1b[31mxyzzy"]) == 2
    told = capsys.readouterr().err
    assert "incidents" in told
    assert "\x1b" not in told


@pytest.mark.parametrize("words", [["help"], ["--help"], ["-h"]], ids=" ".join)
def test_help_lists_every_command(capsys, words):
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert all(f"\n  {name} " in shown for name in COMMANDS)


def test_help_of_a_command_is_its_own(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["help", "approve"])
    assert ended.value.code == 0
    assert "sre-agent approve p-" in capsys.readouterr().out


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_is_printed(capsys, flag):
    assert main([flag]) == 0
    assert re.fullmatch(r"sre-agent \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


VERBS = [(name, verb) for name in COMMANDS for verb in verbs_of(parser_of(name))]


@pytest.mark.parametrize(("name", "verb"), VERBS, ids=map(" ".join, VERBS))
def test_the_help_of_a_verb_has_an_example_of_that_verb(name, verb, capsys):
    with pytest.raises(SystemExit) as ended:
        main([name, verb, "--help"])
    assert ended.value.code == 0
    assert f"  sre-agent {name} {verb}" in capsys.readouterr().out


@pytest.mark.parametrize("words", [
    ["comment", "inc-1", "--by", "ana", "the", "quota"], ["comment", "inc-1", "the", "quota", "--by", "ana"],
    ["comment", "--by", "ana", "inc-1", "the", "quota"], ["--by", "ana", "comment", "inc-1", "the", "quota"],
], ids=" ".join)  # fmt: skip
def test_an_option_may_stand_anywhere_among_the_words_of_an_incident(words):
    args = parser_of("incidents").parse_args(words)
    assert (args.what, args.id, args.words, args.by) == ("comment", "inc-1", ["the", "quota"], "ana")


def test_the_words_of_an_incident_keep_their_defaults_and_their_refusals(capsys):
    args = parser_of("incidents").parse_args([])
    assert (args.what, args.id, args.words) == ("list", None, [])
    for words in (["bogus"], ["list", "--folow"]):
        with pytest.raises(SystemExit):
            parser_of("incidents").parse_args(words)
    assert "did you mean --follow?" in capsys.readouterr().err
