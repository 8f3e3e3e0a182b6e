"""The tests mirror the modules file by file; what is covered elsewhere stands in covered_elsewhere.toml."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("covered_elsewhere.toml")


def modules(root: Path) -> list[str]:
    """Return the modules of the agent by their path; a package's own file says what the package is and no more."""
    return sorted(str(p.relative_to(root)) for p in (root / "agent").rglob("*.py") if p.name != "__init__.py")


def mirrored(module: str) -> str:
    """Return where the test of a module stands."""
    path = Path("tests") / module
    return str(path.with_name(f"test_{path.name}"))


def findings(root: Path, covered: dict[str, str]) -> list[str]:
    """Return what is wrong with tree and table."""
    there = modules(root)
    found = [
        f"{m}: no {mirrored(m)}, and no row" for m in there if m not in covered and not (root / mirrored(m)).exists()
    ]
    for module, test in covered.items():
        if module not in there:
            found.append(f"{module}: a row for a module that is not there")
        elif (root / mirrored(module)).exists():
            found.append(f"{module}: has {mirrored(module)}, the row is left over")
        if not (root / test).is_file() or not Path(test).name.startswith("test_"):
            found.append(f"{module}: {test} is no test file")
    return found


def test_every_module_has_its_test_file_or_a_row() -> None:
    """File by file; both files of a row exist, and no row outlives its reason."""
    assert findings(ROOT, tomllib.loads(TABLE.read_text())["covered"]) == []


def test_every_mistake_is_found(tmp_path: Path) -> None:
    """The check itself, over a tree of four modules."""
    for name in ("a", "b", "c", "d"):
        (tmp_path / "agent").mkdir(exist_ok=True)
        (tmp_path / "agent" / f"{name}.py").touch()
    (tmp_path / "tests" / "agent").mkdir(parents=True)
    (tmp_path / "tests" / "agent" / "test_a.py").touch()
    rows = {
        "agent/a.py": "tests/agent/test_a.py",
        "agent/c.py": "tests/gone/test_c.py",
        "agent/e.py": "tests/agent/test_a.py",
    }
    assert findings(tmp_path, rows | {"agent/d.py": "tests/agent/test_a.py"}) == [
        "agent/b.py: no tests/agent/test_b.py, and no row",
        "agent/a.py: has tests/agent/test_a.py, the row is left over",
        "agent/c.py: tests/gone/test_c.py is no test file",
        "agent/e.py: a row for a module that is not there",
    ]


def test_a_test_stands_where_its_module_stands() -> None:
    """No folder below tests/agent is without its folder below agent."""
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests" / "agent").rglob("test_*.py")}
    assert [str(folder) for folder in sorted(folders) if not (ROOT / folder).is_dir()] == []
