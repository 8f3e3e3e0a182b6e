"""Why a request failed, in few words: the same for every load generator."""

import re
from http import HTTPStatus
from typing import Final

CHARS: Final = 120
NO_ANSWER: Final = "empty answer"
UNREADABLE: Final = "unreadable answer"

_STATUS = re.compile(r"\b([45]\d\d) [A-Z]")
_PHRASES: Final = {status.phrase: status.value for status in HTTPStatus if status >= HTTPStatus.BAD_REQUEST}
_KINDS: Final = (
    (re.compile(r"json|decode|parse|expecting|empty response|valid chunk", re.IGNORECASE), UNREADABLE),
    (re.compile(r"refused|connect ?error|all connection attempts|cannot connect", re.IGNORECASE), "connection refused"),
    (
        re.compile(r"disconnect|reset|closed|incomplete|RemoteProtocol|ReadError|payload", re.IGNORECASE),
        "connection closed",
    ),
    (re.compile(r"time[d ]*-?out", re.IGNORECASE), "timeout"),
)


def error_kind(text: str) -> str:
    """Return the kind of an error that a load generator reports, such as ``HTTP 429``; unknown text is cut short."""
    found = _STATUS.search(text)
    status = int(found[1]) if found else _PHRASES.get(text.strip())
    if status is not None:
        return f"HTTP {status}"
    known = next((kind for pattern, kind in _KINDS if pattern.search(text)), None)
    return known or " ".join(text.split())[:CHARS] or "unknown error"
