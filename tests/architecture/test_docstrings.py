"""A docstring names only what is there: parameters of the signature, attributes of the class."""

import ast
import builtins
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.statements import statements

ROOT = Path(__file__).resolve().parents[2]
CODE = sorted(path for folder in ("agent", "functions", "tools") for path in (ROOT / folder).rglob("*.py"))
ENTRY = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?:", re.MULTILINE)
SECTION = re.compile(r"^(Args|Attributes|Raises):\n((?:    .*\n?|\n)*)", re.MULTILINE)


def named(docstring: str, section: str) -> list[str]:
    """Return the names that a section of a docstring describes."""
    bodies = [body for title, body in SECTION.findall(docstring) if title == section]
    return [name.strip("* ") for body in bodies for group in ENTRY.findall(body) for name in group.split(",")]


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the names of all parameters."""
    args = node.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {one.arg for one in every if one is not None}


def classes(trees: Iterable[ast.Module]) -> dict[str, list[ast.ClassDef]]:
    """Return the classes by name; two of one name are taken together."""
    found: dict[str, list[ast.ClassDef]] = {}
    for tree in trees:
        for node in statements(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def members(node: ast.ClassDef, known: dict[str, list[ast.ClassDef]]) -> set[str]:
    """Return what a class has: fields, members, what its methods set on ``self``, parameters of init, and inherited."""
    bases = [one for base in node.bases for one in known.get(ast.unparse(base).split(".")[-1].split("[")[0], ())]
    found = {name for base in bases if base is not node for name in members(base, known)}
    found |= {p for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__" for p in parameters(n)}
    found |= {n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    found |= {t.id for n in node.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    found |= {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
    return found | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "self"}


def wrong(tree: ast.Module, known: dict[str, list[ast.ClassDef]]) -> list[str]:
    """Return each name that a docstring describes and its signature or class does not have."""
    found = []
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            told, there = named(ast.get_docstring(node) or "", "Args"), parameters(node)
        elif isinstance(node, ast.ClassDef):
            docstring = ast.get_docstring(node) or ""
            told = named(docstring, "Attributes") + named(docstring, "Args")
            there = members(node, known)
        else:
            continue
        found += [f"line {node.lineno}, {node.name}: {name!r}" for name in told if name not in there]
    return found


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in CODE}


def test_a_docstring_names_only_what_is_there(trees: dict[Path, ast.Module]) -> None:
    """Args: against the signature, Attributes: against the class and what it inherits."""
    known = classes(trees.values())
    found = {str(path.relative_to(ROOT)): wrong(tree, known) for path, tree in trees.items()}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_a_parameter_that_was_renamed_is_found() -> None:
    """The check itself: one name too many in a function, one in a class."""
    source = '''
class Plan:
    """A plan.

    Attributes:
        id: Its name.
        gone: Not there.
    """

    id: str

    def apply(self, order):
        """Start.

        Args:
            order: What to do.
            odrer: Not there, said
                over two lines: really.
        """
'''
    tree = ast.parse(source)
    assert wrong(tree, classes([tree])) == ["line 2, Plan: 'gone'", "line 12, apply: 'odrer'"]


def test_a_module_opens_with_one_plain_sentence(trees: dict[Path, ast.Module]) -> None:
    """Fit for a folder list: a statement on one line, begun with a capital, ended with a full stop."""
    first = {str(p.relative_to(ROOT)): (ast.get_docstring(t) or "").split("\n")[0] for p, t in trees.items()}
    assert {
        name: said for name, said in first.items() if not re.fullmatch(r"(?:sre-agent |vLLM |[A-Z`0-9])[^?]*\.", said)
    } == {}


def test_a_docstring_names_only_exceptions_that_exist(trees: dict[Path, ast.Module]) -> None:
    """Raises: a class of ours, or one that its module imports or Python has."""
    ours = classes(trees.values())
    found = []
    for path, tree in trees.items():
        nodes = list(statements(tree))
        imported = {a.asname or a.name for n in nodes if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                raised = named(ast.get_docstring(node) or "", "Raises")
                unknown = [name for name in raised if name not in {*ours, *imported, *dir(builtins)}]
                found += [f"{path.relative_to(ROOT)}, {node.name}: {name}" for name in unknown]
    assert found == []
