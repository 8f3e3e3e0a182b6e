"""The calls to Cloud Run's Admin API v2, each with its deadline, none repeated behind our back, errors made ours."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agent.adapters.platform import google_errors
from agent.errors import InputRejected, SreError
from agent.ports.platform import NotDeployed

READ_S = 20.0
WRITE_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Clients:
    """The two generated clients: ``run_v2.ServicesClient`` and ``run_v2.RevisionsClient``."""

    services: Any
    revisions: Any


def default_clients() -> Clients:
    """Return clients with this process's own credentials."""
    from google.cloud import run_v2

    return Clients(services=run_v2.ServicesClient(), revisions=run_v2.RevisionsClient())


def clients_over(channel: Any) -> Clients:
    """Return clients over a gRPC channel, as a stand-in on loopback needs them."""
    from google.cloud import run_v2
    from google.cloud.run_v2.services.revisions.transports import RevisionsGrpcTransport
    from google.cloud.run_v2.services.services.transports import ServicesGrpcTransport

    return Clients(
        services=run_v2.ServicesClient(transport=ServicesGrpcTransport(channel=channel)),
        revisions=run_v2.RevisionsClient(transport=RevisionsGrpcTransport(channel=channel)),
    )


def clients_at(address: str) -> Clients:
    """Return clients of a stand-in at ``HOST:PORT``, in the clear and without credentials."""
    import grpc

    return clients_over(grpc.insecure_channel(address))


class CloudRunApi:
    """Calls the API and returns its messages.

    Every method raises our errors only: InputRejected, StateConflict, PolicyRefused, DependencyFailed.

    Args:
        connect: Makes the clients, at the first call, because they are slow to import.
    """

    def __init__(self, connect: Callable[[], Clients] = default_clients) -> None:
        self._connect = connect
        self._clients: Clients | None = None

    def service(self, name: str) -> Any:
        """Return a ``Service`` message.

        Raises:
            NotDeployed: The platform does not have it.
        """
        from google.api_core.exceptions import NotFound

        try:
            found = self._call(f"service {name!r} was not read", lambda c: c.services.get_service(name=name, **_READ))
        except InputRejected as error:
            if isinstance(error.__cause__, NotFound):
                raise NotDeployed(error.what, why=error.why, hint=error.hint) from error
            raise
        return _message(found)

    def revision(self, name: str) -> Any | None:
        """Return a ``Revision`` message, or None where there is none of that name."""
        call = self._call_or_none(
            f"revision {name!r} was not read", lambda c: c.revisions.get_revision(name=name, **_READ)
        )
        return None if call is None else _message(call)

    def revisions(self, service: str) -> list[Any]:
        """Return every ``Revision`` of a service, newest first as the API lists them."""
        found: list[Any] = self._call(
            f"the revisions of {service!r} were not read",
            lambda c: [_message(r) for r in c.revisions.list_revisions(parent=service, **_READ)],
        )
        return found

    def update(self, service: Any, *, mask: tuple[str, ...], dry_run: bool, within_s: float = WRITE_S) -> Any:
        """Send an ``UpdateServiceRequest`` once and return its ``Operation`` message at once.

        Args:
            service: A ``Service`` with name, etag and what the mask names.
            mask: Which fields to replace; everything else stays.
            dry_run: Only let the platform check it.
            within_s: How long the answer may take, ``WRITE_S`` at most.
        """
        from google.cloud import run_v2
        from google.protobuf import field_mask_pb2

        request = run_v2.UpdateServiceRequest(
            service=service, update_mask=field_mask_pb2.FieldMask(paths=mask), validate_only=dry_run
        )
        what = f"service {service.name.rsplit('/', 1)[-1]!r} was not changed"
        return self._call(what, lambda c: c.services.update_service(request=request, **_write(within_s)).operation)

    def create(self, location: str, name: str, service: Any, *, dry_run: bool, within_s: float = WRITE_S) -> Any:
        """Send a ``CreateServiceRequest`` once and return its ``Operation`` message at once.

        Args:
            location: ``projects/P/locations/L``.
            name: The service's short name.
            service: A ``Service`` without a name.
            dry_run: Only let the platform check it.
            within_s: How long the answer may take, ``WRITE_S`` at most.
        """
        from google.cloud import run_v2

        request = run_v2.CreateServiceRequest(parent=location, service_id=name, service=service, validate_only=dry_run)
        return self._call(
            f"service {name!r} was not created",
            lambda c: c.services.create_service(request=request, **_write(within_s)).operation,
        )

    def delete(self, name: str, *, etag: str, dry_run: bool, within_s: float = WRITE_S) -> Any:
        """Send a ``DeleteServiceRequest`` once and return its ``Operation`` message at once.

        Args:
            name: Full resource name.
            etag: The state that is deleted; the platform refuses any other.
            dry_run: Only let the platform check it.
            within_s: How long the answer may take, ``WRITE_S`` at most.
        """
        from google.cloud import run_v2

        request = run_v2.DeleteServiceRequest(name=name, etag=etag, validate_only=dry_run)
        return self._call(
            f"service {name.rsplit('/', 1)[-1]!r} was not deleted",
            lambda c: c.services.delete_service(request=request, **_write(within_s)).operation,
        )

    def operation(self, name: str) -> Any | None:
        """Return an ``Operation`` message, or None where the platform knows it no more."""
        return self._call_or_none(
            f"operation {name!r} was not read", lambda c: c.services.get_operation({"name": name}, **_READ)
        )

    def operations(self, location: str) -> list[Any]:
        """Return the first page of the latest ``Operation`` messages of ``projects/P/locations/L``."""
        found: list[Any] = self._call(
            f"the operations of {location!r} were not read",
            lambda c: list(c.services.list_operations({"name": location}, **_READ).operations),
        )
        return found

    def _call(self, what: str, call: Callable[[Clients], Any]) -> Any:
        try:
            return call(self._connected())
        except Exception as error:
            raise translated(error, what) from error

    def _call_or_none(self, what: str, call: Callable[[Clients], Any]) -> Any | None:
        from google.api_core.exceptions import NotFound

        try:
            return self._call(what, call)
        except SreError as error:
            if isinstance(error.__cause__, NotFound):
                return None
            raise

    def _connected(self) -> Clients:
        if self._clients is None:
            self._clients = self._connect()
        return self._clients


_READ: dict[str, Any] = {"retry": None, "timeout": READ_S}  # who asks decides whether to ask again


def _write(within_s: float) -> dict[str, Any]:
    return {"retry": None, "timeout": min(WRITE_S, within_s)}


def _message(wrapped: Any) -> Any:
    return type(wrapped).pb(wrapped)


def translated(error: Exception, what: str) -> SreError:
    """Return our word for an error of the client library, of its credentials, or of gRPC itself.

    Args:
        error: What was raised.
        what: What did not happen, in one clause.
    """
    return google_errors.translated(error, what, _HINTS)


_HINTS = google_errors.Hints(
    refused="give this identity run.services.get and run.services.update on the service, "
    "run.revisions.get and list, run.operations.get and list, and iam.serviceAccountUser on its runtime account",
    not_found="look for its name, location and project in services.toml",
    quota="lower max instances to what is allowed, or ask Google for quota in this region",
)
