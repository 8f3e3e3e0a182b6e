"""A text as the usual loggers print it on a terminal."""

import io
import re

import structlog
from rich.console import Console

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_STRUCTLOG = structlog.dev.ConsoleRenderer(colors=True)


def by_structlog(text):
    return _STRUCTLOG(None, "info", {"timestamp": "2026-11-22", "level": "info", "event": text, "unit": 7})


def by_structlog_as_pair(text):
    name, sign, value = text.partition("=")
    return _STRUCTLOG(None, "info", {"level": "info", "event": "set", name: value}) if sign else by_structlog(text)


def by_rich(text):
    """Highlighted, tabs as blanks, wrapped at 100 columns."""
    out = io.StringIO()
    Console(file=out, force_terminal=True, width=100, color_system="standard", _environ={}).print(text, markup=False)
    return out.getvalue()


def by_loguru(text):
    """Its default format: https://loguru.readthedocs.io/en/stable/api/logger.html (2026-11-22)."""
    return (
        "\x1b[32m2026-11-22 10:00:00.000\x1b[0m | \x1b[1mINFO    \x1b[0m | \x1b[36mapp\x1b[0m:\x1b[36mmain\x1b[0m:"
        f"\x1b[36m12\x1b[0m - \x1b[1m{text}\x1b[0m"
    )


STYLES = {
    "structlog": by_structlog,
    "structlog pair": by_structlog_as_pair,
    "rich": by_rich,
    "loguru": by_loguru,
}


def seen(text):
    """Return what stands on the screen: colours off, and once more with the lines joined."""
    shown = COLOUR.sub("", text)
    return shown + "\0" + re.sub(r"[ \t]*\n[ \t]*", "", shown)
