"""docs/container-apps.md against the tree: its example is read, its files are there, its figures are the code's."""

import json
import re

import pytest

from agent.adapters.logs.container_app_stream import READ_BYTES, READ_S, TAIL
from agent.adapters.platform.container_apps.edit import LONGEST_START_S, PROBE_LIMITS
from agent.app.azure_environment import app_ref, watched_apps
from agent.core.service.services import parse_services
from agent.entrypoints.cli.command_table import COMMANDS
from agent.entrypoints.http.ingest import SHAPES_OF
from agent.settings import VARIABLES, read_settings

ID = "00000000-1111-2222-3333-444444444444"


@pytest.fixture(scope="module")
def guide(root):
    return (root / "docs" / "container-apps.md").read_text()


def test_the_example_is_a_watched_app(guide):
    """Every key of it is one."""
    services = parse_services(re.search(r"```toml\n(.*?)```", guide, re.DOTALL)[1])
    settings = read_settings({"PLATFORM": f"container_apps:{ID}"})
    (service,) = watched_apps(settings, services)
    ref = app_ref(settings, service)
    assert (ref.group, ref.container) == ("llm", "vllm")
    assert ref.environment_id.endswith("/llm/providers/Microsoft.App/managedEnvironments/gpus")


def test_files_commands_and_settings_are_there(root, guide):
    for path in re.findall(r"(?:deploy|docs|tests)/[\w./-]+\w", guide):
        assert (root / path).exists(), path
    assert set(re.findall(r"^sre-agent (\w+)", guide, re.MULTILINE)) <= set(COMMANDS)
    assert set(re.findall(r"\b(PLATFORM|SERVICES|INGEST_SECRETS|CONTAINER_APPS_LOG_STREAM)=", guide)) <= set(VARIABLES)
    assert SHAPES_OF["azure"] == {"azure_alert", "container_apps"}
    for name in ("role.json", "role-log-stream.json"):
        role = json.loads((root / "deploy" / "azure" / name).read_text())
        assert f'--role "{role["Name"]}"' in guide
        assert role["AssignableScopes"] == ["/subscriptions/SUBSCRIPTION/resourceGroups/GROUP"]


def test_the_figures_are_those_of_the_code(guide):
    """The longest start, the limits that make it, and how much of a log stream is read."""
    delay, failures = PROBE_LIMITS["initial_delay_s"][1], PROBE_LIMITS["failure_threshold"][1]
    assert f"the last {TAIL} lines (what Azure keeps for it), {READ_BYTES // 2**20} MiB and" in guide
    assert f"{READ_S:g} seconds at most" in guide
    assert f"waits {LONGEST_START_S:,} s at most: {delay} s of delay and {failures} failures" in guide
