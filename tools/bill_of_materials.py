"""Writes what is deployed: the bill of materials in CycloneDX form, and the licence that each package names.

    python tools/bill_of_materials.py --tools .venv-audit/bin

Both are made from requirements.txt and the locked extras: the bill by cyclonedx-py, the licences by pip-licenses over
an environment that has nothing else. The same requirements give the same files.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCKED = {
    name: ROOT / f"requirements{'-' if name else ''}{name}.txt"
    for name in ("", "kubernetes", "mcp", "azure", "tpu", "aws", "notify", "otel")
}
"""What is installed by extra; the first is what every installation has."""

BILL = ROOT / "docs" / "sbom.cdx.json"
LICENCES = ROOT / "docs" / "licences.md"
HEAD = """# Licences of what is deployed

The packages of `requirements.txt` and of the extras `kubernetes`, `mcp`, `azure`, `tpu`, `aws`, `notify` and `otel`
as installed with Python {python}, each with the licence that it names. Of a package that two extras want in two
versions, the first counts. Written by `make sbom`; `docs/sbom.cdx.json` is the same list as a bill of materials.

| package | version | licence |
|---|---|---|
"""


Argument = str | Path


def write_bill(tools: Path) -> None:
    """Write docs/sbom.cdx.json; what only an extra brings is marked with it."""
    made = _bill(tools, "")
    known = {component["name"] for component in made["components"]}
    for extra in filter(None, LOCKED):
        more = _bill(tools, extra)
        added = [component for component in more["components"] if component["name"] not in known]
        refs = {component["bom-ref"] for component in added}
        known |= {component["name"] for component in added}
        made["components"] += added
        made["dependencies"] += [row for row in more["dependencies"] if row["ref"] in refs]
    for component in made["components"]:
        component.pop("externalReferences", None)  # addresses of a package index, the same for every package
        component.pop("description", None)
    for tool in made["metadata"]["tools"]["components"]:
        tool.pop("externalReferences", None)
    BILL.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _bill(tools: Path, extra: str) -> Any:
    """Return what cyclonedx-py makes of one locked file, its references told apart from those of the others."""
    command: list[Argument] = [
        tools / "cyclonedx-py",
        "requirements",
        LOCKED[extra],
        "--output-reproducible",
        "--of",
        "JSON",
    ]
    made = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for component in made["components"] if extra else ():
        component["bom-ref"] = f"{extra}-{component['bom-ref']}"
        component["properties"] = [{"name": "sre-agent:extra", "value": extra}]
    for row in made["dependencies"] if extra else ():
        row["ref"] = f"{extra}-{row['ref']}"
    return made


def write_licences(tools: Path) -> None:
    """Write docs/licences.md."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder) / "bin" / "python"
        install: list[Argument] = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--require-hashes",
            "-r",
        ]
        for path in reversed(LOCKED.values()):  # one after the other: two extras may want a package in two versions
            subprocess.run([*install, path], check=True)
        command: list[Argument] = [tools / "pip-licenses", "--python", python, "--format=json", "--from=mixed"]
        rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    lines = [f"| {row['Name'].lower()} | {row['Version']} | {_short(row['License'])} |" for row in rows]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    LICENCES.write_text(HEAD.format(python=version) + "\n".join(sorted(lines)) + "\n", encoding="utf-8")


def _short(licence: str) -> str:
    return licence.splitlines()[0].replace("|", "/")[:120]


def main() -> int:
    """Write both."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--tools", type=Path, required=True, help="the folder of cyclonedx-py and pip-licenses")
    tools = arguments.parse_args().tools.resolve()
    write_bill(tools)
    write_licences(tools)
    return 0


if __name__ == "__main__":
    sys.exit(main())
