"""Accelerator quotas and TPU queued resources, read from answers in the form of their REST references."""

import pytest

from agent.adapters.clock import SystemClock
from agent.adapters.google.quotas import CloudTpuQueue, GoogleQuotas
from agent.adapters.google.rest import GoogleRest
from agent.errors import PolicyRefused
from agent.ports.quotas import QuotaOf
from tests.contracts import google_rest

RUN = "/v1/projects/p/locations/global/services/run.googleapis.com/quotaInfos"
L4 = "run.googleapis.com/nvidia_l4_gpu_allocation_no_zonal_redundancy"
INFOS = {
    "quotaInfos": [
        {
            "quotaId": "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion",
            "metric": L4,
            "service": "run.googleapis.com",
            "dimensions": ["region"],
            "dimensionsInfos": [
                {"details": {"value": "3"}, "applicableLocations": ["us-central1", "europe-west4"]},
                {"details": {}, "applicableLocations": ["asia-east1"]},
            ],
        },
        {"quotaId": "JobRunsPerMinute", "metric": "m", "refreshInterval": "minute", "dimensionsInfos": []},
    ]
}
USED = {
    "timeSeries": [
        {
            "metric": {"labels": {"quota_metric": L4}},
            "resource": {"type": "consumer_quota", "labels": {"location": "us-central1"}},
            "points": [{"value": {"int64Value": "2"}}, {"value": {"int64Value": "9"}}],
        }
    ]
}


@pytest.fixture
def apis():
    server = google_rest.GoogleRest()
    yield server
    server.close()


def quotas(apis, of):
    found = GoogleQuotas(GoogleRest(lambda: "t", at=apis.at), SystemClock()).read(of, "p")
    return [(q.quota, q.location, q.limit, q.used, q.free) for q in found]


def test_cloud_runs_limits_come_with_what_is_used_where_that_is_known(apis):
    """The newest point counts; a place without a series is not known, and never called free."""
    apis.answers |= {RUN: INFOS, "/v3/projects/p/timeSeries": USED}
    name = INFOS["quotaInfos"][0]["quotaId"]
    assert quotas(apis, QuotaOf.CLOUD_RUN) == [
        (name, "us-central1", 3, 2, 1),
        (name, "europe-west4", 3, None, None),
        (name, "asia-east1", None, None, None),
    ]
    asked = next(query for service, _, query, _ in apis.seen if service == "monitoring")
    assert 'service="run.googleapis.com"' in asked["filter"]


def test_without_the_right_to_read_usage_the_limits_stay(apis):
    apis.answers |= {RUN: INFOS, "/v3/projects/p/timeSeries": (403, "monitoring.timeSeries.list denied")}
    assert {(limit, used) for _, _, limit, used, _ in quotas(apis, QuotaOf.CLOUD_RUN)} == {(3, None), (None, None)}


def test_compute_engine_tells_both_for_every_region_and_for_all_of_them(apis):
    apis.answers["/compute/v1/projects/p"] = {
        "quotas": [{"metric": "GPUS_ALL_REGIONS", "limit": 1.0, "usage": 0.0}, {"metric": "NETWORKS", "limit": 5.0}]
    }
    apis.answers["/compute/v1/projects/p/regions"] = [
        {"items": [{"name": "us-east4", "quotas": [{"metric": "NVIDIA_L4_GPUS", "limit": 8.0, "usage": 6.0}]}]},
        {"items": [{"name": "us-west1", "quotas": [{"metric": "CPUS", "limit": 8.0, "usage": 6.0}]}]},
    ]
    assert quotas(apis, QuotaOf.COMPUTE) == [
        ("GPUS_ALL_REGIONS", "global", 1, 0, 1),
        ("NVIDIA_L4_GPUS", "us-east4", 8, 6, 2),
    ]


def test_what_may_not_be_read_is_refused_with_the_reason(apis):
    apis.answers[RUN] = (403, "Cloud Quotas API has not been used in project p before")
    with pytest.raises(PolicyRefused, match="has not been used"):
        quotas(apis, QuotaOf.CLOUD_RUN)


# As the messages of google-cloud-tpu 1.28.0 (tpu_v2) are written by protobuf's own JSON form, which is the REST form.
QUEUED = [
    {
        "name": "projects/p/locations/us-east5-b/queuedResources/vllm-qr",
        "tpu": {
            "nodeSpec": [
                {
                    "parent": "projects/p/locations/us-east5-b",
                    "nodeId": "vllm-node",
                    "node": {"acceleratorType": "v6e-4", "runtimeVersion": "v2-alpha-tpuv6e"},
                }
            ]
        },
        "spot": {},
        "state": {"state": "SUSPENDED"},
        "createTime": "2026-11-20T10:00:00Z",
    },
    {"name": "projects/p/locations/us-east5-b/queuedResources/new", "state": {"state": "WAITING_FOR_RESOURCES"}},
    {"name": "projects/p/locations/us-east5-b/queuedResources/odd", "state": "?", "tpu": [], "createTime": None},
]


def test_queued_resources_are_read_with_what_holds_quota(apis):
    apis.answers["/v2/projects/p/locations"] = {"locations": [{"locationId": "us-east5-b"}, {"locationId": "us-a"}, {}]}
    apis.answers["/v2/projects/p/locations/us-east5-b/queuedResources"] = {"queuedResources": QUEUED}
    queue = CloudTpuQueue(GoogleRest(lambda: "t", at=apis.at))
    assert queue.zones("p") == ("us-a", "us-east5-b")
    first, second, odd = queue.read("p", "us-east5-b")
    assert (first.name, first.state, first.accelerator_type) == ("vllm-qr", "SUSPENDED", "v6e-4")
    assert (first.nodes, first.spot, first.holds_quota) == (("vllm-node",), True, True)
    assert (second.state, second.holds_quota, second.spot) == ("WAITING_FOR_RESOURCES", False, False)
    assert (odd.state, odd.accelerator_type, odd.holds_quota) == ("unknown", "", False)
