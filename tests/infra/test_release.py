"""The release workflow without its runner: what it may do, what it runs, and in which order."""

import re

import pytest
import yaml


@pytest.fixture(scope="module")
def workflow(root):
    return yaml.safe_load((root / ".github" / "workflows" / "release.yml").read_text())


def test_nothing_is_published_that_was_not_tested_and_built(workflow):
    jobs = workflow["jobs"]
    assert jobs["build"]["needs"] == jobs["image"]["needs"] == "test"
    assert jobs["publish"]["needs"] == "build"


def test_no_job_has_more_rights_than_its_work_and_no_token_is_stored(workflow):
    """Publishing goes by the workflow's own identity; only it and the image stand behind an environment's approval."""
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    assert jobs["test"]["permissions"] == {"contents": "read"}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert {name for name, job in jobs.items() if job.get("environment") == "release"} == {"publish", "image"}
    assert "secrets." not in yaml.safe_dump(jobs["publish"])


def test_what_it_runs_exists(root, workflow):
    said = yaml.safe_dump(workflow)
    targets = set(re.findall(r"\bmake (\w+)", said))
    assert targets == {"test", "package"}
    makefile = (root / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    (image,) = [step["with"] for step in workflow["jobs"]["image"]["steps"] if "file" in step.get("with", {})]
    assert (root / image["file"]).is_file()
    assert (root / "docs" / "sbom.cdx.json").is_file()
