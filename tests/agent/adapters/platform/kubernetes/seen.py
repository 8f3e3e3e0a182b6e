"""Workloads as they would be read, for tests that need no API server."""

import copy
from typing import Any

from agent.adapters.platform.kubernetes.workload import Seen, Workload
from tests.kube import workload

ARGS = ["serve", "google/gemma-3-27b-it", "--max-model-len=8192"]


def seen(
    args: list[str] | None = None,
    *,
    kind: str = "deployment",
    status: dict[str, Any] | None = None,
    pods: tuple[dict[str, Any], ...] = (),
    old_pods: tuple[dict[str, Any], ...] = (),
    scaled_by: str = "",
    service: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    **how: Any,
) -> Seen:
    """Return a workload of one accelerator; more as for ``tests.kube.workload``."""
    body = workload("gemma", ARGS if args is None else args, **how)
    about = {"uid": "u-1", "generation": 3, "resourceVersion": "9", "annotations": {"of": "somebody"}}
    body["metadata"] |= copy.deepcopy(about) | (metadata or {})
    body["status"] = {"observedGeneration": 3} | (status or {})
    where = {"service": "gemma", "namespace": "llm", "kind": kind, "name": "gemma", "accelerator": "nvidia-l4"}
    return Seen(
        workload=Workload.model_validate(where | (service or {})),
        body=body,
        scaled_by=scaled_by,
        autoscaler=None,
        sets=(),
        pods=pods,
        old_pods=old_pods,
    )


def pod(name: str = "gemma-1", *, ready: bool = False, **container: Any) -> dict[str, Any]:
    """Return a pod whose container has that status."""
    row = {"name": "vllm", "restartCount": 0, "state": {"running": {}}, "lastState": {}, "ready": ready} | container
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {"metadata": {"name": name}, "status": {"containerStatuses": [row], "conditions": [condition]}}
