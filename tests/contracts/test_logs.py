"""What every Logs port promises: the instance's own log from its start, within a limit, or an error that says why."""

from datetime import UTC, datetime, timedelta

import grpc
import pytest
from google.cloud.audit.audit_log_pb2 import AuditLog
from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
from google.cloud.logging_v2.services.logging_service_v2.transports import LoggingServiceV2GrpcTransport
from google.cloud.logging_v2.types import LogEntry
from google.protobuf.any_pb2 import Any

from agent.adapters.logs.cloud_logging import CloudLogs, tpu_worker
from agent.adapters.logs.file import FileLogs
from agent.adapters.logs.kubernetes import KubernetesLogs, PodLogs
from agent.adapters.logs.log_analytics import LogAnalyticsLogs
from agent.errors import DependencyFailed, InputRejected, PolicyRefused
from agent.ports.logs import InstanceLog, LogLine
from tests.contracts import cloud_logging_server as server
from tests.contracts.log_analytics_server import WORKSPACE, LogAnalytics
from tools.kubelet_logs import KubeletLogs

START = datetime(2026, 5, 30, 1, 45, tzinfo=UTC)
LATER = START + timedelta(hours=1)
SERVICE, REVISION, INSTANCE = "gemma4-vllm", "gemma4-vllm-00005-k2f", "0087244a80" * 12


@pytest.fixture
def stand_in():
    """A running stand-in, and a real client that speaks to it over gRPC."""
    api = server.LoggingStandIn()
    api.start()
    channel = grpc.insecure_channel(f"127.0.0.1:{api.port}")
    api.client = LoggingServiceV2Client(transport=LoggingServiceV2GrpcTransport(channel=channel))
    yield api
    channel.close()
    api.stop()


class Recorded:
    """The recorded-file twin."""

    def __init__(self, _):
        self._logs = []
        self.logs = FileLogs(lambda service: tuple(log for log in self._logs if log.service == service))

    def record(self, count, *, service=SERVICE, revision=REVISION, instance=INSTANCE, at=START):
        lines = tuple(LogLine(at=at + timedelta(seconds=n), text=f"line {n}") for n in range(count))
        self._logs.append(
            InstanceLog(service=service, revision=revision, instance=instance, lines=lines, complete=True)
        )


class InTheCloud:
    """Cloud Logging's client against the stand-in."""

    def __init__(self, request):
        self._api = request.getfixturevalue("stand_in")
        self.logs = CloudLogs("p", client=self._api.client)

    def record(self, count, *, service=SERVICE, revision=REVISION, instance=INSTANCE, at=START):
        for n in range(count):
            self._api.entries.append(entry(f"line {n}", at + timedelta(seconds=n), service, revision, instance))


class InTheWorkspace:
    """Log Analytics' client against a stand-in."""

    def __init__(self, request):
        self._server = LogAnalytics()
        request.addfinalizer(self._server.close)
        self.logs = LogAnalyticsLogs(self._server.client, lambda _: WORKSPACE)

    def record(self, count, *, service=SERVICE, revision=REVISION, instance=INSTANCE, at=START):
        self._server.rows += [
            (at + timedelta(seconds=n), service, revision, instance, f"line {n}") for n in range(count)
        ]


class InTheCluster:
    """Pods of a real API server, whose ``pods/log`` asks a kubelet that is played; a namespace for each service."""

    def __init__(self, request):
        self._cluster = request.getfixturevalue("kube_cluster")
        self._of, self._text = {}, {}
        certificate = request.getfixturevalue("kube_plane").certificate
        self._kubelet = KubeletLogs(
            certificate, lambda space, pod, *_: self._text.get((space, pod)), began_at=START, step=timedelta(seconds=1)
        )
        request.addfinalizer(self._kubelet.close)
        self.logs = KubernetesLogs(self._of.get)

    def record(self, count, *, service=SERVICE, revision=REVISION, instance=INSTANCE, at=START):
        assert at == START
        if service not in self._of:
            made = self._cluster()
            self._kubelet.on_node(made.api, made.namespace)
            self._of[service] = PodLogs(api=made.api, namespace=made.namespace, container=None)
        api, space, _ = self._of[service]
        base = f"/api/v1/namespaces/{space}"
        owner = {"apiVersion": "example.com/v1", "kind": "ReplicaSet", "name": revision, "uid": "u", "controller": True}
        about = {"name": instance, "ownerReferences": [owner]}  # of a group that no controller here knows
        spec = {"nodeName": space, "containers": [{"name": "vllm", "image": "i"}]}
        api.create(f"{base}/pods", {"metadata": about, "spec": spec})
        self._text[space, instance] = "".join(f"line {n}\n" for n in range(count))


