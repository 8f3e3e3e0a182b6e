"""How a deployed function loads: the garbage collector rests meanwhile, and does not look at what was loaded again."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Let the collector rest while modules and catalogues are loaded; little of that is garbage.

    Going through all of it again and again takes a tenth of the start. What is there at the end is frozen, as the
    documentation of ``gc.freeze`` advises for processes that fork afterwards, which the web server does.
    """
    gc.disable()
    try:
        _structlog_without_rich()
        yield
    finally:
        gc.freeze()
        gc.enable()


def _structlog_without_rich() -> None:
    """Import structlog as it is where rich is not installed: a tenth of the start, for tracebacks in colour.

    Functions log JSON. Whoever wants rich afterwards imports it as ever.
    """
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # an import of it now fails, as if it were absent
    try:
        import structlog  # noqa: F401
    finally:
        del sys.modules["rich"]
