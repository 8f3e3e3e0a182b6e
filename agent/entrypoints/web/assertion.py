"""The signed assertion of Identity-Aware Proxy, checked to the letter: ES256, key, audience, issuer, times."""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicNumbers
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from agent.core.value import Value
from agent.errors import InputRejected
from agent.strict_json import read_json

ISSUER = "https://cloud.google.com/iap"
SKEW_S = 30  # what Google's guide to signed headers allows for clocks (2026-11-21)
LONGEST_S = 3600  # IAP signs for ten minutes; anything that claims to be good for days is not one of its own
LIMIT = 8192  # bytes; more than any header of a load balancer carries

Key = Mapping[str, Any]
"""One public key as a JSON Web Key (RFC 7517)."""

_PART = re.compile(r"[A-Za-z0-9_-]+")


class Claims(Value):
    """What the proxy says about the person."""

    email: str
    subject: str


def verified_claims(raw: str, *, audience: str, keys: Callable[[str], Key | None], now: datetime) -> Claims:
    """Return the claims of an assertion that is beyond doubt.

    Args:
        raw: The header's value.
        audience: The one audience that counts.
        keys: Return the public key of a key id, or None.
        now: The time, UTC.

    Raises:
        InputRejected: Any doubt; ``why`` says which.
        DependencyFailed: ``keys`` could not answer.
    """
    parts = raw.split(".")
    if len(raw) > LIMIT or len(parts) != 3 or not all(_PART.fullmatch(p) for p in parts):
        raise _bad("the assertion is not a signed token")
    header = _object(parts[0], "header")
    if header.get("alg") != "ES256" or "crit" in header or not isinstance(header.get("kid"), str):
        raise _bad("the assertion is not signed with ES256 by a named key")
    key = keys(header["kid"])
    if key is None:
        raise _bad("the assertion is signed with a key that IAP does not have")
    _check_signature(key, signed=f"{parts[0]}.{parts[1]}".encode(), signature=_bytes(parts[2]))
    return _claims(_object(parts[1], "claims"), audience, now)


def _claims(claims: Mapping[str, Any], audience: str, now: datetime) -> Claims:
    if claims.get("iss") != ISSUER:
        raise _bad("the assertion was not issued by IAP")
    if not audience or claims.get("aud") != audience:
        raise _bad("the assertion is for another service")
    issued, expires = _seconds(claims, "iat"), _seconds(claims, "exp")
    at = now.timestamp()
    if issued > at + SKEW_S:
        raise _bad("the assertion was issued in the future")
    if expires <= at - SKEW_S:
        raise _bad("the assertion has expired")
    if not 0 < expires - issued <= LONGEST_S:
        raise _bad("the assertion claims to be valid for longer than IAP signs")
    email, subject = claims.get("email"), claims.get("sub")
    if not isinstance(email, str) or not isinstance(subject, str) or not 0 < len(email) <= 320 or not subject:
        raise _bad("the assertion names nobody")
    return Claims(email=email, subject=subject)


def _check_signature(key: Key, *, signed: bytes, signature: bytes) -> None:
    if key.get("kty") != "EC" or key.get("crv") != "P-256" or len(signature) != 64:
        raise _bad("the assertion's signature is not of ES256")
    try:
        x, y = (int.from_bytes(_bytes(str(key.get(n, "")))) for n in ("x", "y"))
        public = EllipticCurvePublicNumbers(x, y, SECP256R1()).public_key()
        der = encode_dss_signature(int.from_bytes(signature[:32]), int.from_bytes(signature[32:]))
        public.verify(der, signed, ECDSA(SHA256()))
    except (InvalidSignature, ValueError) as error:
        raise _bad("the assertion's signature is wrong") from error


def _seconds(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        raise _bad(f"the assertion has no time {name!r}")
    return float(value)


def _object(part: str, what: str) -> Mapping[str, Any]:
    parsed = read_json(_bytes(part), what=f"assertion's {what}", limit=LIMIT)
    if not isinstance(parsed, dict):
        raise _bad(f"the assertion's {what} is no object")
    return parsed


def _bytes(part: str) -> bytes:
    """Decode base64url; a form with other padding bits than the one its bytes give is refused."""
    try:
        data = base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _bad("the assertion is not base64url") from error
    if base64.urlsafe_b64encode(data).rstrip(b"=").decode() != part:
        raise _bad("the assertion is not base64url")
    return data


def _bad(why: str) -> InputRejected:
    return InputRejected("the IAP assertion was refused", why=why, mend="sign in through the proxy")
