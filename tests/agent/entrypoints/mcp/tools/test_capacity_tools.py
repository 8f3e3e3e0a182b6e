"""Room for accelerators as a client sees it: most room first, what cannot be read is said, and nothing is too long."""

import dataclasses
import json

import pytest

from agent.adapters.clock import SystemClock
from agent.app import google_capacity
from agent.entrypoints.mcp.open_tools import open_tools
from agent.entrypoints.mcp.server import build_server
from agent.entrypoints.mcp.tools.capacity_tools import CapacityTools
from agent.entrypoints.mcp.tools.result import RESULT_BYTES
from tests.agent.adapters.google.test_quotas import INFOS, QUEUED, RUN, USED
from tests.agent.entrypoints.mcp.test_server import called, talk, text_of
from tests.contracts import google_rest


@pytest.fixture
def apis():
    server = google_rest.GoogleRest()
    yield server
    server.close()


@pytest.fixture
def server(apis):
    """The server of this installation with Google's APIs on loopback."""
    capacity = CapacityTools(
        lambda: google_capacity.open_quotas(SystemClock(), at=apis.at),
        lambda: google_capacity.open_queued_resources(at=apis.at),
        project=lambda named: named or "p-from-settings",
        redact=lambda text: text.replace("ya29.secret", "[redacted]"),
    )
    return build_server(dataclasses.replace(open_tools(), capacity=capacity), version="0")


def test_quotas_come_with_the_most_room_first_and_what_was_not_read_is_named(server, apis):
    apis.answers |= {RUN: INFOS, "/v3/projects/project-p/timeSeries": USED}
    apis.answers[RUN.replace("/p/", "/project-p/")] = INFOS
    apis.answers["/compute/v1/projects/project-p"] = (403, "denied for ya29.secret")
    tpu = RUN.replace("/p/", "/project-p/").replace("run.googleapis", "tpu.googleapis")
    apis.answers[tpu] = {
        "quotaInfos": [
            {
                "quotaId": "TPUV6EPerProjectPerZoneForTPUAPI",
                "metric": "tpu.googleapis.com/v6e",
                "dimensionsInfos": [{"details": {"value": "16"}, "applicableLocations": ["us-east5-b"]}],
            }
        ]
    }
    shown = called("check_quota", {"project": "project-p"}, server=server).structured_content
    first = shown["quotas"][0]
    assert (first["platform"], first["location"], first["free"]) == ("cloud_run", "us-central1", 1)
    assert list(shown["unknown"]) == ["compute"]
    assert "denied" in shown["unknown"]["compute"]
    assert "ya29.secret" not in json.dumps(shown)
    only = called("check_quota", {"project": "project-p", "accelerator": "tpu-v6e"}, server=server).structured_content
    assert [row["quota"] for row in only["quotas"]] == ["TPUV6EPerProjectPerZoneForTPUAPI"]
    assert only["quotas"][0]["used"] is None


def test_suspended_resources_that_hold_quota_come_first_and_progress_is_told(server, apis):
    places = [{"locationId": f"us-zone{n}-a"} for n in range(3)]
    apis.answers["/v2/projects/project-p/locations"] = {"locations": places}
    apis.answers["/v2/projects/project-p/locations/us-zone0-a/queuedResources"] = {"queuedResources": QUEUED[1:2]}
    apis.answers["/v2/projects/project-p/locations/us-zone1-a/queuedResources"] = {"queuedResources": QUEUED[:1]}
    apis.answers["/v2/projects/project-p/locations/us-zone2-a/queuedResources"] = (500, "try later")
    told = []

    async def ask(client):
        async def said(done, total, message):
            told.append((done, total, message))

        return await client.call_tool("describe_capacity", {"project": "project-p"}, progress_callback=said)

    shown = talk(ask, server=server).structured_content
    assert [(r["name"], r["holds_quota"]) for r in shown["resources"]] == [("vllm-qr", True), ("new", False)]
    assert "1 suspended or failed ones hold quota" in shown["summary"]
    assert list(shown["unknown"]) == ["us-zone2-a"]
    assert [(done, total) for done, total, _ in told] == [(0, 3), (1, 3), (2, 3)]
    assert {service for service, *_ in apis.seen} == {"tpu"}


def test_many_rows_come_in_pages_that_together_are_all(server, apis):
    places = [f"region-{n}" for n in range(300)]
    infos = {"quotaInfos": [INFOS["quotaInfos"][0] | {"dimensionsInfos": [{"details": {"value": "3"}, "applicableLocations": places}]}]}  # fmt: skip
    apis.answers[RUN.replace("/p/", "/project-p/")] = infos
    found, offset = [], 0
    while offset is not None:
        result = called("check_quota", {"project": "project-p", "offset": offset}, server=server)
        assert len(text_of(result).encode()) <= RESULT_BYTES
        found += [row["location"] for row in result.structured_content["quotas"]]
        offset = result.structured_content["next_offset"]
    assert sorted(found) == sorted(places)


@pytest.mark.parametrize("project", ["../../x", "p?x=1", "P", ""])
def test_a_name_that_could_lead_elsewhere_is_refused(server, apis, project):
    assert called("check_quota", {"project": project}, server=server).is_error
    assert apis.seen == []
