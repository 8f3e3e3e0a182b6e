"""The list of names that count as used holds none that is used anyway: it would hide that the name's last use went."""

import ast
import tomllib
from pathlib import Path

import pytest
from vulture import Vulture

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = "vulture_allowed.py"


def allowed() -> set[str]:
    """Return the names of the list: those of attributes, and those that stand alone."""
    nodes = list(ast.walk(ast.parse((ROOT / ALLOWED).read_text())))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    lines = {node.value.id for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Name)}
    return attributes | lines


@pytest.mark.slow
def test_no_allowed_name_is_used_anyway() -> None:
    """Without the list vulture reports every one of them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["vulture"]
    search = Vulture(ignore_decorators=settings["ignore_decorators"])
    search.scavenge([str(ROOT / path) for path in settings["paths"] if path != ALLOWED])
    reported = {item.name for item in search.get_unused_code(min_confidence=settings["min_confidence"])}
    assert allowed() - reported == set()
