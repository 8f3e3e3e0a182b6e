"""What Google Cloud tells of capacity and of buckets, read with the credentials of whoever runs this command."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from agent.app.catalogues import project_of
from agent.errors import InputRejected
from agent.ports.clock import Clock
from agent.ports.queued_resources import QueuedResources
from agent.ports.quotas import Quotas
from agent.settings import Settings

if TYPE_CHECKING:
    from agent.adapters.google.rest import GoogleRest

At = Callable[[str], str] | None
"""Returns the address of a stand-in by the name of the service; None for the real ones."""


def open_quotas(clock: Clock, *, at: At = None) -> Quotas:
    """Return what reads quotas of accelerators."""
    from agent.adapters.google.quotas import GoogleQuotas

    return GoogleQuotas(_rest(at), clock)


def open_queued_resources(*, at: At = None) -> QueuedResources:
    """Return what reads TPU queued resources."""
    from agent.adapters.google.quotas import CloudTpuQueue

    return CloudTpuQueue(_rest(at))


def folders_of(bucket: str, folder: str) -> Sequence[str]:
    """Return the folders of a bucket, one level below a folder.

    Raises:
        SreError: It cannot be read.
    """
    from agent.adapters.google.bucket import folders_of as listed

    return listed(_rest(None), bucket, folder)


def named_project(settings: Settings, named: str | None, watched: Sequence[str]) -> str:
    """Return the project that is named, that of the settings, or the only one of the watched services.

    Raises:
        InputRejected: None is known, or several are.
    """
    known = [name for name in (named, project_of(settings)) if name] or sorted(set(watched))
    if len(known) == 1 or (known and (named or project_of(settings))):
        return known[0]
    raise InputRejected(
        "no Google Cloud project was asked",
        why=f"services.toml names {', '.join(known)}" if known else "neither the settings nor services.toml name one",
        hint="give it: project",
    )


def _rest(at: At) -> "GoogleRest":
    from agent.adapters.google.access_token import CLOUD, access_token
    from agent.adapters.google.rest import GoogleRest

    return GoogleRest(lambda: access_token(CLOUD) if at is None else None, at=at)


def cloud_access_token() -> str:
    """Return an access token for Google Cloud, of the operator who runs this command.

    Raises:
        DependencyFailed: There are no credentials here, or they do not answer.
    """
    from agent.adapters.google.access_token import CLOUD, require_access_token

    return require_access_token(CLOUD)
