"""Cloud TPU on loopback: a gRPC servicer made of the real client library's own messages, and a node's metadata server.

The rules are those that google-cloud-tpu 1.28.0 documents beside its messages; not yet held against a live project. A node has
one worker. Operations are done at once. Not there: reservations, IAM, quota, multislice.
"""

import base64
import hashlib
import re
import threading
from collections.abc import Callable
from concurrent import futures
from urllib.parse import parse_qs, urlsplit

import grpc
from google.cloud import tpu_v2
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from tests.loopback import Loopback, Reply, Request

State = tpu_v2.QueuedResourceState.State
METHODS = (
    "GetNode",
    "UpdateNode",
    "GetGuestAttributes",
    "GetQueuedResource",
    "ListQueuedResources",
    "DeleteQueuedResource",
)
DELETABLE = {"ACCEPTED", "FAILED", "SUSPENDED"}


class TpuStandIn:
    """Nodes and queued resources by their full names.

    Once, by method: ``refuse`` is its answer in place of the work, ``lose`` its answer after the work, ``before`` what happens
    right before the work.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, tpu_v2.Node] = {}
        self.queued: dict[str, tpu_v2.QueuedResource] = {}
        self.guest: dict[str, str] = {}
        self.calls: list[str] = []
        self.refuse: dict[str, tuple[grpc.StatusCode, str]] = {}
        self.before: dict[str, Callable[[], None]] = {}
        self.lose: dict[str, grpc.StatusCode] = {}
        self._count = 0
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        handlers = {name: self._handler(name) for name in METHODS}
        service = grpc.method_handlers_generic_handler("google.cloud.tpu.v2.Tpu", handlers)
        self._server.add_generic_rpc_handlers((service,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def close(self) -> None:
        self._server.stop(0).wait(5)

    def _handler(self, name: str) -> grpc.RpcMethodHandler:
        snake = re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()

        def answer(request, context):
            self.calls.append(name)
            if name in self.refuse:
                context.abort(*self.refuse.pop(name))
            if name in self.before:
                self.before.pop(name)()
            answered = getattr(self, f"_{snake}")(request, context)
            if name in self.lose:
                context.abort(self.lose.pop(name), "the answer was lost")
            return answered

        kind = getattr(tpu_v2, f"{name}Request")
        return grpc.unary_unary_rpc_method_handler(
            answer, request_deserializer=kind.deserialize, response_serializer=_serialize
        )

    def _get_node(self, request, context):
        return self._known(self.nodes, request.name, context)

    def _update_node(self, request, context):
        node = self._known(self.nodes, request.node.name, context)
        paths = set(request.update_mask.paths)
        if not paths or paths - {"description", "tags", "labels", "metadata"}:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"update_mask {sorted(paths)} is not supported")
        for path in paths:
            held = getattr(node, path)
            if isinstance(held, str):
                setattr(node, path, getattr(request.node, path))
            else:
                setattr(
                    node,
                    path,
                    type(held)(getattr(request.node, path)) if path == "tags" else dict(getattr(request.node, path)),
                )
        return self._done(node.name, tpu_v2.Node.pb(node))

    def _get_guest_attributes(self, request, context):
        node = self._known(self.nodes, request.name, context)
        if node.metadata.get("enable-guest-attributes", "").upper() != "TRUE":
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "guest attributes are not enabled")
        found = []
        for path, value in self.guest.items():
            if path.startswith(request.query_path.strip("/")):
                namespace, _, key = path.partition("/")
                found.append(tpu_v2.GuestAttributesEntry(namespace=namespace, key=key, value=value))
        value = tpu_v2.GuestAttributesValue(items=found)
        one = tpu_v2.GuestAttributes(query_path=request.query_path, query_value=value)
        return tpu_v2.GetGuestAttributesResponse(guest_attributes=[one] if found else [])

    def _get_queued_resource(self, request, context):
        return self._known(self.queued, request.name, context)

    def _list_queued_resources(self, request, context):
        here = [kept for name, kept in self.queued.items() if name.startswith(f"{request.parent}/")]
        return tpu_v2.ListQueuedResourcesResponse(queued_resources=here)

    def _delete_queued_resource(self, request, context):
        kept = self._known(self.queued, request.name, context)
        if kept.state.state.name not in DELETABLE and not request.force:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"{request.name} is {kept.state.state.name}")
        del self.queued[request.name]
        return self._done(request.name, empty_pb2.Empty())

    def _known(self, kept, name, context):
        if name not in kept:
            context.abort(grpc.StatusCode.NOT_FOUND, f"Resource '{name}' was not found")
        return kept[name]

    def _done(self, name, result) -> operations_pb2.Operation:
        self._count += 1
        parent = "/".join(name.split("/")[:4])
        operation = operations_pb2.Operation(name=f"{parent}/operations/op-{self._count}", done=True)
        operation.response.Pack(result)
        return operation


def _serialize(message) -> bytes:
    kind = type(message)
    return bytes(kind.serialize(message) if hasattr(kind, "serialize") else message.SerializeToString())


class MetadataServer:
    """What a node asks at metadata.google.internal, of one node of a stand-in; secrets are Secret Manager's."""

    def __init__(self, cloud: TpuStandIn, node: str, secrets: dict[str, str] | None = None) -> None:
        self.cloud, self.node, self.preempted = cloud, node, False
        self.secrets = secrets or {}
        self._server = Loopback(self._reply, methods=["GET", "PUT"], keep_alive=True)
        self.host, self.close = f"127.0.0.1:{self._server.port}", self._server.close

    def _reply(self, request: Request) -> Reply:
        status, body = self._answer(request)
        return status, body, {"ETag": hashlib.sha256(body).hexdigest()[:16]}

    def _answer(self, request: Request) -> tuple[int, bytes]:
        if request.command == "PUT":
            self.cloud.guest[request.path.partition("/guest-attributes/")[2]] = request.body.decode()
            return 200, b""
        if request.path.startswith("/v1/"):
            return self.secret(request.path)
        if request.headers.get("Metadata-Flavor") != "Google":
            return 403, b"Missing Metadata-Flavor:Google header."
        return self.read(request.path)

    def read(self, path: str) -> tuple[int, bytes]:
        parts = urlsplit(path)
        query = parse_qs(parts.query)
        name = parts.path.removeprefix("/computeMetadata/v1/instance/")
        if name == "preempted":
            return 200, str(self.preempted).upper().encode()
        if name == "../project/project-id":
            return 200, b"example-project"
        if name == "service-accounts/default/token":
            return 200, b'{"access_token": "ya29.node", "expires_in": 3599, "token_type": "Bearer"}'
        if name.startswith("guest-attributes/"):
            found = self.cloud.guest.get(name.removeprefix("guest-attributes/"))
            return (404, b"") if found is None else (200, found.encode())
        key = name.removeprefix("attributes/")
        limit = float(query.get("timeout_sec", ["0"])[0]) if "wait_for_change" in query else 0.0
        last = query.get("last_etag", ["0"])[0]
        gate = threading.Event()
        waited = 0.0
        while True:
            value = self.cloud.nodes[self.node].metadata.get(key) if self.node in self.cloud.nodes else None
            changed = value is not None and hashlib.sha256(value.encode()).hexdigest()[:16] != last
            if changed or waited >= limit:
                return (404, b"") if value is None else (200, value.encode())
            gate.wait(0.02)
            waited += 0.02

    def secret(self, path: str) -> tuple[int, bytes]:
        name = path.removeprefix("/v1/projects/example-project/secrets/").partition("/")[0]
        if name not in self.secrets:
            return 403, b'{"error": {"code": 403}}'
        data = base64.b64encode(self.secrets[name].encode()).decode()
        return 200, f'{{"payload": {{"data": "{data}"}}}}'.encode()
