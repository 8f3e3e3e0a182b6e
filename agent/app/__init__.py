"""The composition root: one `App` for each process, and what it is put together from.

The App itself is loaded when it is asked for: commands that only read a setting or a catalogue need none of it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.app.app import App, Role, build_app, build_app_in_memory

__all__ = ["App", "Role", "build_app", "build_app_in_memory"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agent.app import app

    return getattr(app, name)
