"""A receiver of OTLP over HTTP on a loopback socket: it reads OpenTelemetry's own protobuf messages, as a collector does."""

import gzip
import threading

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.loopback import Loopback


class Received:
    """A span as it arrived.

    Attributes:
        trace: 32 hex digits.
        parent: 16 hex digits; empty of a root.
    """

    def __init__(self, span, resource):
        self.trace, self.id, self.parent = span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()
        self.name, self.kind, self.status = span.name, span.kind, span.status.code
        self.attributes = {item.key: _value(item.value) for item in span.attributes}
        self.resource = {item.key: _value(item.value) for item in resource.attributes}
        self.links = [link.trace_id.hex() for link in span.links]
        self.began, self.ended = span.start_time_unix_nano, span.end_time_unix_nano

    def __repr__(self):
        return f"{self.name} {self.trace[:6]}/{self.id[:6]} < {self.parent[:6]} {self.attributes}"


def _value(value):
    kind = value.WhichOneof("value")
    return [_value(one) for one in value.array_value.values] if kind == "array_value" else getattr(value, kind)


class OtlpReceiver:
    """Keeps what is exported to it; ``status`` says how it answers, and ``hangs`` that it does not."""

    def __init__(self, status=200):
        self.status, self.hangs, self.posts = status, threading.Event(), 0
        self.bodies, self._lock = [], threading.Lock()
        self._server = Loopback(self._answer, methods=["POST"])
        self.url = self._server.url

    @property
    def spans(self):
        with self._lock:
            requests = [ExportTraceServiceRequest.FromString(body) for body in self.bodies]
        return [
            Received(span, batch.resource)
            for request in requests
            for batch in request.resource_spans
            for scope in batch.scope_spans
            for span in scope.spans
        ]

    def stop(self):
        self.hangs.set()
        self._server.close()

    def _answer(self, request):
        self.posts += 1
        if self.status is None:
            self.hangs.wait(60)
            return None
        if self.status == 200 and request.path == "/v1/traces":
            assert request.headers["Content-Type"] == "application/x-protobuf"
            with self._lock:
                zipped = request.headers.get("Content-Encoding") == "gzip"
                self.bodies.append(gzip.decompress(request.body) if zipped else request.body)
        answer = ExportTraceServiceResponse().SerializeToString()
        return self.status if request.path == "/v1/traces" else 404, answer, {"Content-Type": "application/x-protobuf"}


SENDERS = ("spans", "spans-close")  # the second ends behind the SDK's own thread


def wait_for_senders(limit_s=30):
    """Wait until tracers that are closed send nothing in the background any more.

    The exporter draws by chance how long it waits before it tries again; Hypothesis fails a test beside which somebody does.
    """
    for thread in threading.enumerate():
        if thread.name in SENDERS:
            thread.join(limit_s)


def orphans(spans):
    """Return the spans whose parent did not arrive."""
    ids = {(span.trace, span.id) for span in spans}
    return [span for span in spans if span.parent and (span.trace, span.parent) not in ids]
