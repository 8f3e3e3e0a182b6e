"""Kubernetes: which container of a pod serves the model, and what it prints as signals."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from agent.core.intake.json_fields import first_time, part, rows, text
from agent.core.intake.kubernetes import pod_revision, replica_set
from agent.core.intake.origin import KUBERNETES
from agent.core.intake.signal import LIVE, Signal, Source, log_key
from agent.core.value import digest

ACCELERATORS: Final = (
    "nvidia.com/", "amd.com/", "google.com/tpu", "habana.ai/", "gpu.intel.com/", "aws.amazon.com/neuron",
)  # fmt: skip
"""How the names of resources begin that are accelerators, as their device plugins register them (2026-11-22)."""

Json = Mapping[str, Any]


class RunningStart(NamedTuple):
    """A start of a container that runs now.

    Attributes:
        since: When it began; None where the kubelet has not said so.
        number: How many starts of it came before.
    """

    since: datetime | None
    number: int
    ready: bool


def serving_container(pod: Json, named: str | None) -> str:
    """Return the container that serves the model: the named one, the one with an accelerator, otherwise the first."""
    containers = [row for row in rows(part(pod, "spec"), "containers") if isinstance(row, Mapping)]
    marked = (text(row, "name") for row in containers if _has_accelerator(row))
    return named or next(marked, None) or next((text(row, "name") for row in containers), "")


def _has_accelerator(container: Json) -> bool:
    return any(key.startswith(ACCELERATORS) for key in part(container, "resources", "limits"))


def running_start(pod: Json, container: str) -> RunningStart | None:
    """Return the start of a container that runs now, None where none does."""
    row = status_of(pod, container)
    running = part(row, "state").get("running")
    if running is None:
        return None
    restarts = row.get("restartCount")
    return RunningStart(
        since=first_time(part(row, "state", "running").get("startedAt")),
        number=restarts if isinstance(restarts, int) else 0,
        ready=row.get("ready") is True,
    )


def status_of(pod: Json, container: str) -> Json:
    """Return the status of a container, empty where there is none."""
    found = rows(part(pod, "status"), "containerStatuses")
    return next((row for row in found if isinstance(row, Mapping) and row.get("name") == container), {})


def printed_signal(service: str, pod: Json, container: str, *, stamp: str, at: datetime, line: str) -> Signal:
    """Return the signal of a line that a container printed; the same line makes the same key, whoever reads it.

    Args:
        service: The watched service.
        pod: The v1 Pod, or as much of it as says whose it is.
        container: Of the pod.
        stamp: When it was printed, as the node wrote it.
        at: The same moment.
        line: What was printed.
    """
    metadata = part(pod, "metadata")
    named = text(metadata, "name")
    return Signal(
        key=log_key(
            LIVE,
            log_name=f"{text(metadata, 'uid')}/{container}",
            insert_id=f"{stamp}/{digest(line)[:16]}",
            timestamp=at.isoformat(),
        ),
        source=Source.APP_LOG,
        service=service,
        platform=KUBERNETES,
        revision=pod_revision(pod) or replica_set(named),
        instance=named or None,
        at=at,
        severity="DEFAULT",
        text=line,
        fields={"container": container},
    )
