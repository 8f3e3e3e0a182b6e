"""Sends one message through apprise, in a process of its own: only over https, to the hosts that it is told.

It runs alone: the order comes as JSON on standard input (``url``, ``title``, ``body``, ``type``, ``hosts``), the answer
goes to standard output (``sent``, ``why``). apprise makes its own requests, so every session of ``requests`` in this
process is one of ours: no other host, no redirect, no proxy, no .netrc, certificates always checked.
"""

import json
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests
import requests.adapters
import requests.api
import requests.sessions

TIMEOUT_S = (4.0, 8.0)


class HostRefused(requests.RequestException):
    """apprise wanted to speak to somebody else than the provider of this schema."""


def send(
    order: dict[str, Any], *, adapter: Callable[[], requests.adapters.BaseAdapter] | None = None
) -> dict[str, Any]:
    """Send it; says whether the provider took it, and otherwise what it answered, never what was sent.

    Args:
        order: What to send, see above.
        adapter: Carries the requests; requests' own when None.
    """
    answers: list[str] = []
    plain = requests.sessions.Session

    class Guarded(requests.Session):
        def __init__(self) -> None:
            super().__init__()
            self.trust_env = False
            if adapter is not None:
                self.mount("https://", adapter())

        def request(self, method: str | bytes, url: str | bytes, **given: Any) -> requests.Response:  # type: ignore[override]
            text = url if isinstance(url, str) else url.decode()
            parts = urlsplit(text)
            other = "\\" in text or parts.port not in {None, 443}  # what some read as the end of a host
            if other or parts.scheme != "https" or not _is_of(parts.hostname or "", order["hosts"]):
                answers.append("another host than the provider's was refused")
                raise HostRefused
            fixed = {"allow_redirects": False, "verify": True, "timeout": TIMEOUT_S, "proxies": None}
            try:
                response = super().request(method, url, **(given | fixed))
            except requests.RequestException as error:
                answers.append(type(error).__name__)
                raise
            answers.append(f"{parts.hostname} answered with {response.status_code}")
            return response

    requests.sessions.Session = Guarded  # type: ignore[misc]
    try:
        sent = _notify(order)
    finally:
        requests.sessions.Session = plain  # type: ignore[misc]
    return {"sent": sent, "why": answers[-1] if answers else "apprise does not understand the address"}


def _is_of(host: str, allowed: list[str]) -> bool:
    """Whether a host is one of these, or below one that begins with a dot."""
    return any(host.endswith(one) if one.startswith(".") else host == one for one in allowed)


def _notify(order: dict[str, Any]) -> bool:
    import apprise

    asset = apprise.AppriseAsset(async_mode=False, secure_logging=True, storage_mode=apprise.PersistentStoreMode.MEMORY)
    target = apprise.Apprise.instantiate(order["url"], asset=asset)
    if not target:
        return False
    said = {"title": order["title"], "body": order["body"], "notify_type": order["type"]}
    return bool(target.notify(**said, body_format="markdown"))  # the text holds no markup of others


if __name__ == "__main__":
    print(json.dumps(send(json.loads(sys.stdin.read()))))  # not strict: our own order
