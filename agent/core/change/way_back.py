"""The way back from drift: the change request that makes a service as it should be, and what no request can do."""

from collections.abc import Sequence
from typing import Final

from agent.core.change.asked_settings import REDACTED, AskedSettings
from agent.core.change.config_drift import Drift, State

SCALING: Final = ("min_instances", "max_instances")
RESOURCES: Final = ("cpu", "memory_mib")


def way_back(rows: Sequence[Drift], state: State) -> tuple[AskedSettings, tuple[Drift, ...]]:
    """Return what to ask for, and the rows that are left to a person.

    A value that is kept without its secret cannot be asked for: the request would write what stands in its place.

    Args:
        rows: The drift.
        state: What runs, by its path; a request names both ends of the scaling, and CPU and memory together.
    """
    wanted = {row.path: row.wanted for row in rows if REDACTED not in (row.wanted or "")}
    flags = {path.removeprefix("flag --"): value for path, value in wanted.items() if path.startswith("flag --")}
    env = {path.removeprefix("env "): value for path, value in wanted.items() if path.startswith("env ")}
    asked = AskedSettings(
        set_flag=tuple(f"{name}={value}" for name, value in flags.items() if value is not None),
        unset_flag=tuple(name for name, value in flags.items() if value is None),
        set_env=tuple(f"{name}={value}" for name, value in env.items() if value is not None),
        scale=_both(wanted, state, SCALING),
        concurrency=wanted.get("concurrency") or "",
        resources=_both(wanted, state, RESOURCES),
        accelerator=wanted.get("accelerator") or "",
    )
    return asked, tuple(row for row in rows if not _is_asked(row, asked))


def _both(wanted: State, state: State, paths: tuple[str, str]) -> str:
    """Return ``A:B``, each as it should be or as it is; nothing where nothing differs or one of them is unknown."""
    if not any(path in wanted for path in paths):
        return ""
    first, second = (wanted.get(path, state.get(path)) for path in paths)
    return f"{first}:{second}" if first is not None and second is not None else ""


def _is_asked(row: Drift, asked: AskedSettings) -> bool:
    kind, _, name = row.path.partition(" ")
    flag = name.removeprefix("--")
    word = f"{flag}={row.wanted}"
    if kind == "flag":
        return flag in asked.unset_flag if row.wanted is None else word in asked.set_flag
    if kind == "env":
        return word in asked.set_env
    if row.path in SCALING:
        return bool(asked.scale) and row.wanted is not None
    if row.path in RESOURCES:
        return bool(asked.resources) and row.wanted is not None
    return row.path in {"concurrency", "accelerator"} and row.wanted == getattr(asked, row.path)
