"""A setting whose extra is not installed is refused at the start, with the command that installs it."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.app.required_extras import require_extras
from agent.errors import SettingsRejected
from agent.settings import read_settings

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
TARGET = "team=gchat://a/b/c"
WITHOUT = """
import sys
for name in ("boto3", "botocore", "apprise"):
    sys.modules[name] = None
from agent.entrypoints.cli.main import main
sys.exit(main(["up", "--port", "0"]))
"""


@pytest.mark.parametrize(
    ("given", "hidden", "says"),
    [
        ({"PLATFORM": "kubernetes"}, "kubernetes", "'kubernetes', which PLATFORM=kubernetes needs"),
        ({"PLATFORM": "ec2"}, "boto3", "'boto3', which PLATFORM=ec2 needs"),
        *(
            ({"PLATFORM": f"container_apps:{SUBSCRIPTION}"}, module, f"'{module}', which PLATFORM=container_apps needs")
            for module in ("azure.identity", "azure.mgmt.appcontainers", "azure.monitor.query")
        ),
        (
            {"PLATFORM": "tpu_vm:my-project"},
            "google.cloud.tpu_v2",
            "'google.cloud.tpu_v2', which PLATFORM=tpu_vm needs",
        ),
        ({"PLATFORM": "ec2", "LEASE": "sre/sre"}, "kubernetes", "'kubernetes', which LEASE needs"),
        ({"NOTIFY_TARGETS": TARGET}, "apprise", "'apprise', which NOTIFY_TARGETS needs"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_setting_names_what_it_needs(given, hidden, says, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is accepted where the package is there."""
    settings = read_settings(given)
    require_extras(settings)
    monkeypatch.setitem(sys.modules, hidden, None)
    with pytest.raises(SettingsRejected) as refused:
        require_extras(settings)
    assert says in str(refused.value)


def test_a_lease_on_the_command_line_needs_what_its_setting_needs(tmp_path: Path) -> None:
    """Without it every try to read the Lease would fail, and this replica would wait for ever."""
    without = WITHOUT.replace('"boto3"', '"kubernetes"').replace('"0"]', '"0", "--lease", "sre/sre"]')
    done = subprocess.run(
        [sys.executable, "-c", without],
        env={"STORE": f"sqlite:{tmp_path / 'state'}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "'kubernetes', which LEASE needs" in done.stderr) == (2, True), done.stderr


def test_up_says_all_of_it_at_once_and_starts_nothing(tmp_path: Path) -> None:
    """In a process that has neither; the secret of the target is in no line."""
    environ = {"PLATFORM": "ec2", "NOTIFY_TARGETS": TARGET, "STORE": f"sqlite:{tmp_path / 'state'}"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr == (
        "sre-agent up: the service was not started: not installed: 'boto3', which PLATFORM=ec2 needs, 'apprise', which "
        "NOTIFY_TARGETS needs. Hint: install what is missing: "
        'pip install "$(ls FOLDER/vllm_sre_agent-*.whl)[aws,notify]", FOLDER being that of the wheel\n'
    )
    assert not (tmp_path / "state").exists()
