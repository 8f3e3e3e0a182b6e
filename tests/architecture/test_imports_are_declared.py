"""What is imported is declared, and what is declared is imported or says why it is there."""

import ast
import re
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from tests.statements import statements

ROOT = Path(__file__).resolve().parents[2]
CODE = sorted([*(ROOT / "agent").rglob("*.py"), *(ROOT / "functions").rglob("*.py")])
NAMESPACES = {
    "azure.core": "azure-core",
    "azure.identity": "azure-identity",
    "azure.mgmt.appcontainers": "azure-mgmt-appcontainers",
    "azure.monitor.query": "azure-monitor-query",
    "google.api_core": "google-api-core",
    "google.auth": "google-auth",
    "google.oauth2": "google-auth",
    "google.cloud.audit": "google-cloud-audit-log",
    "google.cloud.firestore": "google-cloud-firestore",
    "google.cloud.firestore_v1": "google-cloud-firestore",
    "google.cloud.logging_v2": "google-cloud-logging",
    "google.cloud.run_v2": "google-cloud-run",
    "google.cloud.tpu_v2": "google-cloud-tpu",
    "google.protobuf": "protobuf",
}
"""Many distributions share these names, so each of their parts is listed."""
NOT_IMPORTED = {
    "google-cloud-pubsub": "docs/adr/0017-publishing-without-googles-client.md",
    "tzdata": "docs/policy.md",  # zoneinfo finds it by itself where the system has no time zones
}


@cache
def brought_by() -> Mapping[str, list[str]]:
    """Distributions by the top module that they bring; it takes 0.2 s to read."""
    return packages_distributions()


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def declared() -> frozenset[str]:
    """Distributions that requirements.in and the extras name."""
    files = sorted(p for p in ROOT.glob("requirements*.in") if not p.stem.endswith(("-dev", "-audit", "-docs")))
    rows = (line.partition("#")[0].strip() for file in files for line in file.read_text().splitlines())
    return frozenset(normal(re.split(r"[\[<>=~! ;]", row)[0]) for row in rows if row)


@cache
def imported(source: str) -> set[str]:
    """Full names of all modules of others that a source imports, wherever in it."""
    found: set[str] = set()
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    ours = {"agent", "functions", "__future__"}
    return {name for name in found if name.partition(".")[0] not in ours | sys.stdlib_module_names}


def distribution(name: str) -> str:
    """Return the distribution that brings a module."""
    if name.startswith(("google.", "azure.")):
        parts = name.split(".")
        known = next((p for n in (3, 2) if (p := ".".join(parts[:n])) in NAMESPACES), None)
        assert known is not None, f"{name}: say in NAMESPACES which distribution brings it"
        return NAMESPACES[known]
    return normal(brought_by()[name.partition(".")[0]][0])


def test_what_is_imported_is_declared() -> None:
    """A package that comes along with another one may stop to come along."""
    for path in CODE:
        for name in sorted(imported(path.read_text())):
            assert distribution(name) in declared(), f"{path.relative_to(ROOT)} imports {name}"


def test_what_is_declared_is_imported_or_says_why() -> None:
    used = {distribution(name) for path in CODE for name in imported(path.read_text())}
    assert declared() - used == set(NOT_IMPORTED)
    assert all((ROOT / reason).is_file() for reason in NOT_IMPORTED.values())


def test_an_extra_is_imported_late_and_by_its_own_adapters() -> None:
    """Who does not install the extra can import everything but what speaks to that platform."""
    for path in CODE:
        top = {n for node in ast.parse(path.read_text()).body for n in _names(node)}
        late = ("kubernetes", "azure", "boto3", "botocore", "google.cloud.tpu_v2")
        assert not {name for name in top if name.startswith(late)}, f"{path}: import it late"


def test_every_extra_has_a_sentence_that_says_how_to_install_it() -> None:
    """An extra that nothing names would end in an import error; one that is named and not declared cannot be installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    text = "".join(path.read_text() for path in CODE)
    named = {*re.findall(r'extra="([a-z]+)", package=', text), *re.findall(r"install_command\('([a-z]+)'\)", text)}
    assert named == set(project["tool"]["setuptools"]["dynamic"]["optional-dependencies"])


def _names(node: ast.stmt) -> set[str]:
    return imported(ast.unparse(node)) if isinstance(node, ast.Import | ast.ImportFrom) else set()


def test_an_undeclared_import_is_found() -> None:
    """The search finds imports inside functions too."""
    assert imported("def f():\n    import yaml.nodes\n    from google.cloud import run_v2\nimport os, agent.core") == {
        "yaml.nodes",
        "google.cloud.run_v2",
    }
    assert distribution("yaml.nodes") not in declared()
