"""Where a line and a figure stand: the log or signal they were read from, named as the platform's people name it."""

import re
from typing import Final

from agent.core.diagnosis.diagnosis import Diagnosis

_LOG_PLACE: Final = re.compile(r"log:(-?)(\d+)")
_LOGS: Final = {
    "host": "the server's log",
    "kubernetes": "the container's log",
    "ec2": "the server's log",
    "tpu_vm": "the server's log",
}


def log_of(platform: str) -> str:
    """Return what a platform's people call the log of the server: a host has no containers or instances."""
    return _LOGS.get(platform, "the instance's log")


def place_of(signal: str, platform: str) -> str:
    """Say where a line stands.

    Args:
        signal: ``log:N`` for line N of the log, ``log:-N`` for line N from its end, ``log`` for one whose place nobody
            knows, or a signal's id.
        platform: Where the service runs.
    """
    if signal == "log":
        return log_of(platform)
    found = _LOG_PLACE.fullmatch(signal)
    if found is None:
        return f"signal {signal}"
    return f"line {found[2]} {'from the end ' if found[1] else ''}of {log_of(platform)}"


def field_source(diagnosis: Diagnosis, name: str, platform: str) -> str:
    """Say where a figure of the diagnosis was read, or nothing where that was not kept."""
    signal = diagnosis.field_signals.get(name)
    return place_of(signal, platform) if signal else ""
