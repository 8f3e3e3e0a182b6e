"""Tokens as Google signs them, with keys of our own, and a server on loopback that shows the public ones."""

import base64
import json
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from tests.loopback import Loopback

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
OURS = "https://sre-decide-123.us-central1.run.app"
GCLOUD = "32555940559.apps.googleusercontent.com"
IAP = "/projects/123/locations/us-central1/services/sre-console"
ADA = "ada@example.com"

RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def part(value):
    return b64(value if isinstance(value, bytes) else json.dumps(value).encode())


def rsa_jwk(private=RSA, **changes):
    public = private.public_key().public_numbers()
    n, e = (b64(value.to_bytes((value.bit_length() + 7) // 8)) for value in (public.n, public.e))
    return {"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "g1", "n": n, "e": e} | changes


def ec_jwk(private=EC, **changes):
    public = private.public_key().public_numbers()
    x, y = (b64(value.to_bytes(32)) for value in (public.x, public.y))
    return {"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "i1", "x": x, "y": y} | changes


def seconds(at=NOW):
    return int(at.timestamp())


def id_claims(at=NOW, **changes):
    """The claims of a person of a Workspace domain; ``...`` takes one away."""
    made = {
        "iss": "https://accounts.google.com",
        "azp": GCLOUD,
        "aud": OURS,
        "sub": "110000000000000000001",
        "hd": "example.com",
        "email": ADA,
        "email_verified": True,
        "at_hash": "n879grk0yDwMjWx92oPjRQ",
        "iat": seconds(at) - 60,
        "exp": seconds(at) + 3540,
    } | changes
    return {name: value for name, value in made.items() if value is not ...}


def rs256(text, private=RSA):
    return private.sign(text.encode(), padding.PKCS1v15(), SHA256())


def id_token(claims=None, *, header=None, private=RSA):
    """A token as Google signs it, or with anything in its place."""
    head = {"alg": "RS256", "kid": "g1", "typ": "JWT"} if header is None else header
    text = f"{part(head)}.{part(id_claims() if claims is None else claims)}"
    return f"{text}.{b64(rs256(text, private))}"


def assertion(at=NOW, *, private=EC, **changes):
    """An assertion as Identity-Aware Proxy signs it."""
    claims = {
        "iss": "https://cloud.google.com/iap",
        "aud": IAP,
        "sub": "accounts.google.com:1234",
        "email": ADA,
        "iat": seconds(at) - 60,
        "exp": seconds(at) + 540,
    } | changes
    text = f"{part({'alg': 'ES256', 'typ': 'JWT', 'kid': 'i1'})}.{part(claims)}"
    r, s = decode_dss_signature(private.sign(text.encode(), ec.ECDSA(SHA256())))
    return f"{text}.{b64(r.to_bytes(32) + s.to_bytes(32))}"


class KeyServer(Loopback):
    """Serves Google's keys under /certs and the proxy's under /iap."""

    def __init__(self):
        shown = {"/certs": {"keys": [rsa_jwk()]}, "/iap": {"keys": [ec_jwk()]}}
        super().__init__(
            lambda request: (200 if request.path in shown else 404, shown.get(request.path)), methods=["GET"]
        )
