"""A workload: which object of which namespace serves a model, and what is read together with it."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from agent.adapters.kubernetes.client import KubernetesApi
from agent.core.service.services import Service, workload_ref
from agent.core.value import Value
from agent.errors import PolicyRefused
from agent.ports.platform import NotDeployed

Json = dict[str, Any]

REVISION_NUMBER: Final = "deployment.kubernetes.io/revision"
DELETES: Final = "sre-agent-deletes"  # label: key of the effect that deletes it


class Workload(Value):
    """Where a service of services.toml stands.

    Attributes:
        container: The server's container; None where it is plain.
        accelerator: What services.toml says, for nodes whose labels do not tell.
        spare: Accelerators that are free beside the running ones; None where nobody said, which counts as none.
    """

    service: str
    namespace: str
    kind: Literal["deployment", "statefulset"]
    name: str
    container: str | None = None
    accelerator: str | None = None
    spare: int | None = None

    @classmethod
    def of(cls, service: Service) -> "Workload":
        """Return the workload of a watched service: its own words, or the Deployment of its name."""
        return cls.model_validate(
            {
                **workload_ref(service)._asdict(),
                "service": service.name,
                "container": service.container,
                "accelerator": service.accelerator,
                "spare": service.spare_accelerators,
            }
        )

    @property
    def path(self) -> str:
        """The object's path at the API server."""
        return f"/apis/apps/v1/namespaces/{self.namespace}/{self.kind}s/{self.name}"

    @property
    def collection(self) -> str:
        """The path under which it is created."""
        return self.path.rpartition("/")[0]

    @property
    def says(self) -> str:
        """The object as kubectl names it."""
        return f"{self.kind}/{self.name} in namespace {self.namespace}"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A workload as it was read at one time.

    Attributes:
        body: The object.
        scaled_by: What decides the number of replicas in its place; empty where nothing does.
        autoscaler: That HorizontalPodAutoscaler, None where there is none.
        sets: The ReplicaSets of a Deployment, the newest first.
        pods: The pods of the newest template, as far as the controllers have made them.
    """

    workload: Workload
    body: Json
    scaled_by: str
    autoscaler: Json | None
    sets: tuple[Json, ...]
    pods: tuple[Json, ...]
    old_pods: tuple[Json, ...]

    @property
    def spec(self) -> Json:
        """What is wanted."""
        spec: Json = self.body["spec"]
        return spec

    @property
    def status(self) -> Json:
        """What the controllers say; empty before they have seen the object."""
        status: Json = self.body.get("status") or {}
        return status

    @property
    def uid(self) -> str:
        """Another one where the object was deleted and made again."""
        return str(self.body["metadata"]["uid"])

    @property
    def generation(self) -> int:
        """Counts the changes of ``spec``."""
        return int(self.body["metadata"]["generation"])

    @property
    def etag(self) -> str:
        """What a change is made for: this object in this generation; a status that moves changes neither."""
        return f"{self.uid}/{self.generation}"

    @property
    def replicas(self) -> int:
        """How many pods are wanted."""
        return int(self.spec.get("replicas", 1))

    @property
    def deleting(self) -> bool:
        """Whether it is being deleted."""
        return "deletionTimestamp" in self.body["metadata"]

    @property
    def deleted_by(self) -> str | None:
        """The key of our effect by which it is being deleted, None where it is not."""
        return _label(self.body, DELETES) if self.deleting else None

    @property
    def observed(self) -> bool:
        """Whether the controllers have seen this generation."""
        return int(self.status.get("observedGeneration") or 0) >= self.generation

    @property
    def newest_set(self) -> Json | None:
        """The ReplicaSet of the present template, None until the controllers have made it."""
        number = annotations(self.body).get(REVISION_NUMBER)
        return next((s for s in self.sets if annotations(s).get(REVISION_NUMBER) == number), None) if number else None


def annotations(body: Json) -> dict[str, str]:
    """Return an object's annotations."""
    return (body.get("metadata") or {}).get("annotations") or {}


