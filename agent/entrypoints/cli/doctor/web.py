"""One question over HTTP: status, headers, JSON and the time that the other side believes it is."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agent.core.value import Value
from agent.errors import DependencyFailed

LIMIT_S = 10.0
LIMIT_BYTES = 1_048_576

Token = Callable[[], str]


class Reply(Value):
    """What came back.

    Attributes:
        body: The JSON object; empty where the body is none.
        at: The sender's clock, UTC; None where it does not say.
    """

    status: int
    headers: dict[str, str]
    body: dict[str, Any]
    at: datetime | None = None


def ask(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    data: Mapping[str, Any] | None = None,
    limit_s: float = LIMIT_S,
) -> Reply:
    """Send GET, or POST where there are data, and return whatever is answered, errors too.

    Raises:
        DependencyFailed: Nothing answered.
    """
    raw = json.dumps(data).encode() if data is not None else None
    sent = {"Content-Type": "application/json", "User-Agent": "sre-agent-doctor", **(headers or {})}
    request = urllib.request.Request(url, data=raw, headers=sent)  # noqa: S310 - the operator's own settings name it
    try:
        with urllib.request.urlopen(request, timeout=limit_s) as reply:  # noqa: S310
            return _reply(reply.status, dict(reply.headers), reply.read(LIMIT_BYTES))
    except urllib.error.HTTPError as error:
        with error:
            return _reply(error.code, dict(error.headers), error.read(LIMIT_BYTES))
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise DependencyFailed(
            f"{url.partition('?')[0]} did not answer",
            why=str(reason)[:200],
            mend="is the address right, and reachable?",
        ) from error


def _reply(status: int, headers: Mapping[str, str], raw: bytes) -> Reply:
    lower = {key.lower(): value for key, value in headers.items()}
    try:
        body = json.loads(raw)
    except ValueError:
        body = {}
    return Reply(
        status=status, headers=lower, body=body if isinstance(body, dict) else {}, at=_moment(lower.get("date", ""))
    )


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
