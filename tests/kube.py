"""A real control plane for tests: the rig beside the repository, started once, and a namespace with a node for each test.

Everything but the kubelet is real. ``Cluster.settle`` lets the stand-in kubelet play until a workload has come up or
failed; at any other time pods stay as the scheduler left them, so that a test sees each state as long as it wants.
"""

import hashlib
import importlib.util
import json
import select
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from agent.adapters.kubernetes.client import KubernetesApi, connect
from agent.adapters.platform.kubernetes.describe import changed_at
from agent.errors import SreError
from tests.outside import absent, shared

LIMIT_S = 60.0
NODE_LABEL = "rig-test"

Json = dict[str, Any]


def rig(name: str) -> ModuleType:
    """Return a module of the rig, read in place."""
    path = shared("rigs", "kube", f"{name}.py")
    known = sys.modules.get(f"kube_rig_{name}")
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(f"kube_rig_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if name == "kubelet":
        _name_the_one_pod(module)
    return module


def _name_the_one_pod(kubelet: Any) -> None:
    """Send the pod's uid with each status: the next pod of a StatefulSet has the same name as the one before it."""
    core, set_status, pod_now = kubelet._core, kubelet._set, threading.local()

    class Core:
        def __init__(self, api: Any) -> None:
            self._core = core(api)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._core, name)

        def patch_namespaced_pod_status(self, name: str, namespace: str, body: Json) -> Any:
            body = body | {"metadata": {"uid": pod_now.uid}}
            return self._core.patch_namespaced_pod_status(name, namespace, body)

    def set_of_one_pod(api: Any, pod: Any, **how: Any) -> None:
        pod_now.uid = pod.metadata.uid
        set_status(api, pod, **how)

    kubelet._core, kubelet._set = Core, set_of_one_pod


def start_plane(folder: Path, users: tuple[str, ...] = ()) -> Any:
    """Start the four processes; the unpacked programs (254 MB) are kept for the next session."""
    plane = rig("control_plane")
    kept = Path(tempfile.gettempdir()) / "sre-agent-kube-programs"
    try:
        return plane.start(folder, users=[plane.User(name=name) for name in users], binaries=kept)
    except plane.ControlPlaneError as error:
        if "missing" in str(error):
            absent(str(error))
        raise


