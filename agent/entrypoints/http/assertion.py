"""The signed assertion of Identity-Aware Proxy, checked to the letter: ES256, key, audience, issuer, times."""

from datetime import datetime
from typing import Final

from agent.core.value import Value
from agent.entrypoints.http.signed_token import Keys, Kind, bearer, lifetime, signed_claims

ISSUER: Final = "https://cloud.google.com/iap"
ASSERTION: Final = Kind(
    name="the assertion",
    algorithm="ES256",
    holder="IAP",
    longest_s=3600,  # IAP signs for ten minutes
    refused="the IAP assertion was refused",
    hint="sign in through the proxy",
)
"""https://cloud.google.com/iap/docs/signed-headers-howto (2026-11-21)"""


class Claims(Value):
    """What the proxy says about the person.

    Attributes:
        expires_s: Seconds since 1970.
    """

    email: str
    subject: str
    expires_s: float


def verified_claims(raw: str, *, audience: str, keys: Keys, now: datetime) -> Claims:
    """Return the claims of an assertion that is beyond doubt.

    Args:
        raw: The header's value.
        audience: The one audience that counts.
        keys: IAP's public keys.
        now: The time, UTC.

    Raises:
        InputRejected: Any doubt; ``why`` says which.
        DependencyFailed: ``keys`` could not answer.
    """
    claims = signed_claims(raw, ASSERTION, keys=keys)
    if claims.get("iss") != ISSUER:
        raise ASSERTION.bad("was not issued by IAP")
    if not audience or claims.get("aud") != audience:
        raise ASSERTION.bad("is for another service")
    _, expires = lifetime(claims, ASSERTION, now)
    email, subject = bearer(claims, ASSERTION)
    return Claims(email=email, subject=subject, expires_s=expires)
