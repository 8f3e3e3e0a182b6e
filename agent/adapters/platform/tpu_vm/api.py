"""The calls to Cloud TPU's API v2, each with its deadline, none repeated behind our back, errors made ours."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from agent.adapters.platform.google_errors import Hints, translated
from agent.errors import ExtraMissing, InputRejected, SreError
from agent.ports.platform import NotDeployed

READ_S: Final = 20.0
WRITE_S: Final = 60.0
RIGHTS: Final[Mapping[str, str]] = {
    "get_node": "tpu.nodes.get",
    "update_node": "tpu.nodes.update",
    "get_guest_attributes": "tpu.nodes.getGuestAttributes",
    "get_queued_resource": "tpu.queuedResources.get",
    "delete_queued_resource": "tpu.queuedResources.delete",
}
"""The right that each method of the client needs, and nothing beyond; ``infra`` and docs/tpu.md name the same."""
HINTS: Final = Hints(
    refused=f"give this identity {', '.join(sorted(RIGHTS.values()))}, see docs/tpu.md",
    not_found="look for its name, project and location in services.toml",
    quota="ask for quota of this TPU in this zone, or delete suspended queued resources that hold it",
)


def default_client() -> Any:
    """Return a client with this process's own credentials."""
    from google.cloud import tpu_v2

    return tpu_v2.TpuClient()


def client_at(address: str) -> Any:
    """Return the client of a stand-in at ``HOST:PORT``, in the clear and without credentials."""
    import grpc

    return client_over(grpc.insecure_channel(address))


def client_over(channel: Any) -> Any:
    """Return a client over a gRPC channel, as a stand-in on loopback needs it."""
    from google.cloud import tpu_v2
    from google.cloud.tpu_v2.services.tpu.transports import TpuGrpcTransport

    return tpu_v2.TpuClient(transport=TpuGrpcTransport(channel=channel))


class TpuApi:
    """Calls the API and returns its messages.

    Every method raises our errors only: InputRejected, StateConflict, PolicyRefused, DependencyFailed.

    Args:
        connect: Makes the client, at the first call, because it is slow to import.
    """

    def __init__(self, connect: Callable[[], Any] = default_client) -> None:
        self._connect = connect
        self._client: Any = None

    def node(self, name: str) -> Any | None:
        """Return a ``Node``, or None where there is none of that name."""
        return self._or_none("get_node", f"TPU node {name!r} was not read", {"name": name})

    def queued_resource(self, name: str) -> Any | None:
        """Return a ``QueuedResource``, or None where there is none of that name."""
        return self._or_none("get_queued_resource", f"queued resource {name!r} was not read", {"name": name})

    def report(self, node: str) -> str:
        """Return what the node's script reported last, as it wrote it; empty where it wrote nothing.

        Args:
            node: Full resource name.
        """
        asked = {"name": node, "query_path": "sre-agent/status", "worker_ids": ["0"]}
        try:
            found = self._or_none("get_guest_attributes", f"the report of TPU node {node!r} was not read", asked)
        except InputRejected:
            return ""  # a node whose guest attributes are switched off refuses the question
        items = [one for part in found.guest_attributes for one in part.query_value.items] if found else []
        return next((str(one.value) for one in items if (one.namespace, one.key) == ("sre-agent", "status")), "")

    def set_metadata(self, node: str, metadata: Mapping[str, str], *, within_s: float) -> None:
        """Replace the metadata of a node; the API takes no precondition.

        Args:
            node: Full resource name.
            metadata: All of it: what is left out is gone.
            within_s: How long the answer may take, ``WRITE_S`` at most.
        """
        request = {"node": {"name": node, "metadata": dict(metadata)}, "update_mask": {"paths": ["metadata"]}}
        what = f"TPU node {node.rpartition('/')[2]!r} was not changed"
        self._call("update_node", what, request, min(WRITE_S, within_s))

    def delete_queued_resource(self, name: str, *, within_s: float) -> None:
        """Delete a queued resource that has no node; never by force, so that Cloud TPU refuses an active one.

        Args:
            name: Full resource name.
            within_s: How long the answer may take, ``WRITE_S`` at most.
        """
        what = f"queued resource {name.rpartition('/')[2]!r} was not deleted"
        self._call("delete_queued_resource", what, {"name": name, "force": False}, min(WRITE_S, within_s))

    def _or_none(self, method: str, what: str, request: Mapping[str, Any]) -> Any | None:
        from google.api_core.exceptions import NotFound

        try:
            return self._call(method, what, request, READ_S)
        except SreError as error:
            if isinstance(error.__cause__, NotFound):
                return None
            raise

    def _call(self, method: str, what: str, request: Mapping[str, Any], timeout_s: float) -> Any:
        assert method in RIGHTS, method
        try:
            if self._client is None:
                self._client = self._connect()
            return getattr(self._client, method)(request=request, retry=None, timeout=timeout_s)
        except ImportError as error:
            raise extra_missing() from error
        except Exception as error:
            raise translated(error, what, HINTS) from error


def extra_missing() -> ExtraMissing:
    """Return the refusal of an installation without the client."""
    return ExtraMissing("Cloud TPU was not asked", extra="tpu", package="google-cloud-tpu")


def not_there(service: str, node: str) -> NotDeployed:
    """Return the refusal of a node that is configured and does not exist."""
    return NotDeployed(
        f"TPU node {service!r} was not found",
        why=f"Cloud TPU has neither {node!r} nor its queued resource",
        hint="look for its name, project and location in services.toml",
    )
