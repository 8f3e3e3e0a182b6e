"""Forms that only our own page can send: a token over cookie, plan, digest and person, and the origin of the post."""

import hashlib
import hmac
import secrets
from urllib.parse import urlsplit

from werkzeug.datastructures import Headers

from agent.core.value import canonical
from agent.ports.stage_context import StageContext

COOKIE = "sre-console"
COOKIE_BYTES = 18


def form_key_of(context: StageContext) -> bytes:
    """Return a key for form tokens: derived where the context holds the receipt key, else this process's own.

    With a key of its own a page is good for this process only; where several instances serve the console,
    give them one secret.
    """
    return secrets.token_bytes(32) if context.receipt_key is None else form_key_from(context.receipt_key)


def form_key_from(secret: bytes) -> bytes:
    """Return the key for form tokens that is derived from a secret; it says nothing about the secret."""
    return hmac.new(secret, b"console form tokens, 2026-11-21", hashlib.sha256).digest()


def new_cookie() -> str:
    """Return a fresh cookie value."""
    return secrets.token_urlsafe(COOKIE_BYTES)


def token(key: bytes, *, cookie: str, plan: str, plan_digest: str, who: str) -> str:
    """Return the token of one form: good for this browser, this person and exactly this plan."""
    body = canonical(["decide", cookie, plan, plan_digest, who])
    return hmac.new(key, body, hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Compare in constant time, whatever characters were sent."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def foreign_post(headers: Headers, own_origin: str) -> str:
    """Return why a post does not come from our own page, or nothing.

    Args:
        headers: The request's headers.
        own_origin: ``scheme://host[:port]`` as people's browsers see us.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None and site != "same-origin":
        return f"the browser says that it was sent from another site ({site[:20]!r})"
    origin = headers.get("Origin")
    if origin is None:
        referer = urlsplit(headers.get("Referer", ""))
        origin = f"{referer.scheme}://{referer.netloc}" if referer.netloc else None
    if origin is None:
        return "the browser does not say from which page it was sent"
    return "" if origin == own_origin else "it was sent from another page than ours"
