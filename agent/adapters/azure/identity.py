"""Who we are on Azure: a managed identity, a workload federation, Google's identity, or the operator's own sign-in."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from agent.errors import ExtraMissing

AUDIENCE: Final = "api://AzureADTokenExchange"
"""For whom an assertion of another identity provider is made; the same in every tenant."""


def credential(federation: str | None, assertion: Callable[[str], str]) -> Any:
    """Return a credential of ``azure-identity``; nothing is asked before its first token.

    Args:
        federation: ``TENANT/CLIENT`` of an Entra application that trusts our identity elsewhere; None takes what
            this machine has: environment, workload identity, managed identity, or ``az login``.
        assertion: Makes a token of that other identity for an audience.

    Raises:
        ExtraMissing: The extra is not installed.
    """
    with _the_extra():
        from azure.identity import ClientAssertionCredential, DefaultAzureCredential

    if federation is None:
        return DefaultAzureCredential(exclude_interactive_browser_credential=True)
    tenant, _, client = federation.partition("/")
    return ClientAssertionCredential(tenant, client, lambda: assertion(AUDIENCE))


def container_apps_client(who: Any, subscription: str) -> Any:
    """Return the official client of one subscription.

    Raises:
        ExtraMissing: The extra is not installed.
    """
    with _the_extra():
        from azure.mgmt.appcontainers import ContainerAppsAPIClient

    return ContainerAppsAPIClient(who, subscription)


def log_analytics_client(who: Any) -> Any:
    """Return the official client of Log Analytics.

    Raises:
        ExtraMissing: The extra is not installed.
    """
    with _the_extra():
        from azure.monitor.query import LogsQueryClient

    return LogsQueryClient(who)


@contextmanager
def _the_extra() -> Iterator[None]:
    """Name the extra where a package of it is not installed; each of them may be there without the others."""
    try:
        yield
    except ImportError as error:
        raise ExtraMissing("Azure cannot be reached", extra="azure", package=error.name or "azure") from error
