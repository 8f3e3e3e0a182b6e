"""A workload on a real control plane behind the platform contract; its server answers on loopback."""

import time
from typing import Any

from agent.adapters.clock import SystemClock
from agent.adapters.kubernetes.client import KubernetesApi
from agent.adapters.platform.completion import CompletionClient
from agent.adapters.platform.kubernetes.measure import Meter
from agent.adapters.platform.kubernetes.platform import KubernetesPlatform
from agent.adapters.platform.kubernetes.workload import Workload
from tests.contracts import vllm_http as vllm
from tests.kube import Cluster


class KubeWorld:
    """One workload and the adapter over it.

    Args:
        cluster: A namespace and its node.
        service: Its name, of the workload too.
        kind: ``deployments`` or ``statefulsets``.
        spare: What services.toml says of spare accelerators.
        spec: More of the workload's ``spec``; a container of its own under ``container``.
    """

    def __init__(
        self,
        cluster: Cluster,
        service: str,
        args: tuple[str, ...],
        *,
        kind: str = "deployments",
        spare: int = 1,
        **spec: Any,
    ) -> None:
        self.cluster, self.service, self.kind = cluster, service, kind
        self.vllm = vllm.VllmHttp()
        self.workload = Workload(
            service=service,
            namespace=cluster.namespace,
            kind=kind.removesuffix("s"),
            name=service,
            accelerator="nvidia-l4",
            spare=spare,
        )
        cluster.deploy(service, list(args), kind=kind, **spec)
        self.wait()
        self.platform = self.open()

    def open(
        self, user: str | None = None, *, api: KubernetesApi | None = None, workload: Workload | None = None
    ) -> KubernetesPlatform:
        """Return one more adapter, with a connection of its own or by another way, to this workload or another."""
        reached = api or self.cluster.open(user)
        client = CompletionClient(id_token=None, monotonic=time.monotonic, timeout_s=5)
        meter = Meter(lambda _: client, lambda *_: self.vllm.url, SystemClock())
        return KubernetesPlatform({self.service: workload or self.workload}, lambda _: reached, meter)

    def body(self) -> dict[str, Any]:
        """The workload as it stands."""
        return self.cluster.api.get(self.path)

    @property
    def path(self) -> str:
        return self.cluster.path(self.kind, self.service)

    def wait(self) -> None:
        """Let a rollout end."""
        self.cluster.settle(self.service, kind=self.kind)

    def close(self) -> None:
        self.vllm.stop()
