"""Signed requests of others, checked to the letter: Slack's signature and Standard Webhooks', both ways."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from agent.core.value import Value
from agent.errors import InputRejected, SettingsRejected

TOLERANCE: Final = timedelta(minutes=5)
"""https://docs.slack.dev/authentication/verifying-requests-from-slack and the Standard Webhooks specification b2fa7b8
(2026-08-17), read 2026-11-21."""

_SECONDS = re.compile(r"[1-9][0-9]{0,10}")
_SLACK = re.compile(r"v0=[0-9a-f]{64}")
_PAGERDUTY = re.compile(r"v1=[0-9a-f]{64}(?:, ?v1=[0-9a-f]{64}){0,7}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")  # no dot: it separates what is signed
_SIGNATURES = re.compile(r"v1a?,[A-Za-z0-9+/=]{1,128}(?: v1a?,[A-Za-z0-9+/=]{1,128}){0,15}")


class Unsigned(InputRejected):
    """The request does not prove where it comes from; the answer never says which part was wrong."""


class Signed(Value):
    """A request that is signed and fresh.

    Attributes:
        once: A name that no other request has: whoever uses it a second time replays this one.
        until: When the signature stops being fresh, so that the name may be forgotten.
    """

    once: str
    until: datetime


def check_slack(headers: Mapping[str, str], body: bytes, *, secret: bytes, now: datetime) -> Signed:
    """Check Slack's signature over the raw body.

    Args:
        headers: Of the request, in any case.
        body: As it came, before any parsing.
        secret: The app's signing secret.
        now: The time, UTC.

    Raises:
        Unsigned: Any doubt.
    """
    names = _lower(headers)
    stamp, signature = names.get("x-slack-request-timestamp", ""), names.get("x-slack-signature", "")
    until = _fresh(stamp, now)
    expected = "v0=" + hmac.new(secret, b"v0:%b:%b" % (stamp.encode(), body), hashlib.sha256).hexdigest()
    if not _SLACK.fullmatch(signature) or not hmac.compare_digest(signature.encode(), expected.encode()):
        raise _unsigned()
    return Signed(once=f"slack:{signature[3:]}", until=until)


def check_pagerduty(headers: Mapping[str, str], body: bytes, *, secrets: Iterable[bytes]) -> None:
    """Check the signature of a PagerDuty v3 webhook; it says nothing of its time, which stands in the signed body.

    Source: https://docs.pagerduty.com/developer/verifying-webhook-signatures (2026-11-22).

    Args:
        headers: Of the request, in any case.
        body: As it came, before any parsing.
        secrets: Of the subscription; one of several is enough, so that they can be rotated.

    Raises:
        Unsigned: Any doubt.
    """
    given = _lower(headers).get("x-pagerduty-signature", "")
    if not _PAGERDUTY.fullmatch(given):
        raise _unsigned()
    held = False
    for secret in secrets:
        expected = f"v1={hmac.new(secret, body, hashlib.sha256).hexdigest()}".encode()
        for one in given.split(","):
            held |= hmac.compare_digest(one.strip().encode(), expected)
    if not held:
        raise _unsigned()


def check_standard(
    headers: Mapping[str, str], body: bytes, *, secrets: Iterable[bytes], sender: str, now: datetime
) -> Signed:
    """Check a Standard Webhooks signature; one of several secrets is enough, so that they can be rotated.

    Args:
        headers: Of the request, in any case.
        body: As it came.
        secrets: The sender's secrets, decoded.
        sender: Whose ids these are.
        now: The time, UTC.

    Raises:
        Unsigned: Any doubt.
    """
    names = _lower(headers)
    id_, stamp = names.get("webhook-id", ""), names.get("webhook-timestamp", "")
    given = names.get("webhook-signature", "")
    until = _fresh(stamp, now)
    if not _ID.fullmatch(id_) or not _SIGNATURES.fullmatch(given):
        raise _unsigned()
    held = False
    for secret in secrets:
        expected = standard_signature(id_, stamp, body, secret).encode()
        for one in given.split(" "):
            held |= hmac.compare_digest(one.encode(), expected)
    if not held:
        raise _unsigned()
    return Signed(once=f"webhook:{sender}:{id_}", until=until)


def standard_signature(id_: str, stamp: str, body: bytes, secret: bytes) -> str:
    """Return ``v1,`` and the signature over id, time and body."""
    signed = b"%b.%b.%b" % (id_.encode(), stamp.encode(), body)
    return "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()


def standard_headers(id_: str, body: bytes, *, secrets: Iterable[bytes], at: datetime) -> dict[str, str]:
    """Return the headers of an outgoing webhook, signed with every secret, so that receivers can rotate theirs."""
    stamp = str(int(at.timestamp()))
    return {
        "content-type": "application/json",
        "webhook-id": id_,
        "webhook-timestamp": stamp,
        "webhook-signature": " ".join(standard_signature(id_, stamp, body, secret) for secret in secrets),
    }


def webhook_secret(text: str) -> bytes:
    """Return the bytes of a ``whsec_`` secret.

    Raises:
        SettingsRejected: It is none, or not of 24 to 64 bytes; the secret is not shown.
    """
    try:
        secret = base64.b64decode(text.removeprefix("whsec_"), validate=True) if text.startswith("whsec_") else b""
    except (binascii.Error, ValueError):
        secret = b""
    if not 24 <= len(secret) <= 64:
        raise SettingsRejected(
            "a webhook secret was not taken",
            why="it is not whsec_ and the base64 of 24 to 64 bytes",
            hint="make one: echo whsec_$(openssl rand -base64 32)",
        )
    return secret


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _fresh(stamp: str, now: datetime) -> datetime:
    """Return until when a time counts as fresh; written otherwise than as plain seconds it never does."""
    if not _SECONDS.fullmatch(stamp):
        raise _unsigned()
    at = datetime.fromtimestamp(int(stamp), UTC)
    if abs(now - at) > TOLERANCE:
        raise _unsigned()
    return at + TOLERANCE


def _unsigned() -> Unsigned:
    return Unsigned(
        "the request was not taken",
        why="it does not prove that it comes from a sender we know, or it is too old",
        hint="sign it with the secret that was set for this sender",
    )
