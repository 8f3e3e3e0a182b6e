"""Nobody is anybody without a verified assertion; every way to forge one is refused."""

import base64
import json
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from werkzeug.datastructures import Headers

from agent.entrypoints.console.identity import ASSERTION, IapPerson, LocalOperator
from agent.errors import DependencyFailed, PolicyRefused

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
AUDIENCE = "/projects/123/global/backendServices/456"
PRIVATE = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
P384 = ec.generate_private_key(ec.SECP384R1())


class Fixed:
    def now(self):
        return NOW


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def jwk(private, **changes):
    numbers = private.public_key().public_numbers()
    size = (private.curve.key_size + 7) // 8
    key = {"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "k1"}
    return key | {"x": b64(numbers.x.to_bytes(size)), "y": b64(numbers.y.to_bytes(size))} | changes


def claims(**changes):
    made = {
        "iss": "https://cloud.google.com/iap",
        "aud": AUDIENCE,
        "sub": "accounts.google.com:1234",
        "email": "ada@example.com",
        "iat": int(NOW.timestamp()) - 60,
        "exp": int(NOW.timestamp()) + 540,
    }
    return {k: v for k, v in (made | changes).items() if v is not ...}


def signed(header=None, body=None, private=PRIVATE, raw_body=None):
    head = {"alg": "ES256", "typ": "JWT", "kid": "k1"} if header is None else header
    text = (
        f"{b64(json.dumps(head).encode())}.{b64(raw_body or json.dumps(claims() if body is None else body).encode())}"
    )
    r, s = decode_dss_signature(private.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    size = (private.curve.key_size + 7) // 8
    return f"{text}.{b64(r.to_bytes(size) + s.to_bytes(size))}"


def iap(keys=None):
    known = {"k1": jwk(PRIVATE)} if keys is None else keys
    return IapPerson(audience=AUDIENCE, keys=known.get, clock=Fixed())


def test_a_good_assertion_names_the_person_as_verified():
    person = iap().person(Headers({ASSERTION: signed()}))
    assert (person.who, person.verified) == ("ada@example.com", True)


def test_the_plain_headers_of_the_proxy_are_nobody():
    headers = Headers(
        {
            "X-Goog-Authenticated-User-Email": "accounts.google.com:ada@example.com",
            "X-Goog-Authenticated-User-Id": "accounts.google.com:1234",
            "X-Forwarded-User": "ada@example.com",
            "Authorization": f"Bearer {signed()}",
        }
    )
    with pytest.raises(PolicyRefused, match="no signed assertion"):
        iap().person(headers)


def test_the_full_message_says_what_why_and_how_to_mend():
    with pytest.raises(PolicyRefused) as refused:
        iap().person(Headers())
    assert str(refused.value) == (
        "you are not signed in: the request carries no signed assertion of Identity-Aware Proxy. "
        "Hint: open the console through its IAP address and sign in"
    )


def hmac_with_public_key() -> str:
    """The classic: the public key taken as an HMAC secret."""
    pem = PRIVATE.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    text = f"{b64(json.dumps({'alg': 'HS256', 'kid': 'k1'}).encode())}.{b64(json.dumps(claims()).encode())}"
    mac = hmac.HMAC(pem, hashes.SHA256())
    mac.update(text.encode())
    return f"{text}.{b64(mac.finalize())}"


def der_signature() -> str:
    text = signed().rsplit(".", 1)[0]
    return f"{text}.{b64(PRIVATE.sign(text.encode(), ec.ECDSA(hashes.SHA256())))}"


def with_own_key() -> str:
    """A header that brings its own key, or points to one."""
    return signed({"alg": "ES256", "kid": "k1", "jwk": jwk(OTHER), "jku": "http://127.0.0.1/k"}, private=OTHER)


at = int(NOW.timestamp())
FORGED = {
    "empty": "",
    "a word": "ada@example.com",
    "two parts": signed().rsplit(".", 1)[0],
    "four parts": signed() + ".x",
    "two assertions joined": f"{signed()},{signed()}",
    "no signature": signed().rsplit(".", 1)[0] + ".",
    "alg none": b64(json.dumps({"alg": "none", "kid": "k1"}).encode()) + "." + signed().split(".")[1] + ".",
    "alg none, signed": signed({"alg": "none", "kid": "k1"}),
    "alg in other letters": signed({"alg": "es256", "kid": "k1"}),
    "alg of another curve": signed({"alg": "ES384", "kid": "k1"}),
    "hmac with the public key": hmac_with_public_key(),
    "signature in DER": der_signature(),
    "signature of zeros": signed().rsplit(".", 1)[0] + "." + b64(bytes(64)),
    "another's key": signed(private=OTHER),
    "its own key in the header": with_own_key(),
    "unknown key id": signed({"alg": "ES256", "kid": "k2"}),
    "no key id": signed({"alg": "ES256"}),
    "a list as key id": signed({"alg": "ES256", "kid": ["k1"]}),
    "critical extensions": signed({"alg": "ES256", "kid": "k1", "crit": ["exp"]}),
    "header is a list": signed(["ES256"]),
    "claims are a list": signed(body=[1]),
    "claims twice": signed(raw_body=json.dumps(claims())[:-1].encode() + b', "email": "root@example.com"}'),
    "claims are no JSON": signed(raw_body=b"{]"),
    "another issuer": signed(body=claims(iss="https://accounts.google.com")),
    "issuer with a slash": signed(body=claims(iss="https://cloud.google.com/iap/")),
    "no issuer": signed(body=claims(iss=...)),
    "another audience": signed(body=claims(aud="/projects/123/global/backendServices/457")),
    "audiences in a list": signed(body=claims(aud=[AUDIENCE, "x"])),
    "no audience": signed(body=claims(aud=...)),
    "expired": signed(body=claims(iat=at - 700, exp=at - 31)),
    "expires never": signed(body=claims(exp=...)),
    "expires in words": signed(body=claims(exp="tomorrow")),
    "expires as true": signed(body=claims(exp=True)),
    "good for a day": signed(body=claims(exp=at + 86_400)),
    "issued in the future": signed(body=claims(iat=at + 31)),
    "expires before it was issued": signed(body=claims(iat=at + 20, exp=at + 10)),
    "no issue time": signed(body=claims(iat=...)),
    "infinite": signed(raw_body=json.dumps(claims()).replace(str(at + 540), "1e999").encode()),
    "not a number": signed(raw_body=json.dumps(claims()).replace(str(at + 540), "NaN").encode()),
    "no email": signed(body=claims(email=...)),
    "empty email": signed(body=claims(email="")),
    "email is a list": signed(body=claims(email=["ada@example.com"])),
    "no subject": signed(body=claims(sub=...)),
    "too long": signed(body=claims(pad="x" * 9000)),
}  # fmt: skip


@pytest.mark.parametrize("raw", FORGED.values(), ids=FORGED.keys())
def test_a_forged_assertion_is_refused(raw):
    with pytest.raises(PolicyRefused):
        iap().person(Headers({ASSERTION: raw}) if raw else Headers())


def test_every_changed_character_is_refused():
    """Each character replaced by another of the alphabet, padding bits included: nobody gets in."""
    good = signed()
    for place, sign in enumerate(good):
        changed = good[:place] + ("B" if sign != "B" else "C") + good[place + 1 :]
        with pytest.raises(PolicyRefused):
            iap().person(Headers({ASSERTION: changed}))


def test_every_prefix_is_refused():
    good = signed()
    for end in range(1, len(good)):
        with pytest.raises(PolicyRefused):
            iap().person(Headers({ASSERTION: good[:end]}))


@pytest.mark.parametrize(
    "key",
    [
        jwk(PRIVATE, kty="oct", k="c2VjcmV0"),
        jwk(PRIVATE, crv="P-384"),
        jwk(PRIVATE, x="AA"),
        jwk(PRIVATE, y=None),
        {k: v for k, v in jwk(PRIVATE).items() if k != "x"},
        jwk(P384),
    ],
    ids=["symmetric", "other curve", "not on the curve", "no y", "without x", "a longer key"],
)
def test_a_key_that_cannot_be_one_refuses(key):
    with pytest.raises(PolicyRefused):
        iap({"k1": key}).person(Headers({ASSERTION: signed()}))


def test_clocks_may_differ_by_half_a_minute():
    for body in (claims(iat=at + 29), claims(iat=at - 600, exp=at - 29)):
        assert iap().person(Headers({ASSERTION: signed(body=body)})).verified


def test_an_empty_audience_lets_nobody_in():
    nobody = IapPerson(audience="", keys={"k1": jwk(PRIVATE)}.get, clock=Fixed())
    with pytest.raises(PolicyRefused):
        nobody.person(Headers({ASSERTION: signed(body=claims(aud=""))}))


def test_keys_that_cannot_be_had_are_no_yes():
    def down(_kid):
        raise DependencyFailed("the keys were not read", why="HTTP 500", hint="try again")

    unsure = IapPerson(audience=AUDIENCE, keys=down, clock=Fixed())
    with pytest.raises(DependencyFailed):
        unsure.person(Headers({ASSERTION: signed()}))


def test_the_local_operator_is_the_same_whatever_headers_claim():
    person = LocalOperator("ada").person(Headers({ASSERTION: signed(), "X-Forwarded-User": "root"}))
    assert (person.who, person.verified) == ("ada", False)


def test_iap_keys_expire_with_the_assertion_not_before():
    """The very second of expiry is over, allowing for the skew."""
    edge = NOW - timedelta(seconds=30)
    with pytest.raises(PolicyRefused, match="expired"):
        iap().person(Headers({ASSERTION: signed(body=claims(iat=at - 600, exp=int(edge.timestamp())))}))


def test_the_same_signature_in_other_letters_is_refused():
    """The last letter of 64 bytes holds four bits that mean nothing; only the form that has them zero counts."""
    good = signed()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    twin = good[:-1] + alphabet[alphabet.index(good[-1]) + 1]
    assert unb64(twin.rsplit(".", 1)[1]) == unb64(good.rsplit(".", 1)[1])
    with pytest.raises(PolicyRefused, match="not base64url"):
        iap().person(Headers({ASSERTION: twin}))
