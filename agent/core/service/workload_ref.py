"""Which object of a cluster a watched service is."""

from typing import Final, NamedTuple

from agent.core.service.services import Service

DEFAULT_NAMESPACE: Final = "default"


class WorkloadRef(NamedTuple):
    """A Deployment or StatefulSet.

    Attributes:
        kind: ``deployment`` or ``statefulset``.
    """

    namespace: str
    kind: str
    name: str


def workload_ref(service: Service) -> WorkloadRef:
    """Return the object of a service on Kubernetes: its own words, or the Deployment of its name."""
    kind, _, name = (service.workload or f"deployment/{service.name}").partition("/")
    return WorkloadRef(namespace=service.namespace or DEFAULT_NAMESPACE, kind=kind, name=name)
