"""What the agent may do in a cluster: the verbs of its Roles, no more and no less than its calls need."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from agent.core.service.services import Service, workload_ref

_LEASE = re.compile(r"[a-z0-9][a-z0-9-]{0,62}/[a-z0-9][a-z0-9.-]{0,252}")


class Right(NamedTuple):
    """One verb on one kind of object.

    Attributes:
        namespace: Empty for what belongs to no namespace.
        name: Of the one object that is meant; empty for all.
        why: What does not work without it.
    """

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""
    why: str = ""

    @property
    def says(self) -> str:
        """The right as people read it."""
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        one = f"/{self.name}" if self.name else ""
        return f"{self.verb} {kind}{one}" + (f" in namespace {self.namespace}" if self.namespace else "")


NODES: Final = (
    Right("list", "", "nodes", why="nodes that fail are not noticed"),
    Right("watch", "", "nodes", why="nodes that fail are not noticed"),
    Right("list", "", "events", "default", why="an Xid of a node is not noticed"),
    Right("watch", "", "events", "default", why="an Xid of a node is not noticed"),
)
TOKENS: Final = (Right("create", "authentication.k8s.io", "tokenreviews", why="no Kubernetes token can decide"),)


def lease_name(raw: str) -> str:
    """Return the name of a Lease, ``NAMESPACE/NAME``.

    Raises:
        ValueError: It is none.
    """
    if not _LEASE.fullmatch(raw):
        raise ValueError(raw)
    return raw


def lease_rights(lease: str) -> tuple[Right, ...]:
    """Return what the lock among replicas needs; a creation cannot be narrowed to a name.

    Args:
        lease: ``NAMESPACE/NAME``.
    """
    namespace, _, name = lease.partition("/")
    why = "no replica can lead: sre-agent up waits for ever"
    group, kind = "coordination.k8s.io", "leases"
    made = Right("create", group, kind, namespace, why=f"{why}, unless the Lease exists")
    return (made, *(Right(verb, group, kind, namespace, name, why) for verb in ("get", "patch")))


def workload_rights(services: Iterable[Service]) -> Iterator[Right]:
    """Yield what the watched workloads need, each once."""
    seen: set[Right] = set()
    for service in services:
        for right in _of(service):
            if right not in seen:
                seen.add(right)
                yield right


def _of(service: Service) -> Iterator[Right]:
    at = workload_ref(service)
    kind, why = f"{at.kind}s", f"{service.name!r} is not watched"
    for verb in ("get", "list", "watch"):
        yield Right(verb, "apps", kind, at.namespace, at.name, why)
    yield Right("patch", "apps", kind, at.namespace, at.name, f"{service.name!r} cannot be changed, only read")
    if at.kind == "deployment":
        yield Right("list", "apps", "replicasets", at.namespace, why="a change cannot be told from another")
    else:
        yield Right("get", "apps", "controllerrevisions", at.namespace, why=f"{service.name!r} cannot be read")
        yield Right("delete", "", "pods", at.namespace, why="a stuck pod of a StatefulSet is not undone")
    yield Right("list", "autoscaling", "horizontalpodautoscalers", at.namespace, why="scaling is refused")
    for verb in ("get", "list", "watch"):
        yield Right(verb, "", "pods", at.namespace, why=why)
    yield Right("get", "", "pods/log", at.namespace, why="diagnoses stay provisional: no log is read")
    for verb in ("list", "watch"):
        yield Right(verb, "", "events", at.namespace, why="mounts, images and probes that fail are not noticed")
