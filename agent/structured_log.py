"""The library of the agent's own log, loaded as it is where rich is not installed.

structlog takes rich along for tracebacks in colour, a tenth of every process's start; the agent's own log has none.
Whoever wants rich afterwards imports it as ever.
"""

import sys

if "structlog" in sys.modules or "rich" in sys.modules:
    import structlog
else:
    sys.modules["rich"] = None  # type: ignore[assignment]  # an import of it now fails, as if it were absent
    try:
        import structlog
    finally:
        del sys.modules["rich"]

__all__ = ("structlog",)