def look(api: KubernetesApi, workload: Workload) -> Seen:
    """Read a workload with its autoscaler, ReplicaSets and pods: four reads.

    Raises:
        NotDeployed: There is no such object.
    """
    body = api.find(workload.path)
    if body is None:
        raise NotDeployed(
            f"{workload.says} was not read",
            why=f'{workload.kind}s.apps "{workload.name}" not found',
            hint="look for its namespace, workload and context in services.toml, or create it",
        )
    autoscaler, scaled_by = _autoscaler(api, workload)
    labels = ",".join(f"{k}={v}" for k, v in (body["spec"]["selector"].get("matchLabels") or {}).items())
    selected = {"labelSelector": labels}
    base = f"namespaces/{workload.namespace}"
    pods = api.items(f"/api/v1/{base}/pods", query=selected)
    uid = body["metadata"]["uid"]
    if workload.kind == "statefulset":
        newest = _revision_of_template(api, workload, body)
        mine = [p for p in pods if _owner(p) == uid]
        fresh = [p for p in mine if _label(p, "controller-revision-hash") == newest]
        sets: list[Json] = []
    else:
        sets = [s for s in api.items(f"/apis/apps/v1/{base}/replicasets", query=selected) if _owner(s) == uid]
        sets.sort(key=lambda s: int(annotations(s).get(REVISION_NUMBER, "0")), reverse=True)
        owners = {s["metadata"]["uid"] for s in sets}
        mine = [p for p in pods if _owner(p) in owners]
        number = annotations(body).get(REVISION_NUMBER)
        newest = next((s["metadata"]["uid"] for s in sets if annotations(s).get(REVISION_NUMBER) == number), None)
        fresh = [p for p in mine if _owner(p) == newest]
    return Seen(
        workload=workload,
        body=body,
        scaled_by=scaled_by,
        autoscaler=autoscaler,
        sets=tuple(sets),
        pods=tuple(fresh),
        old_pods=tuple(p for p in mine if p not in fresh),
    )


def _revision_of_template(api: KubernetesApi, workload: Workload, body: Json) -> str | None:
    """Return a StatefulSet's revision where it is of the present template: its status may name the one before."""
    name = (body.get("status") or {}).get("updateRevision")
    found = api.find(f"/apis/apps/v1/namespaces/{workload.namespace}/controllerrevisions/{name}") if name else None
    if found is None:
        return None
    template = {k: v for k, v in found["data"]["spec"]["template"].items() if k != "$patch"}
    return str(name) if template == body["spec"]["template"] else None


def _owner(body: Json) -> str | None:
    owners = (body.get("metadata") or {}).get("ownerReferences") or []
    return next((str(o["uid"]) for o in owners if o.get("controller")), None)


def _label(body: Json, name: str) -> str | None:
    return ((body.get("metadata") or {}).get("labels") or {}).get(name)


def _autoscaler(api: KubernetesApi, workload: Workload) -> tuple[Json | None, str]:
    """Return the HorizontalPodAutoscaler of the workload, and its name as people know it; KEDA makes one too.

    Where they may not be listed, nobody knows whether there is one: that counts as one that we do not know.
    """
    try:
        listed = api.items(f"/apis/autoscaling/v1/namespaces/{workload.namespace}/horizontalpodautoscalers")
    except PolicyRefused:
        return None, "an autoscaler that may exist: horizontalpodautoscalers may not be listed in the namespace"
    for one in listed:
        target = one["spec"]["scaleTargetRef"]
        if (str(target.get("kind")).lower(), target.get("name")) != (workload.kind, workload.name):
            continue
        keda = _label(one, "scaledobject.keda.sh/name")
        name = one["metadata"]["name"]
        return one, f"KEDA ScaledObject {keda!r}" if keda else f"HorizontalPodAutoscaler {name!r}"
    return None, ""
