"""Prints what the package and each of its extras weigh once installed, and what importing them costs, as one table.

Run: python -m tools.package_weight [--rounds 5]

It reads the environment that `make install` makes from the pinned requirements: the files that each distribution
recorded, compiled ones included. An extra is charged with the distributions that the base does not bring. An import is
processor time in a process of its own, the median of the rounds; that of an extra comes on top of the service. To see
where an import's time goes: python -X importtime -c 'import agent.entrypoints.cli.main'.
"""

import argparse
import compileall
import marshal
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from tools.function_table import archive_bytes

ROOT = Path(__file__).resolve().parents[1]
APPLICATION = ("agent", "prompts", "examples")  # as setup.py has it
COMMAND = ("agent.entrypoints.cli.main",)
SERVICE = ("agent.app", "agent.entrypoints.service", "agent.entrypoints.console.app")
EXTRAS = {
    "aws": ("boto3",),
    "azure": ("azure.identity", "azure.mgmt.appcontainers", "azure.monitor.query"),
    "kubernetes": ("kubernetes.client", "kubernetes.config"),
    "mcp": ("mcp.server.mcpserver",),
    "notify": ("apprise",),
    "otel": ("opentelemetry.sdk.trace.export", "opentelemetry.exporter.otlp.proto.http.trace_exporter"),
    "tpu": ("google.cloud.tpu_v2",),
}
"""What each extra's part of the agent imports, when a service of that kind is configured."""

START = """
import importlib, sys, time
before, timed = (part.split(",") for part in sys.argv[1:])
for name in filter(None, before):
    importlib.import_module(name)
began = time.process_time()
for name in timed:
    importlib.import_module(name)
print(time.process_time() - began)
"""


class NotInstalled(Exception):
    """A pinned distribution is not in this environment."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One part of an installation.

    Attributes:
        part: Its name.
        packages: Distributions that it brings.
        size: Bytes on disk.
        cpu_s: Processor time of its import.
    """

    part: str
    packages: int
    size: int
    cpu_s: float


def pinned(extra: str = "") -> frozenset[str]:
    """Return the names of the distributions that a file of pinned requirements names.

    Args:
        extra: One of the extras; the base when empty.
    """
    path = ROOT / (f"requirements-{extra}.txt" if extra else "requirements.txt")
    found = re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==", path.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset(re.sub(r"[-_.]+", "-", name).lower() for name in found)


def installed_bytes(names: Iterable[str]) -> int:
    """Return the size of the files that distributions recorded when they were installed here, and of their bytecode.

    pip writes the bytecode unless it is told not to, as `make install` does.

    Raises:
        NotInstalled: One is not.
    """
    size = 0
    for name in names:
        try:
            files = distribution(name).files
        except PackageNotFoundError as error:
            raise NotInstalled(f"{name} is not installed here. Run: make install") from error
        held = [Path(str(file.locate())) for file in files or () if file.suffix != ".pyc"]
        size += sum(path.stat().st_size + _bytecode_bytes(path) for path in held if path.is_file())
    return size


def _bytecode_bytes(path: Path) -> int:
    """Return the size of the bytecode of a file; 0 where it is no Python, or that of another version."""
    if path.suffix != ".py":
        return 0
    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return 0
    return len(marshal.dumps(code)) + 16  # the head of a .pyc file


def own_bytes(folder: Path) -> tuple[int, int]:
    """Return the size of the wheel and of what pip makes of it.

    Args:
        folder: An empty one.
    """
    for name in APPLICATION:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    wheel = archive_bytes(folder)
    compileall.compile_dir(folder, quiet=1)
    return wheel, sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def import_s(timed: Sequence[str], *, after: Sequence[str] = (), rounds: int = 5) -> float:
    """Return the processor time of importing modules.

    Args:
        timed: The modules.
        after: What is imported before, and not counted.
        rounds: Processes; a first one fills the caches and is left out.

    Raises:
        subprocess.CalledProcessError: One cannot be imported.
    """
    command = [sys.executable, "-c", START, ",".join(after), ",".join(timed)]
    run = [
        float(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
        for _ in range(rounds + 1)
    ]
    return statistics.median(run[1:])


def rows(*, rounds: int = 5) -> list[Row]:
    """Measure the package, what it needs, and each extra."""
    with tempfile.TemporaryDirectory(prefix="package-weight-") as name:
        wheel, own = own_bytes(Path(name))
    base = pinned()
    measured = [
        Row(
            part=f"the agent itself (a wheel of {wheel / 1e6:.1f} MB)",
            packages=1,
            size=own,
            cpu_s=import_s(COMMAND, rounds=rounds),
        ),
        Row(
            part="what it always needs",
            packages=len(base),
            size=installed_bytes(base),
            cpu_s=import_s(SERVICE, after=COMMAND, rounds=rounds),
        ),
    ]
    for extra, modules in EXTRAS.items():
        own_names = pinned(extra) - base
        cpu_s = import_s(modules, after=SERVICE, rounds=rounds)
        measured.append(
            Row(part=f"extra `{extra}`", packages=len(own_names), size=installed_bytes(own_names), cpu_s=cpu_s)
        )
    return measured


def table(measured: Sequence[Row]) -> str:
    """Return the rows as Markdown."""
    head = ["| part | packages | installed | import, processor time |", "|---|---|---|---|"]
    lines = [f"| {row.part} | {row.packages} | {row.size / 1e6:.1f} MB | {row.cpu_s:.2f} s |" for row in measured]
    return "\n".join([*head, *lines])


def main() -> int:
    """Print the table.

    Returns:
        0; 2 where a pinned distribution is not installed.
    """
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--rounds", type=int, default=5)
    args = reader.parse_args()
    try:
        print(table(rows(rounds=args.rounds)))
    except NotInstalled as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
