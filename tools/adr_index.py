"""Writes docs/adr/index.md, the list of decisions; a test holds it equal to the files.

Run: python -m tools.adr_index
"""

import re
from pathlib import Path

ADR = Path(__file__).resolve().parents[1] / "docs" / "adr"
INDEX = ADR / "index.md"
TITLE = re.compile(r"\A# 0*(\d+)[.:]? (.+)")
HEAD = """# Decisions

What somebody would ask about, with what was decided and why. Written by `python -m tools.adr_index`.

"""


def page() -> str:
    """Return the list: number and title of each decision, in order."""
    rows = []
    for path in sorted(ADR.glob("[0-9]*.md")):
        (first,) = TITLE.findall(path.read_text(encoding="utf-8"))
        number, title = first
        rows.append(f"- [{number}: {title}]({path.name})")
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    INDEX.write_text(page(), encoding="utf-8")
