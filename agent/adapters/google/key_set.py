"""The public keys of an issuer of tokens (RFC 7517), fetched over HTTPS and kept for an hour."""

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from agent.adapters.http.client import HttpClient
from agent.adapters.http.failure import HttpFailed
from agent.errors import DependencyFailed, InputRejected
from agent.ports.clock import Clock
from agent.strict_json import read_json

Key = Mapping[str, Any]

GOOGLE_KEYS: Final = "https://www.googleapis.com/oauth2/v3/certs"
"""https://developers.google.com/identity/openid-connect/openid-connect (2026-11-21)"""

IAP_KEYS: Final = "https://www.gstatic.com/iap/verify/public_key-jwk"
"""https://cloud.google.com/iap/docs/signed-headers-howto (2026-11-21)"""

KEPT_FOR = timedelta(hours=1)
AGAIN_AFTER = timedelta(seconds=30)  # a made-up key id must not let a stranger make us fetch at every request
LIMIT = 65_536


class KeySet:
    """Answers with the key of an id; call it."""

    def __init__(self, clock: Clock, *, url: str, holder: str, timeout_s: float = 3.0) -> None:
        """Take where the keys are.

        Args:
            clock: Tells when what is kept is too old.
            url: A JSON Web Key set.
            holder: Whose keys they are, for the error.
            timeout_s: The longest that fetching may take, seconds.
        """
        self._clock, self._url, self._holder, self._timeout_s = clock, url, holder, timeout_s
        self._http = HttpClient(timeout_s=timeout_s, limit_bytes=LIMIT)
        self._lock = threading.Lock()
        self._keys: Mapping[str, Key] = {}
        self._fetched_at: datetime | None = None

    def __call__(self, key_id: str) -> Key | None:
        """Return the public key, None where the set does not have it.

        Raises:
            DependencyFailed: The set could not be fetched and none is kept.
        """
        now = self._clock.now()
        if self._stale(key_id, now):  # who only wants what is kept does not wait for somebody's made-up id
            if not self._lock.acquire(timeout=self._timeout_s):
                raise self._failed("others wait for the same answer")
            try:
                if self._stale(key_id, now):
                    self._refresh(now)
            finally:
                self._lock.release()
        return self._keys.get(key_id)

    def _stale(self, key_id: str, now: datetime) -> bool:
        fetched = self._fetched_at
        age = now - fetched if fetched is not None else None
        return age is None or age > KEPT_FOR or (key_id not in self._keys and age > AGAIN_AFTER)

    def _refresh(self, now: datetime) -> None:
        try:
            self._keys = self._keys_of(self._fetched())
        except DependencyFailed:
            if self._fetched_at is None or now - self._fetched_at > 24 * KEPT_FOR:
                raise
            self._fetched_at = now - KEPT_FOR + AGAIN_AFTER
        else:
            self._fetched_at = now

    def _fetched(self) -> bytes:
        try:
            answer = self._http.request("GET", self._url)
        except HttpFailed as error:
            raise self._failed(error.why) from error
        if answer.status != 200:
            raise self._failed(f"HTTP {answer.status}")
        return answer.body

    def _failed(self, why: str) -> DependencyFailed:
        return DependencyFailed(
            f"the keys of {self._holder} were not read", why=f"{self._url}: {why}", hint="try again in a moment"
        )

    def _keys_of(self, body: bytes) -> dict[str, Key]:
        try:
            parsed: Any = read_json(body, what=f"key set of {self._holder}", limit=LIMIT)
        except InputRejected as error:
            raise self._failed(error.why) from error
        listed = parsed.get("keys") if isinstance(parsed, dict) else None
        named = (k for k in listed or () if isinstance(k, dict)) if isinstance(listed, list) else ()
        keys: dict[str, Key] = {k["kid"]: k for k in named if isinstance(k.get("kid"), str)}
        if not keys:
            raise self._failed("the answer names none")
        return keys
