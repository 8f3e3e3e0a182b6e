"""The shape of the tree, as the house style asks for it."""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

from tests.statements import statements

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


def faults(text: str) -> Iterator[str]:
    """Say what is wrong with the shape of a module."""
    tree = ast.parse(text)
    if (size := text.count("\n")) > 400:
        yield f"{size} lines: split it by noun"
    if not (ast.get_docstring(tree) or "").split("\n")[0].endswith((".", "?", ":")):
        yield "the module's first line says what it is"
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            if lines > 40:
                yield f"line {node.lineno}: {node.name} has {lines} lines"


def test_a_module_is_small_named_for_a_noun_and_says_what_it_is() -> None:
    """At most 400 lines, 40 of a function below its docstring, a name that is a noun of the trade, a first sentence."""
    found = [f"{path.relative_to(ROOT)}: {fault}" for path in CODE for fault in faults(path.read_text())]
    found += [f"{path.relative_to(ROOT)}: is no noun" for path in CODE if path.stem in NO_NOUNS]
    assert found == []


def test_a_module_out_of_shape_is_found() -> None:
    """The check itself: a function of one line too many, no first sentence, a line too many."""
    long = "def fits():\n" + "    pass\n" * 40 + "def does_not():\n" + '    """One."""\n' + "    pass\n" * 41
    assert list(faults(long)) == ["the module's first line says what it is", "line 42: does_not has 41 lines"]
    assert list(faults('"""A module."""' + "\n" * 401)) == ["401 lines: split it by noun"]


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
    skip = {"corpora", "__pycache__", "state", "build"}
    files = []
    for folder, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in skip and (name == ".ci" or not name.startswith("."))]
        files += [Path(folder, name) for name in names if not name.startswith(".")]
    for path in sorted(files):
        if not path.is_file() or path.suffix in {".sqlite", ".pyc"} or path == Path(__file__):
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found = words.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found.group()!r}"
