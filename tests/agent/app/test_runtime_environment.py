"""What cloud_run:PROJECT may touch, and whom the model's key is shown."""

import pytest

from agent.adapters.logs.cloud_logging import CloudLogs
from agent.adapters.platform.cloud_run.platform import CloudRunPlatform
from agent.app.runtime_environment import open_environment, server_key_of
from agent.core.service.services import Services, parse_services
from agent.errors import SettingsRejected
from agent.settings import Settings


class Still:
    """A clock that nobody asks."""

    def now(self):
        raise AssertionError


def services(**project: str) -> Services:
    base = {
        "platform": "cloud_run",
        "location": "us-east4",
        "model": "m",
        "accelerator": "nvidia-l4",
        "owner": "console",
    }
    return parse_services({"service": [{"name": name, "project": p, **base} for name, p in project.items()]})


def test_only_services_of_the_named_project_have_an_adapter() -> None:
    """A wrong project touches nothing."""
    place = open_environment(Settings(platform="cloud_run:ours"), services(gemma="ours", other="theirs"), Still())
    assert isinstance(place.platform_of("gemma"), CloudRunPlatform)
    assert isinstance(place.logs, CloudLogs)
    assert place.platform_of("other") is None
    assert place.platform_of("unheard") is None


def test_a_project_without_a_watched_service_is_refused() -> None:
    """An empty selection is not all of them."""
    with pytest.raises(SettingsRejected, match="no cloud_run service of project 'ours'"):
        open_environment(Settings(platform="cloud_run:ours"), services(other="theirs"), Still())


HOSTS = {
    "its own address": ("https://gemma-abcdefghij-uc.a.run.app/v1", True),
    "its other address": ("https://gemma-123456789012.us-central1.run.app/v1", True),
    "another service's": ("https://gemma-big-abcdefghij-uc.a.run.app/v1", False),
    "another domain": ("https://gemma-abcdefghij-uc.a.run.app.example.com/v1", False),
    "a local one": ("http://127.0.0.1:8000/v1", False),
}


@pytest.mark.parametrize(("url", "own"), HOSTS.values(), ids=HOSTS)
def test_the_models_key_is_shown_to_the_models_own_service_alone(url: str, own: bool) -> None:
    """A key sent elsewhere is a key given away."""
    settings = Settings(model_endpoints=(url,), model_api_key="secret")
    watched = services(gemma="ours")
    assert server_key_of(settings, watched, "gemma") == ("secret" if own else None)
    assert server_key_of(Settings(model_endpoints=(url,)), watched, "gemma") is None


def test_a_watched_server_gets_the_key_that_is_named_for_it_and_no_other() -> None:
    """services.toml holds the name, the settings the key; the model's key does not stand in."""
    watched = services(gemma="ours", other="ours")
    named = Services(services=(watched.services[0].with_(api_key="big"), watched.services[1]))
    url = "https://gemma-abcdefghij-uc.a.run.app/v1"
    keys = {"model_endpoints": (url,), "model_api_key": "models"}
    assert server_key_of(Settings(**keys, service_api_keys={"big": "its-own"}), named, "gemma") == "its-own"
    assert server_key_of(Settings(**keys, service_api_keys={"small": "another"}), named, "gemma") is None
    assert server_key_of(Settings(service_api_keys={"big": "its-own"}), named, "other") is None
