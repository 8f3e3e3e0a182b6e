"""The doctor reads each watched container app once, and says what is not as services.toml has it."""

import pytest

from agent.app import azure_environment
from agent.core.service.services import parse_services
from agent.entrypoints.cli.doctor.platforms import container_apps
from agent.settings import Settings
from tests.agent.adapters.platform.container_apps.test_platform import CONFIG
from tests.contracts import arm_server as arm
from tests.contracts.arm_world import ArmWorld

SETTINGS = Settings(platform=f"container_apps:{arm.SUBSCRIPTION}")


@pytest.fixture
def world(monkeypatch):
    made = ArmWorld("gemma", CONFIG)
    monkeypatch.setattr(azure_environment, "container_apps_client", lambda *_: arm.sdk_client(made.arm.url))
    yield made
    made.close()


def found(**more):
    return [(str(f.state), f.says) for f in looked(SETTINGS, **more) if f.check != "container_apps_log_stream"]


def looked(settings, **more):
    row = {"name": "gemma", "platform": "container_apps", "model": "m", "accelerator": "nvidia-a100-80gb",
           "owner": "console", "resource_group": arm.GROUP}  # fmt: skip
    return list(container_apps(settings, parse_services({"service": [row | more]})))


def test_the_log_stream_is_looked_at_where_it_is_on(world):
    """Off, neither the replicas nor a token are asked for; on, the right that is missing is named before an incident."""
    off, _ = looked(SETTINGS)
    assert (off.check, str(off.state)) == ("container_apps_log_stream", "off")
    world.arm.allowed = {"Microsoft.App/containerApps/read", "Microsoft.App/containerApps/revisions/read",
                         "Microsoft.App/managedEnvironments/read"}  # fmt: skip
    on = SETTINGS.with_(container_apps_log_stream=True)
    app, stream = looked(on)
    assert (str(app.state), stream.check, str(stream.state)) == ("good", "container_apps_log_stream:gemma", "bad")
    assert "Microsoft.App/containerApps/revisions/replicas/read" in stream.says
    assert "or leave CONTAINER_APPS_LOG_STREAM off" in stream.hint
    world.arm.allowed = None
    _, stream = looked(on)
    assert stream.line.startswith("good     container_apps_log_stream:gemma on: ")
    assert world.arm.writes == []


def test_an_app_that_is_there_is_good(world):
    """Three reads, no change."""
    ((mark, says),) = found()
    assert (mark, says) == ("good", "gemma--0000001, on 'gpu' (nvidia-a100-80gb)")
    assert world.arm.writes == []


def test_what_is_not_as_services_toml_says_is_told(world):
    ((mark, says),) = found(accelerator="nvidia-t4")
    assert mark == "bad"
    assert "has 1 x nvidia-a100-80gb" in says


def test_a_missing_right_is_told_with_its_name(world):
    world.arm.allowed = {"Microsoft.App/containerApps/read"}
    ((mark, says),) = found()
    assert mark == "bad"
    assert "Microsoft.App/containerApps/revisions/read" in says


def test_elsewhere_nothing_is_asked():
    services = parse_services(
        {"service": [{"name": "a", "platform": "host", "model": "m", "accelerator": "cpu", "owner": "console"}]}
    )
    assert list(container_apps(Settings(platform="host"), services)) == []
