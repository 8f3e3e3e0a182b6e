"""The composition root: one `App` for each process, and what it is put together from."""

from agent.app.app import App, Role, build_app, build_app_in_memory

__all__ = ["App", "Role", "build_app", "build_app_in_memory"]
