"""The statements of a parsed source: definitions and imports are among them, and expressions, nine tenths of it, are not."""

import ast
from collections.abc import Iterator


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield each statement below a node, with handlers and cases, wherever it is nested."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(node, part, ()):
            yield statement
            yield from statements(statement)
