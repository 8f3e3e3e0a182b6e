"""A signed token of Google (JSON Web Token), read to the letter: one algorithm, a known key, one issuer, its times."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from jwt import DecodeError, InvalidSignatureError, PyJWS, PyJWTError
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from jwt.utils import base64url_decode

from agent.errors import InputRejected
from agent.strict_json import read_object

SKEW_S = 30  # what Google's guide to signed headers allows for clocks (2026-11-21)
LIMIT = 8192  # bytes; more than any header of a load balancer carries

Key = Mapping[str, Any]
"""One public key as a JSON Web Key (RFC 7517)."""

Keys = Callable[[str], Key | None]
"""Returns the public key of a key id, or None; raises DependencyFailed where it cannot say."""

_PART = re.compile(r"[A-Za-z0-9_-]+")
_ADDRESS = re.compile(r"[!-?A-~]{1,250}@[!-?A-~]{1,250}")  # ASCII: no letter that another one folds to
_RSA_BITS = range(2048, 8193)
_RSA_EXPONENT = 65537
_KEY_PARTS: Final = {"RS256": ("RSA", ("n", "e")), "ES256": ("EC", ("crv", "x", "y"))}
_JWS: Final = PyJWS(algorithms=list(_KEY_PARTS), options={"enforce_minimum_key_length": True})


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of token.

    Attributes:
        name: How refusals call it, such as ``the assertion``.
        algorithm: The one algorithm that counts: ES256 or RS256 (RFC 7518). The header cannot choose another.
        holder: Whose keys sign it.
        longest_s: The longest life that its issuer gives, seconds; whatever claims more is not one of its own.
        refused: What did not happen, for the error.
        hint: What the bearer can do.
    """

    name: str
    algorithm: str
    holder: str
    longest_s: int
    refused: str
    hint: str

    def bad(self, why: str) -> InputRejected:
        """Return the refusal of a token of this kind."""
        return InputRejected(self.refused, why=f"{self.name} {why}", hint=self.hint)


def signed_claims(raw: str, kind: Kind, *, keys: Keys) -> Mapping[str, Any]:
    """Return the claims of a token with a valid signature; the claims themselves are not checked.

    Args:
        raw: Three parts of base64url, as it was sent.
        kind: What it must be.
        keys: The issuer's public keys.

    Raises:
        InputRejected: Any doubt; ``why`` says which.
        DependencyFailed: ``keys`` could not answer.
    """
    header = _object(_parts(raw, kind)[0], "header", kind)
    named = isinstance(header.get("kid"), str)
    if header.get("alg") != kind.algorithm or "crit" in header or not named or header.get("typ", "JWT") != "JWT":
        raise kind.bad(f"is not signed with {kind.algorithm} by a named key")
    key = keys(header["kid"])
    if key is None:
        raise kind.bad(f"is signed with a key that {kind.holder} does not have")
    if key.get("alg", kind.algorithm) != kind.algorithm or key.get("use", "sig") != "sig":
        raise kind.bad(f"is signed with a key that is not for {kind.algorithm}")
    try:
        payload = _JWS.decode(raw, _public_key(key, kind), algorithms=[kind.algorithm])
    except (PyJWTError, ValueError, TypeError) as error:
        ill_formed = isinstance(error, DecodeError) and not isinstance(error, InvalidSignatureError)
        raise kind.bad("is not base64url" if ill_formed else "has a wrong signature") from error
    return _claims(payload, "claims", kind)


def read_claims(raw: str, kind: Kind) -> Mapping[str, Any]:
    """Return what a token says, without a look at its signature: it proves nothing to anybody.

    Raises:
        InputRejected: It is no token.
    """
    return _object(_parts(raw, kind)[1], "claims", kind)


def lifetime(claims: Mapping[str, Any], kind: Kind, now: datetime) -> tuple[float, float]:
    """Return when a token was issued and when it expires, seconds since 1970; it is valid now.

    Raises:
        InputRejected: It is not, or claims a longer life than its issuer gives.
    """
    issued, expires = _seconds(claims, "iat", kind), _seconds(claims, "exp", kind)
    starts = _seconds(claims, "nbf", kind) if "nbf" in claims else issued
    at = now.timestamp()
    if max(issued, starts) > at + SKEW_S:
        raise kind.bad("was issued in the future")
    if expires <= at - SKEW_S:
        raise kind.bad("has expired")
    if not 0 < expires - issued <= kind.longest_s:
        raise kind.bad("claims to be valid for longer than it is signed for")
    return issued, expires


def bearer(claims: Mapping[str, Any], kind: Kind) -> tuple[str, str]:
    """Return e-mail and subject of a token.

    Raises:
        InputRejected: It names nobody, or an address that is no plain ASCII.
    """
    email, subject = claims.get("email"), claims.get("sub")
    if not isinstance(email, str) or not isinstance(subject, str) or not subject or not _ADDRESS.fullmatch(email):
        raise kind.bad("names nobody")
    return email, subject


def _parts(raw: str, kind: Kind) -> list[str]:
    """The library takes padding signs; a token has one form only, because its digest names it."""
    parts = raw.split(".")
    if len(raw) > LIMIT or len(parts) != 3 or not all(_PART.fullmatch(p) for p in parts):
        raise kind.bad("is not a signed token")
    return parts


def _public_key(key: Key, kind: Kind) -> Any:
    """Return the key for the library: of the one type that the algorithm has, its public parts alone."""
    type_, names = _KEY_PARTS[kind.algorithm]
    if key.get("kty") != type_ or not all(isinstance(key.get(name), str) for name in names):
        raise kind.bad(f"has a signature that is not of {kind.algorithm}")
    public = {"kty": type_} | {name: key[name] for name in names}
    if type_ == "EC":
        return ECAlgorithm.from_jwk(public)
    made = RSAAlgorithm.from_jwk(public)
    if made.key_size not in _RSA_BITS or made.public_numbers().e != _RSA_EXPONENT:  # type: ignore[union-attr]
        raise kind.bad("has a signature that is not of RS256")
    return made


def _seconds(claims: Mapping[str, Any], name: str, kind: Kind) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        raise kind.bad(f"has no time {name!r}")
    return float(value)


def _object(part: str, what: str, kind: Kind) -> Mapping[str, Any]:
    try:
        return _claims(base64url_decode(part), what, kind)
    except ValueError as error:
        raise kind.bad("is not base64url") from error


def _claims(raw: bytes, what: str, kind: Kind) -> Mapping[str, Any]:
    """The library reads JSON as Python does; nothing that stands twice or is no number gets through here."""
    try:
        return read_object(raw, what=what, limit=LIMIT)
    except InputRejected as error:
        raise kind.bad(f"has a {what} that cannot be read: {error.why}") from error
