"""A staged folder in an environment with nothing but its requirements starts, and takes a recorded event in.

Setting the environment up costs up to a minute; under CI=true it is done, otherwise the function starts in this one.
"""

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counts import CI, SOAK
from tests.free_port import free_port
from tests.infra import terraform_text
from tests.journeys import deployed
from tests.outside import absent
from tools import stage_functions as staging

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
WITH_PAGES = {"console", "decide", "ingest"}


@pytest.mark.built
def test_every_function_is_staged_with_what_the_build_needs_and_nothing_else(tmp_path):
    for name in staging.functions():
        folder = staging.stage(name, tmp_path, services=EXAMPLE / "services.toml")
        told = {"requirements-notify.txt"} if name == "on_incident" else set()
        assert {path.name for path in folder.iterdir()} == {
            "agent",
            "main.py",
            "prompts",
            "requirements.txt",
            "services.toml",
            *told,
        }
        asked = (folder / "requirements.txt").read_text()
        assert asked.startswith((ROOT / "requirements.txt").read_text())
        assert ("-r requirements-notify.txt" in asked) == bool(told)
        assert (folder / "agent" / "adapters" / "notifier" / "apprise_process.py").exists() or not told
        assert (folder / "main.py").read_text() == (ROOT / "functions" / f"{name}.py").read_text()
        assert not list(folder.rglob("__pycache__"))
        assert not list(folder.rglob("test_*"))
        staged = {path.relative_to(folder / "agent") for path in (folder / "agent").rglob("*.toml")}
        assert staged == {path.relative_to(ROOT / "agent") for path in (ROOT / "agent").rglob("*.toml")}
        assert not (folder / "agent" / "entrypoints" / "mcp").exists()
        assert not (folder / "agent" / "entrypoints" / "cli" / "commands").exists()
        assert (folder / "agent" / "entrypoints" / "console").exists() == (name in WITH_PAGES)


@pytest.mark.built
def test_what_sends_traces_is_staged_when_it_is_asked_for(tmp_path):
    """Locked like the rest; without it no function carries it."""
    for otel in (False, True):
        folder = staging.stage("on_log_event", tmp_path, otel=otel)
        assert (folder / "requirements-otel.txt").exists() is otel
        assert ("-r requirements-otel.txt" in (folder / "requirements.txt").read_text()) is otel


def test_a_module_is_imported_by_its_name_alone():
    """A name that is computed is not seen by the staging: only the command line, which is not staged, does that."""
    computing = re.compile(r"\b(import_module|__import__|spec_from_file_location)\b")
    found = {
        str(path.relative_to(ROOT)) for path in (ROOT / "agent").rglob("*.py") if computing.search(path.read_text())
    }
    assert found == {"agent/entrypoints/cli/command_table.py"}


COMPILED = """
import sys
made = []
sys.addaudithook(lambda event, args: made.append(str(args[1])) if event == "compile" else None)
sys.path.insert(0, "")
import agent.stages.signal_to_incident
print(sum("agent/" in name for name in made))
"""
IMAGE_DATE = (
    315_532_801  # 1980-01-01 00:00:01, which the build's image gives every file (github.com/buildpacks/lifecycle)
)


@pytest.mark.built
@pytest.mark.parametrize("as_terraform_says", [True, False])
def test_what_the_build_has_compiled_is_not_compiled_again_at_every_start(tmp_path, as_terraform_says):
    """The build's own command (`compileall -f -q .`), then the image's one date for every file."""
    folder = staging.stage("on_log_event", tmp_path)
    found = terraform_text.read_configuration(ROOT / "infra" / "modules" / "function")
    (build,) = found.of("google_cloudfunctions2_function")["this"]["build_config"]
    environ = {"PATH": os.environ["PATH"]} | (build["environment_variables"] if as_terraform_says else {})
    subprocess.run([sys.executable, "-m", "compileall", "-f", "-q", "."], cwd=folder, env=environ, check=True)
    for path in folder.rglob("*"):
        os.utime(path, (IMAGE_DATE, IMAGE_DATE))
    del environ["PATH"]
    ran = subprocess.run(
        [sys.executable, "-B", "-c", COMPILED], cwd=folder, env=environ, capture_output=True, text=True, check=True
    )
    assert (int(ran.stdout) == 0) is as_terraform_says


def test_a_function_that_is_not_there_is_named(tmp_path):
    with pytest.raises(SystemExit, match="there is no function 'on_nothing'; there are console, "):
        staging.stage("on_nothing", tmp_path)


def test_a_file_that_does_not_compile_ends_the_staging(tmp_path):
    """The build compiles every file, and would fail behind the upload."""
    (tmp_path / "main.py").write_text("return 1\n")
    with pytest.raises(SystemExit, match=r"main\.py: it does not compile, the build would fail: 'return' outside"):
        staging.needed_files(tmp_path / "main.py")


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python with the staged requirements and nothing else; they are pinned whole, so that nothing is resolved."""
    if not (CI or SOAK):
        return Path(sys.executable)
    venv = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    install = [
        venv / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
        "--no-deps",
        "--require-hashes",
    ]
    ran = subprocess.run([*install, "-r", ROOT / "requirements.txt"], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        absent(f"the packages of requirements.txt: {ran.stderr[-1000:]}")
    return venv / "bin" / "python"


@pytest.mark.built
@pytest.mark.timeout(280)
def test_a_staged_function_starts_and_takes_a_recorded_event_in(python, tmp_path):
    """By the framework's own command, from main.py, with the path that the framework makes and no other."""
    folder = staging.stage("on_log_event", tmp_path, services=EXAMPLE / "services.toml")
    environ = deployed.clean_environ(STORE=f"sqlite:{tmp_path / 'state'}", SERVICES="services.toml")
    del environ["PYTHONPATH"]
    environ["PLATFORM"] = "cloud_run:example-project"
    port = free_port()
    function = deployed.Function(
        "on_log_event", port, environ, tmp_path / "log", source=folder / "main.py", python=python, cwd=folder
    )
    try:
        function.answers()
        entry = (EXAMPLE / "events.jsonl").read_text().splitlines()[0].encode()
        message = {"data": base64.b64encode(entry).decode(), "messageId": "1"}
        assert function.post(json.dumps({"message": message, "subscription": "s"}).encode()) == (200, "ack")
        told, other = function.told()
        stages = [(event["stage"], event["reason"]) for event in told if "stage" in event]
        assert (stages, other) == ([("signal_to_incident", "opened")], [])
    finally:
        function.stop()
