"""Whether a stream gets colours: NO_COLOR and FORCE_COLOR decide, else whether it is a terminal."""

from collections.abc import Mapping
from typing import TextIO

from agent.settings import inherited


def wants_colour(stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Whether to write colours to a stream.

    Sources: https://no-color.org and https://force-color.org (2026-11-22): set and not empty counts, whatever
    the value; who sets both wants none.

    Args:
        stream: Where the text goes.
        environ: The environment; that of the process when None.
    """
    known = inherited() if environ is None else environ
    if known.get("NO_COLOR"):
        return False
    return bool(known.get("FORCE_COLOR")) or stream.isatty()
