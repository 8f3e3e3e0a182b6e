"""Receipts signed by a Cloud KMS key of the purpose MAC: the key never leaves the service, which logs each use."""

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING, Any, Final

from agent.errors import DependencyFailed

if TYPE_CHECKING:
    from google.auth.transport.requests import AuthorizedSession

ENDPOINT: Final = "https://cloudkms.googleapis.com/v1"
"""projects.locations.keyRings.cryptoKeys.cryptoKeyVersions.macSign and macVerify:
https://cloud.google.com/kms/docs/reference/rest, read 2026-11-21."""
TIMEOUT_S: Final = 1.5  # inside the two seconds that a press may take


def default_session() -> "AuthorizedSession":
    """Return a session with the identity of this function."""
    import google.auth
    from google.auth.transport.requests import AuthorizedSession

    credentials, _ = google.auth.default(scopes=["https://www.googleapis.com/auth/cloudkms"])
    return AuthorizedSession(credentials)  # type: ignore[no-untyped-call]


class KmsReceiptSigner:
    """Signs and checks with one key version.

    Args:
        version: ``projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/N``.
        session: Anything that posts like ``requests`` and carries the identity.
    """

    def __init__(self, version: str, session: Any) -> None:
        self._version, self._session = version, session

    def sign(self, body: bytes) -> str:
        """Return the code, hex; see the protocol."""
        answer = self._ask("macSign", {"data": _digest(body)})
        try:
            mac = base64.b64decode(answer["mac"], validate=True)
        except (KeyError, TypeError, binascii.Error, ValueError) as error:
            raise _failed("its answer holds no code") from error
        if answer.get("name") != self._version or len(mac) < 32:
            raise _failed("it signed with another key")
        return mac.hex()

    def verify(self, body: bytes, mac: str) -> bool:
        """Whether the service says so, and says it of this key; see the protocol."""
        try:
            code = bytes.fromhex(mac)
        except ValueError:
            return False
        if len(code) < 32 or mac != code.hex():
            return False
        asked = {"data": _digest(body), "mac": base64.b64encode(code).decode()}
        answer = self._ask("macVerify", asked)
        return answer.get("success") is True and answer.get("name") == self._version

    def _ask(self, method: str, asked: dict[str, str]) -> dict[str, Any]:
        import requests
        from google.auth.exceptions import GoogleAuthError

        try:
            answer = self._session.post(f"{ENDPOINT}/{self._version}:{method}", json=asked, timeout=TIMEOUT_S)
            said = answer.json() if answer.status_code == 200 else None
        except (requests.RequestException, GoogleAuthError, OSError, ValueError) as error:
            raise _failed(type(error).__name__) from error
        if not isinstance(said, dict):
            raise _failed(f"it answered with {answer.status_code}")
        return said


def _digest(body: bytes) -> str:
    """The service takes 64 KiB at most; a plan's decision may be longer one day, its digest never is."""
    return base64.b64encode(hashlib.sha256(body).digest()).decode()


def _failed(why: str) -> DependencyFailed:
    return DependencyFailed("the receipt was not signed or checked", why=f"Cloud KMS: {why}", hint="it is tried again")
