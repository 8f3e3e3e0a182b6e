"""The documentation site is built strictly: each page has its place, and no link is broken."""

import os
import subprocess
from pathlib import Path

from tests.outside import absent
from tools.adr_index import INDEX, page

ROOT = Path(__file__).resolve().parents[1]
MKDOCS = ROOT / ".venv-docs" / "bin" / "mkdocs"


def test_the_list_of_decisions_is_current():
    assert INDEX.read_text() == page(), "run: python -m tools.adr_index"


def build(config, out):
    return subprocess.run(
        [MKDOCS, "build", "--quiet", "--site-dir", str(out), "--config-file", str(config)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_site_builds_without_a_warning_and_links_to_files_of_the_repository(tmp_path):
    """Strict; links to files that are no pages lead to copies, and nothing is loaded from elsewhere."""
    if not MKDOCS.exists():
        absent("mkdocs in .venv-docs: make site")
    done = build(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stderr
    home = (tmp_path / "site" / "index.html").read_text()
    assert "tutorial.html" in home
    assert not [part for part in home.split('"') if part.startswith(("https://fonts", "https://cdn", "https://unpkg"))]
    assert (tmp_path / "site" / "files" / "deploy" / "ec2" / "policy.json.txt").is_file()