class Cluster:
    """A namespace, and a node whose accelerators only its pods may use.

    Args:
        plane: The running control plane.
        name: Of the test; namespace and node are called after it.
        gpus: Accelerators of the node.
    """

    def __init__(self, plane: Any, name: str, *, gpus: int = 1, accelerator: str = "nvidia-l4") -> None:
        self.plane = plane
        self.namespace = f"t-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
        self.api = self.open()
        self.life: Callable[[Any], Any] | None = None
        self.pod_ip = "127.0.0.1"
        labels = {NODE_LABEL: self.namespace}
        self.api.create("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        rig("kubelet").make_node(
            self.api.client, self.namespace, gpus=gpus, accelerator=accelerator, memory="512Gi", labels=labels
        )
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        self.until(lambda: (self.api.find(account) or {}).get("secrets"))

    def open(self, user: str | None = None) -> KubernetesApi:
        """Return one more client, of the administrator or of a user."""
        config = self.plane.kubeconfigs[user] if user else self.plane.kubeconfig
        return KubernetesApi(lambda: connect(kubeconfig=str(config)))

    def path(self, kind: str, name: str = "") -> str:
        """Return the path of an object, or (without a name) of a collection."""
        base = "/api/v1" if kind in {"pods", "services", "events", "resourcequotas"} else "/apis/apps/v1"
        return f"{base}/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    def create(self, kind: str, body: Json) -> Json:
        """Create an object; the pods of a workload go to this cluster's own node."""
        if "template" in body.get("spec", {}):
            body["spec"]["template"]["spec"].setdefault("nodeSelector", {})[NODE_LABEL] = self.namespace
        return self.api.create(self.path(kind), body)

    def deploy(
        self, name: str, args: list[str], *, kind: str = "deployments", deadline_s: int = 8, **spec: Any
    ) -> Json:
        """Create a workload that serves with one accelerator."""
        body = workload(name, args, **spec)
        if kind == "statefulsets":
            body["spec"] |= {"serviceName": name}
        else:
            body["spec"].setdefault("progressDeadlineSeconds", deadline_s)
        return self.create(kind, body)

    def settle(self, name: str, *, kind: str = "deployments", limit_s: float = LIMIT_S) -> None:
        """Let time go by until the newest template is up, or the rollout has failed."""
        kubelet = rig("kubelet")
        with kubelet.StandInKubelet(self.api.client, self._life, period_s=0.05):
            self.until(lambda: self._ended(name, kind), limit_s)

    def play(self) -> Any:
        """Return a kubelet that plays as long as its block is open."""
        return rig("kubelet").StandInKubelet(self.api.client, self._life, period_s=0.05)

    def until(self, look: Callable[[], Any], limit_s: float = LIMIT_S) -> Any:
        """Look until the answer is true."""
        end = time.monotonic() + limit_s
        while not (seen := look()):
            assert time.monotonic() < end, f"it did not come: {self.states()}"
            time.sleep(0.05)
        return seen

    def states(self) -> str:
        """What stands there, for a failure."""
        rows = [*self.api.items(self.path("deployments")), *self.api.items(self.path("statefulsets"))]
        pods = self.api.items(self.path("pods"))
        return json.dumps([(r["metadata"]["name"], r.get("status")) for r in (*rows, *pods)])[:3000]

    def close(self) -> None:
        """Give the node back at once; the namespace's controller ends the rest."""
        with suppress(Exception):
            for kind in ("deployments", "statefulsets"):
                for one in self.api.items(self.path(kind)):
                    self.api.delete(self.path(kind, one["metadata"]["name"]), uid=one["metadata"]["uid"])
        for path in (f"/api/v1/namespaces/{self.namespace}", f"/api/v1/nodes/{self.namespace}"):
            with suppress(Exception):
                self.api.delete(path, uid=self.api.get(path)["metadata"]["uid"])

    def _life(self, pod: Any) -> Any:
        """What becomes of a pod: by the test's own choice, by a word of its annotations, or by its length."""
        life = rig("kubelet").Life
        self._give_address(pod)
        own = pod.metadata.namespace == self.namespace  # the pods of an ended test may still be there
        if own and self.life is not None and (chosen := self.life(pod)) is not None:
            return chosen
        said = (pod.metadata.annotations or {}).get("rig/life")
        if said:
            return life(said)
        args = [a for c in pod.spec.containers for a in c.args or []]
        return life.OOM_KILLED if any("65536" in a for a in args) else life.READY

    def _give_address(self, pod: Any) -> None:
        path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}/status"
        with suppress(SreError):  # it may be gone
            self.api.patch(path, [{"op": "add", "path": "/status/podIP", "value": self.pod_ip}])

    def _ended(self, name: str, kind: str) -> bool:
        body = self.api.find(self.path(kind, name))
        if body is None:
            return True
        status, wanted = body.get("status", {}), body["spec"]["replicas"]
        if (
            status.get("observedGeneration") != body["metadata"]["generation"]
            or "deletionTimestamp" in body["metadata"]
        ):
            return False
        pods = [p for p in self.api.items(self.path("pods")) if p["metadata"]["name"].startswith(f"{name}-")]
        if any(p["metadata"].get("deletionTimestamp") for p in pods):
            return False
        words = [c.get("args") for c in body["spec"]["template"]["spec"]["containers"]]
        if (
            kind == "statefulsets"
            and pods
            and not any([c.get("args") for c in p["spec"]["containers"]] == words for p in pods)
        ):
            return False
        if kind == "statefulsets":
            updated = (
                status["updateRevision"] == status.get("currentRevision") or status.get("updatedReplicas") == wanted
            )
            up = updated and status.get("readyReplicas", 0) == status["replicas"] == wanted
        else:
            counts = [status.get(key, 0) for key in ("replicas", "readyReplicas", "updatedReplicas")]
            up = counts == [wanted] * 3 and not status.get("unavailableReplicas")
        conditions = {c["type"]: c for c in status.get("conditions", [])}
        progressing = conditions.get("Progressing", {})
        late = progressing.get("reason") == "ProgressDeadlineExceeded"
        late = late and progressing["lastUpdateTime"] > changed_at(body).strftime("%Y-%m-%dT%H:%M:%SZ")
        return up or late or any(_backs_off(p) for p in pods)


def _backs_off(pod: Json) -> bool:
    rows = pod.get("status", {}).get("containerStatuses", [])
    return any(r["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff" for r in rows)


def workload(
    name: str, args: list[str], *, container: Json | None = None, pod: Json | None = None, **spec: Any
) -> Json:
    """Return a vLLM workload for one accelerator, as people write it."""
    server = {
        "name": "vllm",
        "image": "vllm/vllm-openai:v0.32.0",
        "args": args,
        "ports": [{"containerPort": 8000, "name": "http"}],
        "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "8", "memory": "32Gi"}},
        "startupProbe": {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 15, "failureThreshold": 56},
    }
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [server | (container or {})]} | (pod or {}),
    }
    wanted = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name}, "spec": wanted | spec}


class Cable:
    """What lies between us and the API server; it can be cut, and put back."""

    def __init__(self, port):
        self.port_of_server = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.whole = threading.Event()
        self.whole.set()
        self.pairs = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if not self.whole.is_set():
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self.port_of_server))
            self.pairs.append((near, far))
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near, far):
        with suppress(OSError, ValueError):
            while True:
                for one in select.select([near, far], [], [])[0]:
                    data = one.recv(65_536)
                    if not data:
                        raise OSError
                    (far if one is near else near).sendall(data)
        for one in (near, far):
            with suppress(OSError):
                one.close()

    def cut(self):
        self.whole.clear()
        for pair in self.pairs:
            for one in pair:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
        self.pairs.clear()

    def mend(self):
        self.whole.set()

    def api(self, plane, path):
        """Return a client that reaches the API server through the cable; its kubeconfig is written to a path."""
        config = json.loads(plane.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self.port}"
        path.write_text(json.dumps(config))
        return KubernetesApi(lambda: connect(kubeconfig=str(path)))

    def close(self):
        self.listener.close()
        self.cut()
