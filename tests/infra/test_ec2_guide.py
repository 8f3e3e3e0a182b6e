"""docs/ec2.md against the tree: its service can be read, its commands exist, its policy and its refusals are the code's."""

import json
import re

import pytest

from agent.adapters.platform.ec2.command import STATE_FOLDER
from agent.adapters.platform.ec2.instance.docker_container import BEFORE
from agent.adapters.platform.ec2.instance.unit_files import DROP_IN
from agent.adapters.platform.ec2.target import CALLED_TAG, EFFECT_TAG, FAILED_TAG, REVISION_TAG, UnitTarget
from agent.adapters.platform.host.describe import HIDDEN
from agent.core.intake.eventbridge import ALARM, CALL, INSTANCE, SPOT
from agent.core.service.services import parse_services
from agent.entrypoints.cli.command_table import COMMANDS
from agent.entrypoints.http.ingest import INGEST_PATH, PROOF_HEADER, SHAPES_OF
from agent.settings import VARIABLES


@pytest.fixture(scope="module")
def guide(root):
    return (root / "docs" / "ec2.md").read_text()


def test_its_service_is_a_unit_that_the_agent_can_reach(guide):
    """As it stands there, comments and all."""
    (text,) = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    (service,) = parse_services(text).services
    assert UnitTarget.of(service).says == "vllm.service on i-0abc1234def567890 in us-east-1"


def test_its_commands_and_settings_exist(guide):
    """Each line sets what is read, and calls what there is."""
    blocks = "".join(body for kind, body in re.findall(r"```(\w*)\n(.*?)```", guide, re.DOTALL) if not kind)
    lines = [line for line in blocks.splitlines() if "sre-agent " in line and not line.startswith("aws")]
    assert len(lines) == 3
    for line in lines:
        assert {w.split("=")[0] for w in line.split() if re.match(r"[A-Z_]+=", w)} <= set(VARIABLES)
        assert re.search(r"sre-agent (\w+)", line)[1] in COMMANDS


def test_kept_containers_are_found_by_the_name_that_they_are_given(guide):
    """What lists them and what removes one; the filter of `docker ps` takes a part of a name."""
    (listed,) = re.findall(r"^docker ps --all --filter name=NAME(\S+)$", guide, re.MULTILINE)
    (removed,) = re.findall(r"^docker rm NAME(\S+)$", guide, re.MULTILINE)
    assert (listed, removed) == (BEFORE, f"{BEFORE}REVISION")


def test_what_it_names_is_what_the_code_uses(guide, root):
    """Files, paths, events, variables and tags."""
    for word in (DROP_IN, STATE_FOLDER, f"{INGEST_PATH}eventbridge", *HIDDEN, ALARM, INSTANCE, CALL, *SPOT):
        assert word in guide, word
    assert PROOF_HEADER in guide.lower()
    assert "eventbridge" in SHAPES_OF
    policy = json.loads((root / "deploy/ec2/policy.json").read_text())
    (stamp,) = (s for s in policy["Statement"] if s["Sid"] == "Stamp")
    assert stamp["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"] == [
        EFFECT_TAG,
        REVISION_TAG,
        CALLED_TAG,
        FAILED_TAG,
    ]
    for tag in (EFFECT_TAG, REVISION_TAG, CALLED_TAG, FAILED_TAG):
        assert f"`{tag}`" in guide, tag
    for path in re.findall(r"\(\.\./([\w/.]+)\)|`(agent/[\w/.]+)`", guide):
        assert (root / (path[0] or path[1])).is_file()
