"""One question over HTTP to another service: status, headers, JSON, and the time that it believes it is."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from agent.core.value import Value

LIMIT_S = 10.0


class ProbeReply(Value):
    """What came back.

    Attributes:
        headers: Names in lower case.
        body: The JSON object; empty where the body is none.
        at: The sender's clock, UTC; None where it does not say.
    """

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]
    at: datetime | None = None

    @property
    def models(self) -> list[str]:
        """Names in an OpenAI-compatible list of models; empty where the body is none."""
        rows = self.body.get("data")
        return [str(row.get("id")) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
