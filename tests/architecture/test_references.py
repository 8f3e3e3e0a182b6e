"""Sources and promises that the code, the tests and the guides cite by number can be looked up in docs/."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
READ = ("*.py", "*.md", "*.toml", "*.tf", "*.sh", "Makefile")
FACT = re.compile(r"\bfacts(?:\.md)? (\d(?:\.\d)?(?:(?:, | and | to )\d(?:\.\d)?)*)\b")
PROMISE = re.compile(r"(?<![\w.\"'])([RSTP]\d{1,2})(?=: |, [RSTP]\d|\)| and [RSTP]\d)")


def texts():
    """Return every tracked text of the project by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *READ], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {
        name: (ROOT / name).read_text(encoding="utf-8")
        for name in listed.stdout.splitlines()
        if (ROOT / name).is_file()
    }


@pytest.fixture(scope="module")
def found():
    return texts()


def test_every_fact_that_is_cited_has_its_section(found):
    """Each "facts N.N" names a heading of docs/facts.md."""
    headings = set(re.findall(r"^#{2,3} (\d(?:\.\d)?)\.? ", found["docs/facts.md"], re.MULTILINE))
    cited = {
        (number, name)
        for name, text in found.items()
        for group in FACT.findall(text)
        for number in re.findall(r"\d(?:\.\d)?", group)
    }
    assert len(cited) > 10
    assert sorted((number, name) for number, name in cited if number not in headings) == []


def test_every_promise_that_a_test_or_benchmark_cites_is_on_the_page(found):
    """A docstring that begins with the code of a promise names one of docs/promises.md."""
    listed = set(re.findall(r"^\| ([RSTP]\d{1,2}) \|", found["docs/promises.md"], re.MULTILINE))
    cited = {
        (code, name)
        for name, text in found.items()
        if name.startswith(("tests/", "benchmarks/")) and name.endswith(".py")
        for code in PROMISE.findall(text.split('"""')[1] if '"""' in text else "")
    }
    assert len(cited) > 20
    assert sorted((code, name) for code, name in cited if code not in listed) == []


def test_every_test_that_holds_a_promise_is_there(found):
    """The page names files that exist."""
    named = re.findall(r"`((?:tests|benchmarks)/[\w/.]+)`", found["docs/promises.md"])
    assert len(named) > 40
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_no_text_leads_out_of_the_repository_for_its_source(found):
    """A source is never a file that stands beside the repository; data of others is read there by tests alone."""
    leading = [
        name for name, text in found.items() if re.search(r"\.\./shared/(?:facts|[A-Z]+\.md)|\bfacts/\w+\.md", text)
    ]
    assert [name for name in leading if name != "tests/architecture/test_references.py"] == []


def test_every_threat_has_a_mitigation_and_a_test_that_is_there(found):
    """docs/security.md: four cells in each row, and the tests that it names exist."""
    table = found["docs/security.md"].partition("## Threats\n")[2].partition("\n## ")[0]
    threats = [row for row in table.splitlines() if row.startswith("| ")][1:]
    assert len(threats) >= 15
    for row in threats:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4
        assert all(cells), row
        named = re.findall(r"`(tests/[\w/.]+)`", cells[3])
        assert named, row
        assert [name for name in named if name not in found] == []


def test_every_test_that_the_security_page_names_is_there(found):
    """Below the threats too, where only the file's own name is given."""
    named = set(re.findall(r"`(?:[\w/]+/)?(test_\w+\.py)`", found["docs/security.md"]))
    assert len(named) > 20
    assert named <= {Path(name).name for name in found}


def test_the_paths_that_a_stranger_looks_for_are_there(found):
    """CONTRIBUTING.md: every row of the table names a function of a file, and other files that it names exist."""
    page = found["CONTRIBUTING.md"]
    rows = re.findall(r"^\|[^|]*\| `([\w/]+\.py)` \| `(\w+)` \|$", page, re.MULTILINE)
    questions = re.findall(r"^\| ([A-Z][^|]*\?) \|", page, re.MULTILINE)
    assert len(questions) == 4
    assert len(rows) == page.count(".py` | `")
    for name, function in rows:
        defined = {n.name for n in ast.walk(ast.parse(found[name])) if isinstance(n, ast.FunctionDef)}
        assert function in defined, f"{name} has no {function}"
    named = re.findall(r"`((?:agent|docs|tests|functions)/[\w/]+\.(?:py|md|toml))`", page)
    assert [
        name
        for name in named
        if not (ROOT / name).is_file() and name != "tests/agent/a/test_b.py" and name != "agent/a/b.py"
    ] == []


def test_the_hook_is_make_check(found):
    """What the pre-commit hook runs is what people and CI run."""
    hook = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert [h["entry"] for r in hook["repos"] for h in r["hooks"]] == ["make check"]
    assert re.search(r"^test:.*\n(?:\t.*\n)*\t.*\$\(MAKE\) -s check ", found["Makefile"], re.MULTILINE)
