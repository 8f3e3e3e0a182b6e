"""What a whole run leaves to ``CI=true``: most tests of what starts services of its own, most cases of long tables.

Without ``CI=true`` it has the journeys of each rig, and of a test with more than four cases every fifth, with twenty and
more every tenth. Whoever names a file, a folder, a word or a mark of tests, or those that failed, has all that it names.
``make quick`` takes the same samples (``--sample``).
"""

import os
import zlib
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.counts import CI, SOAK

RIGS = {
    "kube": "a Kubernetes control plane",
    "emulator": "Google's emulators",
    "browser": "a browser",
    "prometheus": "Prometheus and Alertmanager",
    "ec2": "an EC2 instance whose scripts really run",
    "watched": "servers that are watched as processes",
    "guide": "commands of a guide",
    "built": "packages, images and archives that are built or installed",
    "azure": "a played Azure Resource Manager",
    "tpu": "a played TPU API",
    "mcp": "a session with the MCP server",
    "deploy": "deploy.sh",
}
CASES = "cases"
ONE_IN = ((20, 10), (5, 5))  # of a test with so many cases and more, one in so many runs
FAILED = ("lf", "failedfirst")  # --lf, --ff
NAMING = ("keyword", "markexpr", *FAILED)  # -k, -m
EVERYTHING = CI or SOAK or bool(os.environ.get("REQUIRE_ALL"))


def rig_of(item: pytest.Item) -> str | None:
    """Return the rig of a test, by its marks."""
    return next((name for name in RIGS if item.get_closest_marker(name)), None)


def takes_journeys_alone(config: pytest.Config) -> bool:
    """Whether this run leaves the rest of the rigs out; a worker is told by the process that started it."""
    told = getattr(config, "workerinput", None)
    if told is not None:
        return bool(told["journeys_alone"])
    named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    return not (EVERYTHING or named or any(config.getoption(option, default=None) for option in NAMING))


def takes_samples(config: pytest.Config) -> bool:
    """Whether a run of named tests asks for ``--sample``; those that failed run again whatever it asks."""
    return bool(config.getoption("sample")) and not (EVERYTHING or any(config.getoption(name) for name in FAILED))


def split(items: Iterable[pytest.Item]) -> tuple[list[pytest.Item], Counter[str]]:
    """Return what runs, and how much of each rig and of long tables is left to ``CI=true``.

    A rig without any journey is a mistake.
    """
    run, left = [], Counter[str]()
    for item in items:
        rig = rig_of(item)
        if rig is None or item.get_closest_marker("journey"):
            run.append(item)
        else:
            left[rig] += 1
    if bare := set(left) - {rig_of(item) for item in run}:
        raise pytest.UsageError(f"no test is marked as a journey of: {', '.join(sorted(map(str, bare)))}")
    sampled = sample_of_tables(run)
    left[CASES] = len(run) - len(sampled)
    return sampled, +left


def one_in(cases: int) -> int:
    """Return n where of a test with so many cases every nth runs; 1 is all."""
    return next((part for least, part in ONE_IN if cases >= least), 1)


def sample_of_tables(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in their order, of a test with many cases a sample, and every journey."""
    tables = [f"{item.parent and item.parent.nodeid}::{getattr(item, 'originalname', item.name)}" for item in items]
    cases, places, run = Counter(tables), {name: zlib.crc32(name.encode()) for name in tables}, []
    for item, table in zip(items, tables, strict=True):
        places[table] += 1
        if places[table] % one_in(cases[table]) == 0 or item.get_closest_marker("journey"):
            run.append(item)
    return run


def said(left: Counter[str]) -> str:
    """Return the line at the end of a run: what did not run, and how to run it."""
    parts = ", ".join(
        f"{number} {'cases of long tables' if name == CASES else f'with {RIGS[name]}'}"
        for name, number in sorted(left.items())
    )
    return f"left to CI=true make test, or name their file: {parts}"
