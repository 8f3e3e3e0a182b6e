"""The page docs/accuracy.md: first runs on unseen texts and their sources; written by this module run as a program.

The table and what the misses had in common are written by hand in ``first_runs.md`` beside it, the sources in
``read_texts.toml``.
"""

import sys
import tomllib
from pathlib import Path

FOLDER = Path(__file__).parent

SOURCES_HEAD = """## Texts of the last sets

Labels as given before the first run; `composed` are texts put together from public ones: several replicas, restarts,
scale-ins. The texts themselves are not kept here.

| read from | class | first fix | learned from it |
|---|---|---|---|"""


def render() -> str:
    """The whole page as Markdown: the first runs, and what the last sets were read from with their labels."""
    rows = tomllib.loads((FOLDER / "read_texts.toml").read_text(encoding="utf-8"))["text"]
    return "\n".join(
        [
            (FOLDER / "first_runs.md").read_text(encoding="utf-8"),
            SOURCES_HEAD,
            *(f"| {row['from']} | {row['class']} | {row['fix']} | {row.get('learned', '')} |" for row in rows),
            "",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(render())
