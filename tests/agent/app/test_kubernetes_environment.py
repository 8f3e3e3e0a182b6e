"""Which clusters are spoken to, and by which client."""

import pytest

from agent.app.kubernetes_environment import api_of, watched_workloads
from agent.core.service.services import Services, parse_services
from agent.errors import SettingsRejected
from agent.settings import Settings, read_settings


def services(**contexts: str | None) -> Services:
    base = {"platform": "kubernetes", "model": "m", "accelerator": "nvidia-l4", "owner": "console"}
    rows = [{"name": name, **base} | ({"context": c} if c else {}) for name, c in contexts.items()]
    return parse_services({"service": rows})


def test_a_cluster_has_one_client_whoever_asks() -> None:
    """A service's own context wins over the one of PLATFORM; nothing is opened before it is asked."""
    opened: list[str | None] = []
    of = api_of(Settings(platform="kubernetes:gke"), opened.append)
    gemma, llama, other = services(gemma=None, llama=None, other="on-prem").services
    assert of(gemma) is of(llama)
    assert of(other) is not of(gemma)
    assert opened == []
    _ = of(gemma).client, of(other).client
    assert opened == ["gke", "on-prem"]


def test_in_the_cluster_no_context_is_named() -> None:
    opened: list[str | None] = []
    of = api_of(Settings(platform="kubernetes"), opened.append)
    _ = of(services(gemma=None).services[0]).client
    assert opened == [None]


def test_nothing_to_watch_is_refused() -> None:
    """An empty selection is not all of them."""
    assert len(watched_workloads(Settings(platform="kubernetes"), services(a=None, b=None))) == 2
    row = {"name": "a", "platform": "host", "model": "m", "accelerator": "cpu", "owner": "console"}
    with pytest.raises(SettingsRejected, match="watches no kubernetes service"):
        watched_workloads(Settings(platform="kubernetes"), parse_services({"service": [row]}))


@pytest.mark.parametrize("platform", ["kubernetes", "kubernetes:gke_p_us-central1_c"])
def test_the_platform_may_name_a_context(platform: str) -> None:
    assert read_settings({"PLATFORM": platform}).platform == platform


def test_keys_of_kubernetes_belong_to_kubernetes() -> None:
    """A namespace tells signals apart elsewhere too; the other three are for a workload."""
    base = {"name": "a", "platform": "host", "model": "m", "accelerator": "cpu", "owner": "console"}
    with pytest.raises(SettingsRejected, match="belong to a kubernetes service"):
        parse_services({"service": [base | {"workload": "deployment/a"}]})
    bad = {"workload": "pod/a", "namespace": "A_B"}
    with pytest.raises(SettingsRejected, match="2 mistakes"):
        parse_services({"service": [base | {"platform": "kubernetes"} | bad]})
