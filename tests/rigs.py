"""What starts services or programs of its own, and which of its tests are left to ``CI=true``.

A whole run without ``CI=true`` has everything that is computed in process, and the journeys of each rig. Whoever names
a file, a folder, a word or a mark of tests, or those that failed, has all that it names.
"""

import os
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
}
NAMING = ("keyword", "markexpr", "lf", "failedfirst")  # -k, -m, --lf, --ff
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


def split(items: Iterable[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return what runs and what is left to ``CI=true``; a rig without any journey is a mistake."""
    run, left = [], []
    for item in items:
        (run if rig_of(item) is None or item.get_closest_marker("journey") else left).append(item)
    if bare := {rig_of(item) for item in left} - {rig_of(item) for item in run}:
        raise pytest.UsageError(f"no test is marked as a journey of: {', '.join(sorted(map(str, bare)))}")
    return run, left


def said(left: Counter[str]) -> str:
    """Return the line at the end of a run: what did not run, and how to run it."""
    parts = ", ".join(f"{number} with {RIGS[name]}" for name, number in sorted(left.items()))
    return f"left to CI=true make test, or name their file: {parts}"
