"""People wait for a command, and tests start hundreds: what each may have loaded when it has answered."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLOUDS = {
    "openai",
    "slack_sdk",
    "google.api_core",
    "google.auth",
    "kubernetes",
    "azure",
    "boto3",
    "botocore",
    "grpc",
    "opentelemetry",
}
NOT_HELP = {*CLOUDS, "pydantic", "structlog", "rich", "agent.core", "agent.fit", "agent.settings"}
NOT_ARITHMETIC = {
    *(*CLOUDS, "structlog", "rich"),
    *("agent.core.incident.incident", "agent.core.plan", "agent.core.change", "agent.core.sweep", "agent.failures"),
    *("agent.stages", "agent.app.app", "agent.catalogue.load_failures", "agent.catalogue.load_secrets"),
}
NOT_ANY = {*CLOUDS, "rich"}
NOT_OF_A_LOG = {*NOT_ANY, "structlog", "agent.stages", "agent.settings", "agent.core.plan", "agent.core.service"}
PROGRAM = """
import json, sys
from agent.entrypoints.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print()
print(json.dumps(sorted(sys.modules)))
"""
ASKED = ("--model", "Qwen/Qwen3-8B", "--accelerator", "nvidia-l4", "--flags", "--max-model-len 8192")


@pytest.mark.parametrize(
    ("words", "unwanted", "wanted"),
    [
        pytest.param(("--help",), NOT_HELP, "argparse", id="help"),
        pytest.param(("fit", "--help"), NOT_HELP - {"agent.fit"}, "argparse", id="help of a command"),
        pytest.param(("fit", *ASKED), NOT_ARITHMETIC, "agent.fit.memory.on_cuda", id="fit"),
        pytest.param(("advise", *ASKED), NOT_ARITHMETIC, "agent.fit.advice.search", id="advise"),
        pytest.param(("classify", "server.log"), NOT_OF_A_LOG, "re2", id="classify"),
        pytest.param(("incidents",), NOT_ANY, "structlog", id="incidents"),
        pytest.param(("services",), NOT_ANY, "structlog", id="services"),
    ],
)
def test_a_command_loads_nothing_that_it_has_no_use_for(words, unwanted, wanted, tmp_path):
    """Not a cloud's client, not the colours of a screen, and of the agent what the answer needs."""
    (tmp_path / "server.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
    environ = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    environ |= {"PYTHONPATH": str(ROOT), "STORE": f"sqlite:{tmp_path / 'state'}"}
    command = [sys.executable, "-c", PROGRAM, *words]
    ran = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=True)
    modules = json.loads(ran.stdout.splitlines()[-1])
    assert {name for name in unwanted if any(m == name or m.startswith(f"{name}.") for m in modules)} == set()
    assert any(m == wanted or m.startswith(f"{wanted}.") for m in modules), ran.stderr[-2000:]
