"""Which container apps are spoken to, and as whom."""

import pytest
from azure.identity import ClientAssertionCredential, DefaultAzureCredential

from agent.adapters.logs.container_app_stream import LogsWithStream
from agent.adapters.logs.log_analytics import LogAnalyticsLogs
from agent.adapters.platform.container_apps.platform import ContainerAppsPlatform
from agent.app.azure_environment import app_ref, azure_credential, subscription_of, watched_apps
from agent.app.runtime_environment import container_apps, open_environment
from agent.core.service.services import Services, parse_services
from agent.errors import SettingsRejected
from agent.settings import Settings, read_settings
from tests.watch import Watch

SUBSCRIPTION = "00000000-1111-2222-3333-444444444444"
BASE = {"platform": "container_apps", "model": "m", "accelerator": "nvidia-a100-80gb", "owner": "console"}


def services(*rows: dict) -> Services:
    return parse_services({"service": [BASE | row for row in rows]})


def test_apps_of_services_toml_have_the_adapter_and_others_have_none() -> None:
    """Nothing is connected before it is asked."""
    watched = services(
        {"name": "gemma", "resource_group": "llm"}, {"name": "other", "platform": "host", "accelerator": "cpu"}
    )
    settings = Settings(platform=f"container_apps:{SUBSCRIPTION}")
    place = open_environment(settings, watched, Watch())
    assert isinstance(place.platform_of("gemma"), ContainerAppsPlatform)
    assert place.platform_of("other") is None
    assert container_apps(settings, watched, Watch(), connect=lambda: pytest.fail("connected")) is not None
    assert isinstance(place.logs, LogAnalyticsLogs)


def test_the_log_stream_is_read_only_where_it_is_switched_on() -> None:
    """The setting, and nothing else, decides it."""
    watched = services({"name": "gemma", "resource_group": "llm"})
    on = read_settings({"PLATFORM": f"container_apps:{SUBSCRIPTION}", "CONTAINER_APPS_LOG_STREAM": "on"})
    assert isinstance(open_environment(on, watched, Watch()).logs, LogsWithStream)
    for word in ("off", None):
        chosen = {} if word is None else {"CONTAINER_APPS_LOG_STREAM": word}
        off = read_settings({"PLATFORM": f"container_apps:{SUBSCRIPTION}"} | chosen)
        assert isinstance(open_environment(off, watched, Watch()).logs, LogAnalyticsLogs)


def test_nothing_to_watch_and_no_resource_group_are_refused() -> None:
    """An empty selection is not all of them."""
    settings = Settings(platform=f"container_apps:{SUBSCRIPTION}")
    with pytest.raises(SettingsRejected, match="watches no container_apps service"):
        watched_apps(settings, services({"name": "a", "platform": "host", "accelerator": "cpu"}))
    with pytest.raises(SettingsRejected, match="gemma names no resource group"):
        watched_apps(settings, services({"name": "gemma"}))


def test_keys_of_container_apps_belong_to_container_apps() -> None:
    """The container may be named on Kubernetes too."""
    with pytest.raises(SettingsRejected, match="belong to a container_apps service"):
        services({"name": "a", "platform": "host", "accelerator": "cpu", "resource_group": "llm"})
    with pytest.raises(SettingsRejected, match="2 mistakes"):
        services({"name": "a", "resource_group": "llm/x", "environment": "Gpus and more"})
    assert services({"name": "a", "container": "vllm"}).services[0].container == "vllm"


def test_an_app_is_named_by_subscription_group_and_service() -> None:
    """An environment may be named or given by its id; a server with a key may be reached from the internet."""
    (one,) = services({"name": "gemma", "resource_group": "llm", "environment": "gpus", "api_key": "vllm"}).services
    ref = app_ref(Settings(platform=f"container_apps:{SUBSCRIPTION}"), one)
    assert (ref.subscription, ref.group, ref.name, ref.has_key) == (SUBSCRIPTION, "llm", "gemma", True)
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/llm"
    assert ref.environment_id == f"{group}/providers/Microsoft.App/managedEnvironments/gpus"
    assert ref.with_(environment="/subscriptions/x").environment_id == "/subscriptions/x"


def test_the_platform_names_a_subscription_and_perhaps_whom_google_stands_for() -> None:
    """Ids; anything else is a mistake of the settings, told before anything is asked."""
    whole = read_settings({"PLATFORM": f"container_apps:{SUBSCRIPTION}/{SUBSCRIPTION}/{SUBSCRIPTION}"})
    assert subscription_of(whole) == SUBSCRIPTION
    assert isinstance(azure_credential(whole), ClientAssertionCredential)
    alone = Settings(platform=f"container_apps:{SUBSCRIPTION}")
    assert isinstance(azure_credential(alone), DefaultAzureCredential)
    for bad in ("mine", f"{SUBSCRIPTION}/{SUBSCRIPTION}", f"{SUBSCRIPTION}/"):
        with pytest.raises(SettingsRejected, match="az account show"):
            subscription_of(Settings(platform=f"container_apps:{bad}"))
