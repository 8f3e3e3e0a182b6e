"""The public keys of Identity-Aware Proxy, fetched over HTTPS and kept for an hour."""

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import requests
from urllib3.exceptions import HTTPError

from agent.entrypoints.web.assertion import Key
from agent.errors import DependencyFailed, InputRejected
from agent.ports.clock import Clock
from agent.strict_json import read_json

KEYS_URL = "https://www.gstatic.com/iap/verify/public_key-jwk"
"""https://cloud.google.com/iap/docs/signed-headers-howto (2026-11-21)"""

KEPT_FOR = timedelta(hours=1)
AGAIN_AFTER = timedelta(seconds=30)  # a made-up key id must not let a stranger make us fetch at every request
LIMIT = 65_536


class IapKeys:
    """Answers with the key of an id; call it."""

    def __init__(self, clock: Clock, *, url: str = KEYS_URL, timeout_s: float = 3.0) -> None:
        """Take where the keys are.

        Args:
            clock: Tells when what is kept is too old.
            url: A JSON Web Key set (RFC 7517).
            timeout_s: The longest a connection or an answer may take, seconds.
        """
        self._clock, self._url, self._timeout_s = clock, url, timeout_s
        self._lock = threading.Lock()
        self._keys: Mapping[str, Key] = {}
        self._fetched_at: datetime | None = None

    def __call__(self, key_id: str) -> Key | None:
        """Return the public key, None where the set does not have it.

        Raises:
            DependencyFailed: The set could not be fetched and none is kept.
        """
        with self._lock:
            now = self._clock.now()
            age = now - self._fetched_at if self._fetched_at is not None else None
            if age is None or age > KEPT_FOR or (key_id not in self._keys and age > AGAIN_AFTER):
                self._refresh(now)
            return self._keys.get(key_id)

    def _refresh(self, now: datetime) -> None:
        try:
            self._keys = _keys_of(self._fetched())
        except DependencyFailed:
            if self._fetched_at is None or now - self._fetched_at > 24 * KEPT_FOR:
                raise
            self._fetched_at = now - KEPT_FOR + AGAIN_AFTER
        else:
            self._fetched_at = now

    def _fetched(self) -> bytes:
        try:
            with requests.get(self._url, timeout=self._timeout_s, stream=True, allow_redirects=False) as answer:
                if answer.status_code != 200:
                    raise self._failed(f"HTTP {answer.status_code}")
                return answer.raw.read(LIMIT + 1, decode_content=True) or b""
        except (requests.RequestException, HTTPError, OSError, ValueError) as error:
            raise self._failed(type(error).__name__) from error

    def _failed(self, why: str) -> DependencyFailed:
        return DependencyFailed(
            "the keys of Identity-Aware Proxy were not read", why=f"{self._url}: {why}", mend="try again in a moment"
        )


def _keys_of(body: bytes) -> dict[str, Key]:
    try:
        parsed: Any = read_json(body, what="key set of IAP", limit=LIMIT)
    except InputRejected as error:
        raise DependencyFailed("the keys of IAP were not read", why=error.why, mend="try again in a moment") from error
    listed = parsed.get("keys") if isinstance(parsed, dict) else None
    keys: dict[str, Key] = {k["kid"]: k for k in listed or () if isinstance(k, dict) and isinstance(k.get("kid"), str)}
    if not keys:
        raise DependencyFailed(
            "the keys of IAP were not read", why="the answer names none", mend="try again in a moment"
        )
    return keys
