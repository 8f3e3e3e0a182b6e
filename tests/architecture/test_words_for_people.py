"""What people read keeps the trade's words: the phrases that GLOSSARY replaced cannot come back."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = (
    "agent/presentation",
    "agent/entrypoints/console",
    "agent/entrypoints/cli",
    "agent/adapters/notifier",
    "agent/core/planning",
    "agent/catalogue",
    "infra",
    "docs",
)
SUFFIXES = {".py", ".html", ".css", ".toml", ".md", ".tf", ".json"}
REPLACED = (
    "Waits for you",
    "Yours now",
    "You have it",
    "The line that decides",
    "What was heard",
    "Why we think so",
    "Who says so",
    "the first word is deterministic",
    "when she is awake",
    "a stand-in for Cloud Run that comes up or fails",
    "waits divided by",
    "reads itself anew",
    "Hold it still",
    "The agent is deaf",
    "Messages that were given up",
    "## Take it away",
    "look before the night",
    "Who is distrusted",
    "is met by",
    "let changes go on",
    "(take it away)",
    "a negative answer",
    "the arithmetic says that it fits",
    "nothing real was asked",
)
NO_WORD = re.compile(r"\bno word \S+ is known")


REPLACED_NAMES = frozenset(
    [
        "Outfit",
        "Installation",
        "Parts",
        "Desk",
        "Shelves",
        "Place",
        "World",
        "Knowledge",
        "Did",
        "Proofs",
        "Unproven",
        "Gate",
        "Seal",
        "Office",
        "LocalOffice",
        "CloudOffice",
        "Heard",
        "Fits",
        "FitWord",
        "Joined",
        "Explaining",
        "Bell",
        "Arrival",
        "Book",
        "Hand",
        "Watchman",
        "NotTold",
        "BeingTold",
        "Unheard",
        "Nowhere",
        "NotTaken",
        "told",
        "by_policy",
        "at_the_brink",
        "told_config",
        "changed_since",
        "on_this_machine",
        "meant",
        "enrol",
        "given",
    ]
)
"""Classes and functions that GLOSSARY renamed."""


def people_read() -> list[Path]:
    files = [file for place in PLACES for file in (ROOT / place).rglob("*") if file.suffix in SUFFIXES]
    return [ROOT / "README.md", ROOT / "deploy.sh", *files]


@pytest.mark.parametrize("phrase", REPLACED)
def test_a_replaced_phrase_does_not_come_back(phrase):
    """Also over a line's end, and however it begins."""
    spread = re.compile(r"\s+".join(map(re.escape, phrase.split())), re.IGNORECASE)
    found = [str(file.relative_to(ROOT)) for file in people_read() if spread.search(file.read_text(encoding="utf-8"))]
    assert not found


def test_a_replaced_name_does_not_come_back():
    """No class or function of the agent has one."""
    named = {
        node.name
        for file in (ROOT / "agent").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }
    assert not named & REPLACED_NAMES
    assert {"App", "build_app"} <= named


def test_an_unknown_argument_is_called_so():
    assert not [file for file in people_read() if NO_WORD.search(file.read_text(encoding="utf-8"))]


def test_no_style_changes_the_letters_of_a_text():
    """A flag or a name that is shown in capitals cannot be copied: ``--Max-model-len``."""
    styles = [file for file in people_read() if file.suffix in {".css", ".html", ".py"}]
    assert not [str(file) for file in styles if "text-transform" in file.read_text(encoding="utf-8")]
    assert [file for file in styles if file.suffix == ".css"]
