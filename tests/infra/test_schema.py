"""infra/ against the provider's own schema, read from its generated bindings; no provider and no network are needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import outside

BINDINGS = Path(os.environ.get("TERRAFORM_BINDINGS", outside.ROOT / ".terraform-bindings"))
PACKAGES = ("cdktf_cdktf_provider_google", "cdktf_cdktf_provider_google_beta")


def checked(folder):
    """Run the checker of the shared rig over a folder of Terraform files."""
    checker = outside.shared("rigs", "terraform", "schema_check.py")
    if not all((BINDINGS / name).is_dir() for name in PACKAGES):
        pytest.skip("the provider's bindings are not here: make terraform-bindings")
    command = [sys.executable, str(checker), str(BINDINGS), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_resource_and_attribute_is_one_of_the_provider(root):
    done = checked(root / "infra")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 problems" in done.stdout
    assert int(done.stdout.split()[0]) >= 64


def test_a_misspelt_attribute_is_found(tmp_path):
    (tmp_path / "x.tf").write_text('resource "google_project_service" "x" {\n  servise = "run.googleapis.com"\n}\n')
    done = checked(tmp_path)
    assert done.returncode == 1
    assert "unknown servise" in done.stdout
    assert "required service is missing" in done.stdout
