"""The platform's own record of who changed a service, where it keeps one that we may read."""

from typing import Protocol

from pydantic import AwareDatetime

from agent.core.change.config_drift import AuditedChange


class AuditLog(Protocol):
    """Tells who changed a service."""

    def changes(self, service: str, *, since: AwareDatetime, until: AwareDatetime) -> tuple[AuditedChange, ...]:
        """Return the calls that changed it, oldest first; those that failed are left out.

        Raises:
            SreError: It could not be read; then nobody knows more than what was seen.
        """
        ...
