"""Who we are on Azure, decided by settings alone; nothing is asked before the first token."""

import sys
from collections.abc import Callable

import azure.identity
import pytest

from agent.adapters.azure.identity import AUDIENCE, container_apps_client, credential, log_analytics_client
from agent.errors import SettingsRejected


def test_without_a_federation_the_machine_says_who_we_are() -> None:
    """Managed identity, workload identity, environment, or the operator's own sign-in."""
    found = credential(None, lambda _: pytest.fail("asked"))
    assert isinstance(found, azure.identity.DefaultAzureCredential)
    assert container_apps_client(found, "sub") is not None


def test_a_federation_proves_itself_by_googles_identity() -> None:
    """The assertion is made for Azure's audience and no other, and only when a token is wanted."""
    asked: list[str] = []

    def assertion(audience: str) -> str:
        asked.append(audience)
        return "assertion"

    found = credential("00000000-1111-2222-3333-444444444444/client", assertion)
    assert isinstance(found, azure.identity.ClientAssertionCredential)
    assert asked == []
    assert found._func() == "assertion"
    assert asked == [AUDIENCE]


@pytest.mark.parametrize(
    ("module", "opened"),
    [
        ("azure.identity", lambda: credential(None, str)),
        ("azure.mgmt.appcontainers", lambda: container_apps_client(None, "subscription")),
        ("azure.monitor.query", lambda: log_analytics_client(None)),
    ],
    ids=["identity", "container apps", "logs"],
)
def test_without_a_package_of_the_extra_the_hint_names_both(
    module: str, opened: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installation without Azure imports everything but this; one that has the others is told the same."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SettingsRejected, match=r"\[azure\]") as refused:
        opened()
    assert module in str(refused.value)
