"""What each watched TPU node still needs before a change can reach it."""

from collections.abc import Iterator
from datetime import datetime

from agent.core.service.services import Services
from agent.entrypoints.cli.doctor.finding import Finding, bad, good
from agent.settings import Settings


def tpu_nodes(settings: Settings, services: Services | None, now: datetime) -> Iterator[Finding]:
    """Look at every watched node, with the credentials of whoever runs the doctor; nothing is changed.

    Raises:
        SreError: No node is watched, or Cloud TPU did not answer.
    """
    if not settings.platform.startswith("tpu_vm:") or services is None:
        return
    from agent.app.tpu_environment import missing_setup_of, watched_nodes

    for service in watched_nodes(settings, services):
        missing = missing_setup_of(settings, services, service, now)
        for says, hint in missing:
            yield bad(f"tpu:{service}", says, hint)
        if not missing:
            yield good(f"tpu:{service}", "the node reports, and a change can reach it")
