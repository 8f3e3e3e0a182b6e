"""Cloud Logging's ListLogEntries on the real gRPC wire: evaluates the clauses that we send, pages, and can fail.

stand_in = LoggingStandIn()
stand_in.start()
stand_in.entries.append(entry("a line", at, service="gemma", revision="gemma-1", instance="i"))
logs = CloudLogs("p", emulator=f"127.0.0.1:{stand_in.port}")
stand_in.stop()
"""

import json
from concurrent import futures
from datetime import datetime

import grpc
from google.api.monitored_resource_pb2 import MonitoredResource
from google.cloud.audit.audit_log_pb2 import AuditLog
from google.cloud.logging_v2.types import ListLogEntriesRequest, ListLogEntriesResponse, LogEntry
from google.protobuf.any_pb2 import Any
from google.protobuf.timestamp_pb2 import Timestamp


class LoggingStandIn(grpc.GenericRpcHandler):
    """The server; ``calls`` holds every request, ``failure`` a status and its words for all of them."""

    PAGE = 1000

    def __init__(self):
        self.entries = []
        self.calls = []
        self.failure = None
        self.port = 0
        self._server = None

    def start(self):
        self._server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[self])
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def stop(self):
        self._server.stop(0).wait()

    def service(self, details):
        if details.method != "/google.logging.v2.LoggingServiceV2/ListLogEntries":
            return None
        return grpc.unary_unary_rpc_method_handler(
            self._list,
            request_deserializer=ListLogEntriesRequest.deserialize,
            response_serializer=ListLogEntriesResponse.serialize,
        )

    def _list(self, request, context):
        self.calls.append(request)
        if self.failure is not None:
            context.abort(*self.failure)
        clauses = [line for line in request.filter.splitlines() if line]
        back = {"timestamp asc": False, "timestamp desc": True}[request.order_by]
        held = (e for e in self.entries if all(_holds(c, e) for c in clauses))
        found = sorted(held, key=lambda e: e.timestamp, reverse=back)
        begin = int(request.page_token or 0)
        size = min(request.page_size or self.PAGE, self.PAGE)
        more = begin + size < len(found)
        return ListLogEntriesResponse(
            entries=found[begin : begin + size], next_page_token=str(begin + size) if more else ""
        )


def _holds(clause, entry):
    if clause.startswith("("):
        return any(_holds(part.strip("() "), entry) for part in clause[1:-1].split(" OR "))
    if clause.startswith("log_id("):
        return entry.log_name.endswith(clause[8:-1].strip('"').replace("/", "%2F"))
    for sign, holds in ((">=", lambda a, b: a >= b), ("<=", lambda a, b: a <= b), ("=", lambda a, b: a == b)):
        name, found, value = clause.partition(sign)
        if found:
            return holds(_field(name, entry), _value(name, json.loads(value)))
    raise AssertionError(f"the stand-in does not know the clause {clause!r}")


def _field(name, entry):
    kind, _, label = name.rpartition(".")
    if name == "timestamp":
        return entry.timestamp
    if name == "resource.type":
        return entry.resource.type
    return (entry.resource.labels if kind == "resource.labels" else entry.labels).get(label)


def _value(name, value):
    return datetime.fromisoformat(value) if name == "timestamp" else value


def entry(text, at, *, service, revision, instance, log="stdout", **payload):
    stamp = Timestamp()
    stamp.FromDatetime(at)
    labels = {"service_name": service, "revision_name": revision, "location": "us-east4", "project_id": "p"}
    return LogEntry(
        log_name=f"projects/p/logs/run.googleapis.com%2F{log}",
        resource=MonitoredResource(type="cloud_run_revision", labels=labels),
        labels={"instanceId": instance, "container_name": "vllm-1"},
        timestamp=stamp,
        insert_id=f"{at.timestamp()}{text}",
        **(payload or {"text_payload": text}),
    )


def audit_entry(at, *, service, by, method="google.cloud.run.v2.Services.UpdateService", code=0):
    """An entry of the Admin Activity audit log about a Cloud Run service, with its payload as Google packs it."""
    payload = Any()
    audit = AuditLog(service_name="run.googleapis.com", method_name=method)
    audit.authentication_info.principal_email = by
    audit.status.code = code
    payload.Pack(audit)
    made = entry("", at, service=service, revision="", instance="", log="x", proto_payload=payload)
    made.log_name = "projects/p/logs/cloudaudit.googleapis.com%2Factivity"
    return made
