"""What the site changes in the pages as they stand in the repository: links to files that are not pages.

A page may link to ``../deploy/ec2/policy.json``. Such a file is copied below ``files/`` of the site, so that the link
works there as it does in the repository.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = re.compile(r"\]\((?:\.\./)+(?!\.)([\w./-]+)\)")
FOLDER = "files"


def on_files(files: Any, config: Any) -> Any:
    """Add each linked file of the repository that exists and is no page."""
    for page in list(files.documentation_pages()):
        for name in OUTSIDE.findall(Path(page.abs_src_path).read_text(encoding="utf-8")):
            if (ROOT / name).is_file() and Path(config["docs_dir"]) not in (ROOT / name).parents:
                added = File.generated(config, f"{FOLDER}/{name}.txt", abs_src_path=str(ROOT / name))
                if files.get_file_from_path(added.src_uri) is None:
                    files.append(added)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point such links at the copies; a file that is not there is left, and breaks the strict build."""
    up = "../" * page.file.src_uri.count("/")
    return OUTSIDE.sub(
        lambda found: f"]({up}{FOLDER}/{found[1]}.txt)" if (ROOT / found[1]).is_file() else found[0], markdown
    )
