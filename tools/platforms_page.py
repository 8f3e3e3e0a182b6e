"""The page docs/platforms.md, written from what the adapters are held to, by this module run as a program."""
# ruff: noqa: E501 - the page's lines are as long as those of other pages

import sys
import tomllib
from pathlib import Path
from typing import Any, Final

from tools.platform_abilities import ABILITIES, Abilities

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "platforms.md"

HEAD: Final = """# What the agent can do on each platform

Written from `tools/platform_abilities.py` by `python -m tools.platforms_page`; `--check` tells whether it is current.
`tests/contracts/test_platform.py` runs one suite over every adapter and holds what it reads, changes, stages and creates equal to this
page. Every adapter reads flags, variables and state, verifies by real completions, and puts the prior state back. What a service's own
configuration rules out (a shell line in front of the flags, an autoscaler) is refused by name.
"""

NOTES: Final = """
"Staged" means that a new revision comes up without traffic first. On a TPU VM only a suspended or failed queued resource is deleted
(`docs/tpu.md`).
"""

SYSTEMS: Final = """
## The ten systems of the published walk-throughs

These are the servers that the walk-throughs of `docs/seeds-checked.md` ran. Each row names what runs it here: an incident of `examples/` that
is replayed from its log lines to its end, and the journey that goes from the signal to a verified change over the platform's own wire. Where
the walk-through recorded no failure, or told one without its log, the journey of the same platform runs with another model or another
failure, and the row says so. "Unproved" is the live step that nobody has seen, for each of them.

| number | system | what failed there | example | journey | unproved |
|---|---|---|---|---|---|
"""


def page() -> str:
    """Return the page as Markdown."""
    return f"{HEAD}\n{_abilities()}{NOTES}{SYSTEMS}{''.join(map(_system, systems()))}"


def systems() -> list[dict[str, Any]]:
    """Return the rows of the walk-throughs' systems."""
    found: list[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "seed_systems.toml").read_text())["system"]
    return found


def _abilities() -> str:
    head = ("platform", "reads besides", "logs", "changes", "staged", "creates", "how it is undone", "tested against")
    rows = [head, ("---",) * len(head), *(_row(name, said) for name, said in ABILITIES.items())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows).replace("| --- ", "|---").replace("---|\n", "---|\n")


def _row(name: str, said: Abilities) -> tuple[str, ...]:
    staged = (said.stages_where or "yes") if said.stages else "no"
    tested = f"{said.tested}; not {said.unproved}" if said.unproved else said.tested
    return (
        f"[`{name}`]({_link(said.guide)})",
        ", ".join(sorted(said.reads)),
        said.logs,
        ", ".join(sorted(said.changes)),
        staged,
        "yes" if said.creates else "no",
        said.undo,
        tested,
    )


def _link(guide: str) -> str:
    return guide.removeprefix("docs/") if guide.startswith("docs/") else f"../{guide}"


def _system(row: dict[str, Any]) -> str:
    examples = ", ".join(f"`{name}`" for name in row["examples"]) or "none"
    tests = ", ".join(f"`{test}`" for test in row["tests"])
    journey = tests if row["same"] else f"{tests} (same platform, another failure or model)"
    cells = (row["seed"], row["system"], row["trouble"], examples, journey, ABILITIES[row["platform"]].unproved)
    return f"| {' | '.join(cells)} |\n"


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` say whether it is current.

    Returns:
        0: written, or current; 1: not current; 2: another argument was given.
    """
    if arguments not in ([], ["--check"]):
        print("platforms_page takes nothing or --check", file=sys.stderr)
        return 2
    if not arguments:
        PAGE.write_text(page())
        return 0
    if PAGE.read_text() == page():
        return 0
    print("docs/platforms.md is not current. Hint: python -m tools.platforms_page", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
