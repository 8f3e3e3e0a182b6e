"""The ID token of a Google account, checked to the letter: RS256, key, audience, issuer, times, address."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final

from agent.core.value import Value
from agent.entrypoints.http.signed_token import Keys, Kind, bearer, lifetime, read_claims, signed_claims

ISSUERS: Final = frozenset({"https://accounts.google.com", "accounts.google.com"})
ID_TOKEN: Final = Kind(
    name="the ID token",
    algorithm="RS256",
    holder="Google",
    longest_s=3600,
    refused="the ID token was refused",
    hint="get a fresh one: gcloud auth print-identity-token",
)
"""https://developers.google.com/identity/openid-connect/openid-connect, "validating an ID token" (2026-11-21)"""

_OWN_DOMAINS = ("@gmail.com", ".gserviceaccount.com")


class IdToken(Value):
    """Who somebody is, in Google's word.

    Attributes:
        audience: For whom the token was made, one of those that were accepted.
        issued_s: Seconds since 1970.
        expires_s: Seconds since 1970.
    """

    email: str
    subject: str
    audience: str
    issued_s: float
    expires_s: float


def verified_id_token(raw: str, *, audiences: Collection[str], keys: Keys, now: datetime) -> IdToken:
    """Return what an ID token says that is beyond doubt.

    Args:
        raw: The token as it was sent.
        audiences: Those that count; none refuses every token.
        keys: Google's public keys.
        now: The time, UTC.

    Raises:
        InputRejected: Any doubt; ``why`` says which.
        DependencyFailed: ``keys`` could not answer.
    """
    claims = signed_claims(raw, ID_TOKEN, keys=keys)
    issuer, audience = claims.get("iss"), claims.get("aud")
    if not isinstance(issuer, str) or issuer not in ISSUERS:
        raise ID_TOKEN.bad("was not issued by Google's accounts")
    if not isinstance(audience, str) or not audience or audience not in audiences:
        raise ID_TOKEN.bad(f"is for {str(audience)[:120]!r}, which ID_TOKEN_AUDIENCES does not name")
    issued, expires = lifetime(claims, ID_TOKEN, now)
    email, subject = bearer(claims, ID_TOKEN)
    if claims.get("email_verified") is not True or not _googles_word(claims, email):
        raise ID_TOKEN.bad(f"does not prove that {email!r} belongs to its bearer")
    return IdToken(email=email, subject=subject, audience=audience, issued_s=issued, expires_s=expires)


def named_in(raw: str) -> str:
    """Return the address that a token of our own names: who we say we are, where nobody needs a proof of it.

    Raises:
        InputRejected: It is no token, or names nobody.
    """
    return bearer(read_claims(raw, ID_TOKEN), ID_TOKEN)[0]


def _googles_word(claims: Mapping[str, Any], email: str) -> bool:
    """Whether Google itself runs the address: of an address elsewhere it knows only that it was read once.

    https://developers.google.com/identity/gsi/web/guides/verify-google-id-token (2026-11-21)
    """
    domain = claims.get("hd")
    return email.lower().endswith(_OWN_DOMAINS) or (isinstance(domain, str) and bool(domain))
