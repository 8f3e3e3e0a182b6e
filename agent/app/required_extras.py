"""Which extras of the package the settings need; what is missing is said at the start, not at the first use."""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final

from agent.errors import SettingsRejected, install_command
from agent.settings import Settings

_OF_PLATFORM: Final = {
    "kubernetes": ("kubernetes", "kubernetes"),
    "ec2": ("aws", "boto3"),
    "container_apps": ("azure", "azure.identity", "azure.mgmt.appcontainers", "azure.monitor.query"),
    "tpu_vm": ("tpu", "google.cloud.tpu_v2"),
}
"""Extra and modules by the kind of PLATFORM: one for each package of the extra that can be there without the others."""


def require_extras(settings: Settings) -> None:
    """Refuse settings that need an extra which is not installed; nothing of it is loaded.

    Raises:
        SettingsRejected: With every such setting at once, and the one command that installs them.
    """
    missing = [
        (name, extra, module)
        for name, extra, *modules in _wanted(settings)
        for module in [one for one in modules if not _is_there(one)][:1]  # one command installs them all
    ]
    if missing:
        raise SettingsRejected(
            "the service was not started",
            why="not installed: " + ", ".join(f"{module!r}, which {name} needs" for name, _, module in missing),
            hint=f"install what is missing: {install_command(','.join(extra for _, extra, _ in missing))}",
        )


def _wanted(settings: Settings) -> Iterator[tuple[str, ...]]:
    kind = settings.platform.partition(":")[0]
    if kind in _OF_PLATFORM:
        yield (f"PLATFORM={kind}", *_OF_PLATFORM[kind])
    if settings.lease is not None and kind != "kubernetes":
        yield "LEASE", *_OF_PLATFORM["kubernetes"]
    if settings.notify_targets:
        yield "NOTIFY_TARGETS", "notify", "apprise"


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a package above it is not there either
        return False
