"""What a test needs from outside the repository: skipped where it is absent, required where REQUIRE_ALL is set."""

import os
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


def absent(what: str) -> NoReturn:
    """Skip the test, or fail it where the environment promises that everything is there (``.ci/run`` does)."""
    if os.environ.get("REQUIRE_ALL"):
        pytest.fail(f"REQUIRE_ALL is set, and this is absent: {what}")
    pytest.skip(f"absent: {what}")


def shared(*parts: str) -> Path:
    """Return a file or folder of third-party text that is read in place, beside the repository."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        absent(f"../shared/{'/'.join(parts)}, recorded text of third parties")
    return path