def entry(text, at, service=SERVICE, revision=REVISION, instance=INSTANCE, log="stdout", **payload):
    return server.entry(text, at, service=service, revision=revision, instance=instance, log=log, **payload)


KUBE = pytest.param(InTheCluster, id="kubernetes", marks=(pytest.mark.kube, pytest.mark.xdist_group("kube")))


AZURE = pytest.param(InTheWorkspace, id="log_analytics")


@pytest.fixture(params=[pytest.param(Recorded, id="file"), pytest.param(InTheCloud, id="cloud_logging"), AZURE, KUBE])
def place(request):
    return request.param(request)


def asked(place, *, revision=REVISION, instance=INSTANCE, until=LATER, **more):
    return place.logs.instance_log(SERVICE, revision=revision, instance=instance, until=until, **more)


@pytest.mark.journey
def test_an_instances_log_is_read_from_its_start_in_order(place):
    place.record(700)
    found = asked(place)
    assert (found.service, found.revision, found.instance) == (SERVICE, REVISION, INSTANCE)
    assert [line.text for line in found.lines] == [f"line {n}" for n in range(700)]
    assert found.lines[0].at == START
    assert found.complete
    assert (found.cut_after, found.cut_lines) == (None, None)


def test_another_instance_revision_or_service_is_not_read(place):
    place.record(2)
    place.record(3, revision="gemma4-vllm-00006-abc", instance="other")
    place.record(4, service="gemma4-vllm-rtx")
    assert len(asked(place).lines) == 2
    assert len(asked(place, revision="gemma4-vllm-00006-abc", instance="other").lines) == 3
    assert asked(place, instance="nobody") is None


def test_a_revision_without_an_instance_is_read_too(place):
    place.record(3)
    assert len(asked(place, instance=None).lines) == 3


def test_what_came_later_is_not_read(place):
    """The log as it was when the trouble was seen: lines of a later life of the instance say nothing about it."""
    place.record(10)
    assert len(asked(place, until=START + timedelta(seconds=4)).lines) == 5


def test_no_more_lines_than_asked_for_and_both_ends_are_among_them(place):
    """The start tells the phase, the end the cause."""
    place.record(2500)
    found = asked(place, limit=2000)
    texts = [line.text for line in found.lines]
    assert len(texts) == 2000
    assert texts[0] == "line 0"
    assert texts[-1] == "line 2499"
    assert texts == sorted(texts, key=lambda text: int(text.split()[1]))
    assert found.cut_after == 1000
    assert found.cut_lines in {500, None}  # None where nobody counted them


