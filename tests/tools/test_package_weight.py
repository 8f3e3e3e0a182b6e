"""The table of what is installed: every extra stands in it, is charged once, and its import is really timed."""

import re
import tomllib
from pathlib import Path

import pytest
import structlog

from tools.package_weight import EXTRAS, ROOT, NotInstalled, Row, import_s, installed_bytes, own_bytes, pinned, table

PAGE = (ROOT / "docs" / "before-you-install.md").read_text()


def test_every_extra_is_weighed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(EXTRAS) == set(project["tool"]["setuptools"]["dynamic"]["optional-dependencies"])


def test_an_extra_is_charged_with_what_the_base_does_not_bring():
    """Of a name in both files the base pays; what stands twice would be counted twice."""
    assert {"google-cloud-firestore", "pydantic", "pyjwt"} <= pinned()
    assert "kubernetes" in pinned("kubernetes") - pinned()
    assert pinned("kubernetes") & pinned()


def test_the_weight_is_that_of_the_files():
    """A distribution weighs what it left on the disk; one that is not there is refused with what to do."""
    own = sum(path.stat().st_size for path in Path(structlog.__file__).parent.rglob("*.py"))
    assert own < installed_bytes(["structlog"]) < 10 * own
    with pytest.raises(NotInstalled, match=r"nothing-of-that-name is not installed here\. Run: make install"):
        installed_bytes(["nothing-of-that-name"])


def test_the_wheel_is_smaller_than_what_is_installed(tmp_path, monkeypatch):
    """The application without its caches; pip compiles it."""
    monkeypatch.setattr("tools.package_weight.APPLICATION", ("prompts", "agent/fit"))
    (tmp_path / "agent").mkdir()
    wheel, own = own_bytes(tmp_path)
    assert 0 < wheel < own
    assert [*tmp_path.rglob("*.pyc")]


def test_an_import_is_timed_without_what_came_before():
    """What was imported before costs nothing more."""
    assert import_s(["json.tool"], after=["json.tool"], rounds=1) < import_s(["decimal", "http.client"], rounds=1)


def test_the_page_has_a_row_for_each_part():
    """docs/before-you-install.md holds the table as the command prints it, and names the command."""
    made = table([Row(part=f"extra `{name}`", packages=1, size=1_500_000, cpu_s=0.126) for name in EXTRAS])
    assert made.splitlines()[2] == "| extra `aws` | 1 | 1.5 MB | 0.13 s |"
    head = made.splitlines()[0]
    assert head in PAGE
    shown = re.findall(r"^\| (.+?) \| \d+ \| [\d.]+ MB \| \d\.\d\d s \|$", PAGE, re.MULTILINE)
    assert shown[2:] == [f"extra `{name}`" for name in EXTRAS]
    assert "`python -m tools.package_weight`" in PAGE
