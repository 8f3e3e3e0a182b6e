"""Where to look further: addresses that a browser opens, commands that a shell takes; nothing is made up."""

import shlex
from datetime import UTC, datetime
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from agent.core.service.services import Service
from agent.entrypoints.console.platform_links import platform_links

AT = datetime(2026, 6, 8, 14, 31, tzinfo=UTC)


def links(revision="gemma-00005-k2f", **more):
    base = {"name": "gemma", "model": "m", "accelerator": "nvidia-l4", "owner": "console"}
    found = platform_links(Service.model_validate(base | more), revision, AT)
    return {link.label: link.url or link.command for link in found}


def test_cloud_run_has_the_log_of_the_revision_from_an_hour_before():
    found = links(platform="cloud_run", project="p", location="us-east4")
    log = urlsplit(found["Log"])
    assert (log.netloc, parse_qs(log.query)) == ("console.cloud.google.com", {"project": ["p"]})
    assert unquote(log.path) == (
        '/logs/query;query=resource.type="cloud_run_revision"\nresource.labels.service_name="gemma"\n'
        'resource.labels.revision_name="gemma-00005-k2f";startTime=2026-06-08T13:31:00Z'
    )
    assert found["Revisions"].endswith("/run/detail/us-east4/gemma/revisions?project=p")
    hostile = links('x"\nOR 1=1;a', platform="cloud_run", project="p", location="us-east4")["Log"]
    assert "\n" not in hostile
    assert '"' not in hostile


@pytest.mark.parametrize(
    ("service", "words"),
    [
        (
            {"platform": "kubernetes", "namespace": "llm", "workload": "statefulset/gemma", "container": "vllm"},
            ["kubectl", "logs", "statefulset/gemma", "--namespace", "llm", "--container", "vllm", "--tail", "100"],
        ),
        ({"platform": "kubernetes"}, ["kubectl", "logs", "deployment/gemma", "--tail", "100"]),
        (
            {"platform": "container_apps", "resource_group": "rg", "location": "eastus"},
            ["az", "containerapp", "logs", "show", "--name", "gemma", "--resource-group", "rg", "--tail", "100"],
        ),
    ],
    ids=["statefulset", "deployment", "container app"],
)
def test_a_platform_of_the_command_line_has_a_command(service, words):
    assert shlex.split(links(**service)["Log"]) == words


def test_instances_and_nodes_have_their_pages():
    ec2 = links(platform="ec2", location="us-east-1", instance="i-0123456789abcdef0", unit="vllm.service")
    assert ec2["Instance"].endswith("home?region=us-east-1#InstanceDetails:instanceId=i-0123456789abcdef0")
    assert ec2["Log, on the instance"] == "journalctl -u vllm.service -n 100"
    tpu = links(platform="tpu_vm", project="p", location="us-east5-b")
    assert tpu == {"TPU node": "https://console.cloud.google.com/compute/tpus/details/us-east5-b/gemma?project=p"}


def test_what_has_no_place_has_no_link():
    assert links(platform="host") == {}
    assert links(platform="container_apps") == {}