class TestCloudLogs:
    """What only the API can do."""

    def test_a_line_of_json_is_its_message_and_an_empty_one_is_empty(self, stand_in):
        stand_in.entries = [
            entry("", START, json_payload={"message": "said", "level": "x"}),
            entry("", START + timedelta(seconds=1), json_payload={"other": 1}),
            entry("system", START, log="varlog%2Fsystem"),
        ]
        found = CloudLogs("p", client=stand_in.client).instance_log(
            SERVICE, revision=REVISION, instance=INSTANCE, until=LATER
        )
        assert [line.text for line in found.lines] == ["said", '{"other": 1.0}']

    def test_a_minute_has_a_budget_of_calls(self, stand_in):
        """The read quota is one of requests by the minute; a long log costs two of them."""
        stand_in.entries = [entry(f"line {n}", START + timedelta(seconds=n)) for n in range(2500)]
        seconds = [0.0]
        logs = CloudLogs("p", budget=3, client=stand_in.client, now=lambda: seconds[0])
        ask = {"revision": REVISION, "instance": INSTANCE, "until": LATER}
        assert len(logs.instance_log(SERVICE, **ask).lines) == 2000
        with pytest.raises(DependencyFailed, match="3 calls were made within a minute"):
            logs.instance_log(SERVICE, **ask)
        assert len(stand_in.calls) == 3
        seconds[0] = 60.0
        assert len(logs.instance_log(SERVICE, **ask).lines) == 2000

    def test_a_filter_is_read_page_by_page_oldest_first(self, stand_in):
        stand_in.entries = [entry(f"line {n}", START + timedelta(seconds=n)) for n in range(2500)]
        logs = CloudLogs("p", client=stand_in.client)
        found = list(logs.entries('resource.type="cloud_run_revision"', limit=2200))
        assert [e["textPayload"] for e in found] == [f"line {n}" for n in range(2200)]
        assert found[0]["resource"]["labels"]["service_name"] == SERVICE
        assert len(stand_in.calls) == 3

    def test_audit_entries_come_as_the_sink_would_send_them(self, stand_in):
        audit = AuditLog(service_name="run.googleapis.com", method_name="/Services.ReplaceService")
        known, unknown = entry("", START, proto_payload=Any()), entry("", START, proto_payload=Any(type_url="x/y.Z"))
        LogEntry.pb(known).proto_payload.Pack(audit)
        stand_in.entries = [known, unknown]
        found = list(CloudLogs("p", client=stand_in.client).entries('resource.type="cloud_run_revision"'))
        assert found[0]["protoPayload"]["methodName"] == "/Services.ReplaceService"
        assert found[1]["protoPayload"] == {"@type": "x/y.Z"}

    def test_a_start_that_lies_further_back_than_we_look_is_not_claimed(self, stand_in):
        """An instance that has served for hours: its first lines here are not its start."""
        early = LATER - timedelta(hours=2, minutes=59)
        stand_in.entries = [entry(f"line {n}", early + timedelta(minutes=n)) for n in range(60)]
        logs = CloudLogs("p", client=stand_in.client)
        assert not logs.instance_log(SERVICE, revision=REVISION, instance=INSTANCE, until=LATER).complete

    def test_a_hostile_name_stays_inside_its_quotes(self, stand_in):
        stand_in.entries = [entry("line", START)]
        logs = CloudLogs("p", client=stand_in.client)
        name = f'{SERVICE}" OR resource.labels.service_name="x'
        assert logs.instance_log(name, revision=REVISION, instance=INSTANCE, until=LATER) is None

    @pytest.mark.parametrize(
        ("code", "ours"),
        [
            (grpc.StatusCode.INVALID_ARGUMENT, InputRejected),
            (grpc.StatusCode.PERMISSION_DENIED, PolicyRefused),
            (grpc.StatusCode.UNAUTHENTICATED, PolicyRefused),
            (grpc.StatusCode.RESOURCE_EXHAUSTED, DependencyFailed),
            (grpc.StatusCode.UNIMPLEMENTED, DependencyFailed),
        ],
    )
    def test_errors_become_ours(self, stand_in, code, ours):
        stand_in.failure = (code, "no")
        logs = CloudLogs("p", client=stand_in.client)
        with pytest.raises(ours, match="no"):
            list(logs.entries("x=1"))
        provisional = InputRejected if ours is InputRejected else DependencyFailed
        with pytest.raises(provisional):
            logs.instance_log(SERVICE, revision=REVISION, instance=INSTANCE, until=LATER)

    def test_a_log_that_nobody_gives_is_a_failure_within_the_time_of_one_call(self, stand_in):
        stand_in.failure = (grpc.StatusCode.UNAVAILABLE, "not now")
        with pytest.raises(DependencyFailed):
            CloudLogs("p", client=stand_in.client, read_s=0.5).instance_log(
                SERVICE, revision=REVISION, instance=INSTANCE, until=LATER
            )


def test_the_log_of_a_tpu_worker_is_that_of_its_node_and_worker(stand_in):
    """A worker's lines name no revision; another node's and another worker's are not read."""

    def worker_line(text, node, worker):
        line = server.entry(text, START, service="", revision="", instance="")
        line.resource.type = "tpu_worker"
        line.resource.labels.clear()
        line.resource.labels.update({"node_id": node, "worker_id": worker})
        line.log_name = "projects/p/logs/tpu.googleapis.com%2Fruntime_monitor"
        return line

    rows = (("ours", "vllm-node", "0"), ("other worker", "vllm-node", "1"), ("other node", "vllm-node-2", "0"))
    stand_in.entries += [worker_line(*row) for row in rows]
    logs = CloudLogs("p", client=stand_in.client, select=tpu_worker)

    def lines(instance, revision=None):
        found = logs.instance_log("vllm-node", revision=revision, instance=instance, until=LATER)
        return [line.text for line in found.lines]

    assert lines("vllm-node/0") == ["ours"]
    assert sorted(lines("vllm-node")) == sorted(lines(None, "vllm-node-sre-k1")) == ["other worker", "ours"]
