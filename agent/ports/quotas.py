"""How much of what accelerators one may use, and how much of it is used."""

from enum import StrEnum
from typing import Protocol

from agent.core.value import Value


class QuotaOf(StrEnum):
    """Whose quotas there are."""

    CLOUD_RUN = "cloud_run"
    COMPUTE = "compute"
    TPU = "tpu"


class Quota(Value):
    """One limit in one place.

    Attributes:
        quota: The platform's own name.
        location: A region or a zone, or ``global``.
        limit: None where there is none.
        used: None where it cannot be read.
    """

    of: QuotaOf
    quota: str
    location: str
    limit: float | None
    used: float | None = None

    @property
    def free(self) -> float | None:
        """What is left; None where limit or use is not known."""
        return self.limit - self.used if self.limit is not None and self.used is not None else None


class Quotas(Protocol):
    """Reads the quotas of accelerators."""

    def read(self, of: QuotaOf, project: str) -> tuple[Quota, ...]:
        """Return every accelerator quota, in the platform's order.

        Raises:
            SreError: They cannot be read; the message says why.
        """
        ...
