"""One question over HTTP to another service, with the time that it believes it is; see the port."""

import json
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from agent.adapters.http.client import LIMIT_BYTES, HttpClient
from agent.adapters.http.target import PlainHttp
from agent.errors import InputRejected
from agent.ports.json_probe import LIMIT_S, ProbeReply
from agent.strict_json import read_object


def ask(url: str, *, headers: Mapping[str, str] | None = None, data: Mapping[str, Any] | None = None) -> ProbeReply:
    """Send GET, or POST where there are data, to an address of the operator's own settings.

    Returns:
        Whatever is answered, errors too.

    Raises:
        DependencyFailed: Nothing answered.
    """
    client = HttpClient(timeout_s=LIMIT_S, plain_http=PlainHttp.ALWAYS)  # the operator's own settings name it
    sent = {"Content-Type": "application/json", **(headers or {})}
    raw = json.dumps(data).encode() if data is not None else None
    answer = client.request("GET" if raw is None else "POST", url, headers=sent, body=raw)
    try:
        body = read_object(answer.body, what="answer", limit=LIMIT_BYTES)
    except InputRejected:
        body = {}
    at = _moment(answer.headers.get("date", ""))
    return ProbeReply(status=answer.status, headers=answer.headers, body=body, at=at)


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None
