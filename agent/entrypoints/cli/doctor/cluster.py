"""What the cluster lets us do: each right that the agent needs, asked of the API server."""

from collections.abc import Iterator

from agent.core.service.services import Services
from agent.entrypoints.cli.doctor.finding import Finding, bad, good
from agent.settings import Settings


def cluster_rights(settings: Settings, services: Services | None) -> Iterator[Finding]:
    """Look at the rights of whoever runs the doctor: in the pod those of the agent; nothing is changed.

    Raises:
        SreError: No workload is watched, or the API server did not answer.
    """
    if settings.platform.partition(":")[0] != "kubernetes" or services is None:
        return
    from agent.app.cluster_access import missing_rights

    missing = missing_rights(settings, services)
    for right in missing:
        says = f"not allowed: {right.says}: {right.why}"
        yield bad("kubernetes:rights", says, "add it to a Role, see deploy/kubernetes/")
    if not missing:
        yield good("kubernetes:rights", "every right that the watched workloads need")
