"""The shape of the tree, as the house style asks for it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = sorted(p for p in (ROOT / "agent").rglob("*.py"))
NO_NOUNS = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc"}
PIPELINE = ["signal", "incident", "diagnosis", "plan", "decision", "execution", "verification", "outcome", "plan"]


def test_stage_names_chain_into_the_pipeline() -> None:
    """Listing agent/stages spells signal_to_incident ... outcome_to_plan, without a gap."""
    edges = dict(p.stem.split("_to_") for p in (ROOT / "agent" / "stages").glob("*_to_*.py"))
    walked = ["signal"]
    while walked[-1] in edges and len(walked) < len(PIPELINE):
        walked.append(edges[walked[-1]])
    assert walked == PIPELINE
    assert len(edges) == len(PIPELINE) - 1


@pytest.mark.parametrize("path", CODE, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_is_small_named_for_a_noun_and_says_what_it_is(path: Path) -> None:
    """At most 400 lines, a name that is a noun of the trade, and a first sentence."""
    text = path.read_text()
    assert text.count("\n") <= 400, f"{path}: split it by noun"
    assert path.stem not in NO_NOUNS
    first = (ast.get_docstring(ast.parse(text)) or "").split("\n")[0]
    assert first.endswith((".", "?", ":")), f"{path}: the module's first line says what it is"


@pytest.mark.parametrize("path", CODE, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_function_fits_on_a_screen(path: Path) -> None:
    """No function has more than 40 lines below its docstring."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert lines <= 40, f"{path}:{node.lineno} {node.name} has {lines} lines"


def test_a_deployed_function_is_at_most_twenty_lines() -> None:
    """Each file of functions/ decodes, advances and answers, and nothing else."""
    for path in sorted((ROOT / "functions").rglob("*.py")):
        code = [line for line in path.read_text().splitlines() if line.strip()]
        assert len(code) <= 20, f"{path} has {len(code)} lines"


def test_only_the_composition_root_names_adapters() -> None:
    """No stage, port or entry point imports an adapter; the root and its command modules choose them."""
    for path in CODE:
        name = str(path.relative_to(ROOT))
        if name.startswith(("agent/adapters/", "agent/app/")):
            continue
        imports = re.findall(r"^\s*(?:from|import) (agent\.adapters[\w.]*)", path.read_text(), re.MULTILINE)
        assert not imports, f"{name} names {imports}"


def test_the_project_speaks_of_itself_alone() -> None:
    """No path of a machine and no name of a package registry stands in the project."""
    words = re.compile(r"/work/(?:main|shared)|/root/\.pyenv|/tmp/lead|pypi\.org|registry\.npmjs|deb\.debian")
    skip = {".git", ".venv", "corpora", "__pycache__", "state", "build"}
    for path in sorted(ROOT.rglob("*")):
        if not path.is_file() or skip & set(path.relative_to(ROOT).parts) or path.suffix in {".sqlite", ".pyc"}:
            continue
        if path == Path(__file__) or any(
            part.startswith(".") and part != ".ci" for part in path.parts[len(ROOT.parts) :]
        ):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found = words.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found.group()!r}"
