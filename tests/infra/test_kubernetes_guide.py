"""docs/kubernetes.md against the tree: its commands name what is there, and lead to it."""

import re

import pytest
import yaml

from agent.core.decision.policy import parse_policy
from agent.entrypoints.cli.command_table import COMMANDS
from agent.entrypoints.http.ingest import INGEST_PATH, PROOF_HEADER, SHAPES_OF
from agent.entrypoints.http.kubernetes_token import AUDIENCE
from agent.entrypoints.monitor.log_monitor import MOST_STREAMS
from agent.settings import VARIABLES


@pytest.fixture(scope="module")
def guide(root):
    return (root / "docs" / "kubernetes.md").read_text()


@pytest.fixture(scope="module")
def blocks(guide):
    """The commands of each block."""
    return [block.strip().splitlines() for block in re.findall(r"```\n(.*?)```", guide, re.DOTALL)]


@pytest.fixture(scope="module")
def objects(root):
    """Kind, namespace and name of every manifest, with its body."""
    files = sorted((root / "deploy" / "kubernetes").glob("*.yaml"))
    bodies = [b for f in files if f.name != "kustomization.yaml" for b in yaml.safe_load_all(f.read_text())]
    return {(b["kind"], b["metadata"].get("namespace", ""), b["metadata"]["name"]): b for b in bodies}


def test_five_commands_lead_to_the_first_incident(root, blocks, objects):
    """Build, look, apply, check, open: every file, object, port and command of them exists."""
    build, look, apply, check, reach = blocks[0]
    image = re.search(r"REGISTRY/(\S+):(\S+) \.", build)
    kustomization = yaml.safe_load((root / "deploy" / "kubernetes" / "kustomization.yaml").read_text())
    assert [(i["name"], i["newTag"]) for i in kustomization["images"]] == [(image[1], image[2])]
    for command in (build, look, apply):
        for path in re.findall(r"deploy/[A-Za-z/]+", command):
            assert (root / path).exists(), path
    namespace, name, rest = re.search(r"-n (\S+) exec deploy/(\S+) -- sre-agent (\w+)", check).groups()
    assert ("Deployment", namespace, name) in objects
    assert rest in COMMANDS
    namespace, name, port = re.search(r"-n (\S+) port-forward service/(\S+) \d+:(\d+)", reach).groups()
    assert [row["port"] for row in objects["Service", namespace, name]["spec"]["ports"]] == [int(port)]


def test_every_file_that_is_named_exists(root, guide):
    for path in re.findall(r"`((?:deploy|docs|agent|tools)/[A-Za-z0-9_./-]+)`", guide):
        assert (root / path).exists(), path


def test_every_setting_that_is_named_is_read(guide):
    known = set(VARIABLES) | {"BASE", "PLAN", "REGISTRY", "PROJECT", "LOCATION", "CLUSTER", "CONTEXT", "NAME"}
    assert set(re.findall(r"`([A-Z][A-Z_]{3,})(?:=[^`]*)?`", guide)) <= known
    assert {"LEASE", "INGEST_SECRETS"} <= set(re.findall(r"[A-Z_]{4,}", guide))


def test_a_token_is_made_for_whoever_may_decide(root, blocks, objects):
    """Account and audience of the command are those of the manifests and of the check."""
    (command,) = [line for block in blocks for line in block if "create token" in line]
    namespace, account, audience = re.search(r"-n (\S+) create token (\S+) --audience ([a-z-]+)", command).groups()
    assert ("ServiceAccount", namespace, account) in objects
    assert audience == AUDIENCE
    policy = parse_policy((root / "deploy" / "kubernetes" / "policy.toml").read_text())
    assert f"system:serviceaccount:{namespace}:{account}" in {a.kubernetes for a in policy.approvers}


def test_senders_find_the_address_that_is_served(guide, objects):
    for host, namespace, path in re.findall(r"`http://([a-z-]+)\.([a-z-]+)(/\S+?)`", guide):
        assert ("Service", namespace, host) in objects
        assert path.removeprefix(INGEST_PATH) in SHAPES_OF
    assert PROOF_HEADER in guide.lower()
    assert f"up to {MOST_STREAMS} running" in guide
