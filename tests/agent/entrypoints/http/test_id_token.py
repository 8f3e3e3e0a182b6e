"""Nobody is anybody without a token that Google signed for us; every way to forge one is refused, and none raises."""

import base64
import json
import random
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from agent.entrypoints.http.id_token import verified_id_token
from agent.entrypoints.http.signed_token import LIMIT
from agent.errors import DependencyFailed, InputRejected

OTHER = rsa.generate_private_key(65537, 2048)
THREE = rsa.generate_private_key(3, 2048)
SMALL = rsa.generate_private_key(65537, 1024)


@pytest.fixture(scope="module")
def read(tokens):
    """Return what a token says, with Google's one key."""

    def reading(raw, *, audiences=(tokens.OURS, tokens.GCLOUD), keys=None, now=tokens.NOW):
        known = {"g1": tokens.rsa_jwk()} if keys is None else keys
        return verified_id_token(raw, audiences=audiences, keys=known.get, now=now)

    return reading


def test_a_good_token_says_who_and_for_whom(read, tokens):
    said = read(tokens.id_token())
    assert (said.email, said.audience) == (tokens.ADA, tokens.OURS)
    assert said.expires_s - said.issued_s == 3600


def test_googles_own_library_takes_the_same_token(tokens):
    """What stands for Google here signs as Google does; the library knows only the true time."""
    from google.auth import jwt

    pem = tokens.RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    raw = tokens.id_token(tokens.id_claims(datetime.now(UTC)))
    assert jwt.decode(raw, certs={"g1": pem}, audience=tokens.OURS)["email"] == tokens.ADA
    with pytest.raises(ValueError, match="signature"):
        jwt.decode(raw, certs={"g1": OTHER.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )}, audience=tokens.OURS)  # fmt: skip


@pytest.mark.parametrize("changes", [
    {"iss": "accounts.google.com"},
    {"aud": "32555940559.apps.googleusercontent.com"},
    {"email": "sre@example.iam.gserviceaccount.com", "hd": ..., "azp": "1"},
    {"email": "ada@gmail.com", "hd": ...},
    {"nonce": "x", "name": "Ada", "locale": "de"},
], ids=["the other issuer", "gcloud's audience", "a service account", "a Gmail address", "more claims"])  # fmt: skip
def test_other_good_tokens_are_taken(read, tokens, changes):
    assert read(tokens.id_token(tokens.id_claims(**changes))).subject


def hmac_with_public_key(tokens):
    """The classic: the public key taken as an HMAC secret."""
    pem = tokens.RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    text = f"{tokens.part({'alg': 'HS256', 'kid': 'g1'})}.{tokens.part(tokens.id_claims())}"
    mac = hmac.HMAC(pem, hashes.SHA256())
    mac.update(text.encode())
    return f"{text}.{tokens.b64(mac.finalize())}"


def with_padding(tokens, how):
    text = f"{tokens.part({'alg': 'RS256', 'kid': 'g1'})}.{tokens.part(tokens.id_claims())}"
    return f"{text}.{tokens.b64(tokens.RSA.sign(text.encode(), how, hashes.SHA256()))}"


def forged(tokens):
    """Every single way to forge a token that has a name."""
    good, claims, at = tokens.id_token(), tokens.id_claims, tokens.seconds()
    head, body, signature = good.split(".")
    raw = json.dumps(claims())
    pss = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
    sha1 = tokens.RSA.sign(f"{head}.{body}".encode(), padding.PKCS1v15(), hashes.SHA1())

    def headed(**changes):
        made = {"alg": "RS256", "kid": "g1", "typ": "JWT"} | changes
        return tokens.id_token(header={name: value for name, value in made.items() if value is not ...})

    def said(**changes):
        return tokens.id_token(claims(**changes))

    return {
        "empty": "", "a word": tokens.ADA, "dots": "..", "two parts": f"{head}.{body}", "four parts": f"{good}.x",
        "two tokens": f"{good},{good}", "no signature": f"{head}.{body}.", "with a blank": f"{good} ",
        "with a line feed": f"{good}\n", "with padding signs": f"{head}.{body}.{signature}==",
        "bearer before it": f"Bearer {good}", "with a null": f"{good}\0", "other digits": good.replace("e", chr(0x435)),
        "standard base64": base64.b64encode(base64.urlsafe_b64decode(head + "==")).decode() + f".{body}.{signature}",
        "alg none": f"{tokens.part({'alg': 'none', 'kid': 'g1'})}.{body}.",
        "alg none, signed": headed(alg="none"), "alg None": headed(alg="None"), "alg null": headed(alg=None),
        "alg missing": headed(alg=...), "alg in other letters": headed(alg="rs256"), "alg a list": headed(alg=["RS256"]),
        "alg RS384": headed(alg="RS384"), "alg RS512": headed(alg="RS512"), "alg PS256": headed(alg="PS256"),
        "alg ES256": headed(alg="ES256"), "alg HS256": headed(alg="HS256"), "alg RS1": headed(alg="RS1"),
        "alg dir": headed(alg="dir", enc="A128GCM"), "hmac with the public key": hmac_with_public_key(tokens),
        "signed as PSS": with_padding(tokens, pss), "signed over SHA-1": f"{head}.{body}.{tokens.b64(sha1)}",
        "signature of zeros": f"{head}.{body}.{tokens.b64(bytes(256))}",
        "signature one byte short": f"{head}.{body}.{tokens.b64(base64.urlsafe_b64decode(signature + '==')[1:])}",
        "signature one byte long": f"{head}.{body}.{tokens.b64(bytes(1) + base64.urlsafe_b64decode(signature + '=='))}",
        "signature beyond the modulus": f"{head}.{body}.{tokens.b64(bytes([255]) * 256)}",
        "an assertion of the proxy": tokens.assertion(), "another's key": tokens.id_token(private=OTHER),
        "its own key in the header": tokens.id_token(
            header={"alg": "RS256", "kid": "g1", "jwk": tokens.rsa_jwk(OTHER), "jku": "http://127.0.0.1/k"}, private=OTHER
        ),
        "unknown key id": headed(kid="g2"), "no key id": headed(kid=...), "key id a list": headed(kid=["g1"]),
        "key id with a path": headed(kid="../g1"), "key id null": headed(kid=None), "key id a number": headed(kid=1),
        "critical extensions": headed(crit=["exp"]), "an access token's type": headed(typ="at+jwt"),
        "a logout token's type": headed(typ="logout+jwt"), "header a list": tokens.id_token(header=["RS256"]),
        "header twice": tokens.id_token(header=b'{"alg":"none","alg":"RS256","kid":"g1"}'),
        "header no JSON": tokens.id_token(header=b"{]"), "header empty": tokens.id_token(header=b""),
        "claims a list": tokens.id_token([1]), "claims null": tokens.id_token(b"null"), "claims empty": tokens.id_token(b""),
        "claims twice": tokens.id_token((raw[:-1] + ', "email": "root@example.com"}').encode()),
        "claims no JSON": tokens.id_token(b"{]"), "claims with a mark before": tokens.id_token(b"\xef\xbb\xbf" + raw.encode()),
        "claims not UTF-8": tokens.id_token(raw.encode().replace(b"ada", b"\xff\xfe")),
        "claims with half a character": tokens.id_token(raw.replace("ada", "\\ud800").encode()),
        "claims nested deeply": tokens.id_token((raw[:-1] + ', "x": ' + "[" * 900 + "]" * 900 + "}").encode()),
        "another issuer": said(iss="https://cloud.google.com/iap"), "issuer with a slash": said(iss="https://accounts.google.com/"),
        "issuer by http": said(iss="http://accounts.google.com"), "issuer elsewhere": said(iss="https://accounts.google.com.evil.example"),
        "issuer a list": said(iss=["https://accounts.google.com"]), "no issuer": said(iss=...), "issuer null": said(iss=None),
        "another audience": said(aud="https://sre-decide-124.us-central1.run.app"), "audience with a slash": said(aud=tokens.OURS + "/"),
        "audience in other letters": said(aud=tokens.OURS.upper()), "audience a list": said(aud=[tokens.OURS]),
        "audience a prefix": said(aud=tokens.OURS[:-1]), "audience empty": said(aud=""), "no audience": said(aud=...),
        "audience null": said(aud=None), "expired": said(iat=at - 3600, exp=at - 31), "expires never": said(exp=...),
        "expires in words": said(exp="tomorrow"), "expires as text": said(exp=str(at + 60)), "expires as true": said(exp=True),
        "expires null": said(exp=None), "good for a day": said(exp=at + 86_400), "good for an hour and a second": said(exp=at + 3541),
        "issued in the future": said(iat=at + 31), "not yet": said(nbf=at + 60), "not yet, in words": said(nbf="later"),
        "expires before it was issued": said(iat=at + 20, exp=at + 10), "no issue time": said(iat=...),
        "issue time infinite": tokens.id_token(raw.replace(str(at - 60), "-1e999").encode()),
        "infinite": tokens.id_token(raw.replace(str(at + 3540), "1e999").encode()),
        "not a number": tokens.id_token(raw.replace(str(at + 3540), "NaN").encode()),
        "no email": said(email=...), "email empty": said(email=""), "email a list": said(email=[tokens.ADA]),
        "email without a domain": said(email="ada"), "email with a blank": said(email="ada @example.com"),
        "email with another k": said(email=tokens.ADA.replace("a", chr(0x430))), "email with two ats": said(email="a@b@example.com"),
        "email with a line feed": said(email="ada@example.com\n"), "not verified": said(email_verified=False),
        "verified in words": said(email_verified="true"), "verified as one": said(email_verified=1), "verified missing": said(email_verified=...),
        "of an address elsewhere": said(hd=...), "of an empty domain": said(hd=""), "domain a list": said(hd=["example.com"]),
        "like Gmail": said(hd=..., email="ada@notgmail.com"), "no subject": said(sub=...), "subject empty": said(sub=""),
        "subject a number": said(sub=11), "too long": said(pad="x" * LIMIT),
    }  # fmt: skip


def test_a_forged_token_is_refused(read, tokens):
    """More than a hundred ways with a name: each is a typed refusal, and nothing else."""
    made = forged(tokens)
    assert len(made) > 100
    for name, raw in made.items():
        with pytest.raises(InputRejected, match="the ID token was refused"):
            pytest.fail(f"{name}: {read(raw)}")


def test_every_changed_character_is_refused(read, tokens):
    """Each character replaced by another of the alphabet, padding bits included: nobody gets in."""
    good = tokens.id_token()
    for place, sign in enumerate(good):
        with pytest.raises(InputRejected):
            read(good[:place] + ("B" if sign != "B" else "C") + good[place + 1 :])


def test_every_prefix_is_refused(read, tokens):
    good = tokens.id_token()
    for end in range(len(good)):
        with pytest.raises(InputRejected):
            read(good[:end])


def test_chance_gets_nobody_in(read, tokens):
    """A thousand mutants: bytes struck out, put in, exchanged, parts of two tokens mixed."""
    dice, good, other = random.Random(7), tokens.id_token(), tokens.id_token(private=OTHER)
    alphabet = "ABCxyz019-_.=+/ \n\0é"
    for _ in range(1000):
        made = list(dice.choice((good, other)))
        for _ in range(dice.randint(1, 4)):
            place = dice.randrange(len(made))
            match dice.randrange(4):
                case 0:
                    del made[place]
                case 1:
                    made.insert(place, dice.choice(alphabet))
                case 2:
                    made[place] = dice.choice(alphabet.replace(made[place], ""))
                case _:
                    made = made[:place] + list(other[place:])
        if "".join(made) != good:
            with pytest.raises(InputRejected):
                read("".join(made))


def test_a_key_that_cannot_be_one_refuses(read, tokens):
    good = tokens.rsa_jwk()
    strange = {
        "symmetric": good | {"kty": "oct", "k": "c2VjcmV0"}, "of a curve": tokens.ec_jwk(), "no modulus": good | {"n": ""},
        "modulus a number": good | {"n": 5}, "without n": {k: v for k, v in good.items() if k != "n"},
        "exponent one": good | {"e": "AQ"}, "exponent three": tokens.rsa_jwk(THREE), "exponent null": good | {"e": None},
        "for encryption": good | {"use": "enc"}, "for another algorithm": good | {"alg": "RS512"},
        "too small": tokens.rsa_jwk(SMALL), "even modulus": good | {"n": tokens.b64(b"\xfe" * 256)},
    }  # fmt: skip
    signers = {"too small": SMALL, "exponent three": THREE}
    for name, key in strange.items():
        private = signers.get(name, tokens.RSA)
        with pytest.raises(InputRejected):
            read(tokens.id_token(private=private), keys={"g1": key})


def test_without_an_audience_nobody_is_let_in(read, tokens):
    for audiences in ((), ("",)):
        with pytest.raises(InputRejected):
            read(tokens.id_token(tokens.id_claims(aud="")), audiences=audiences)
        with pytest.raises(InputRejected):
            read(tokens.id_token(), audiences=audiences)


def test_clocks_may_differ_by_half_a_minute(read, tokens):
    at = tokens.seconds()
    assert read(tokens.id_token(tokens.id_claims(iat=at + 29)))
    assert read(tokens.id_token(), now=tokens.NOW + timedelta(seconds=3540 + 29))
    with pytest.raises(InputRejected, match="expired"):
        read(tokens.id_token(), now=tokens.NOW + timedelta(seconds=3540 + 30))


def test_keys_that_cannot_be_had_are_no_yes(tokens):
    def down(_kid):
        raise DependencyFailed("the keys were not read", why="HTTP 500", hint="try again")

    with pytest.raises(DependencyFailed):
        verified_id_token(tokens.id_token(), audiences=(tokens.OURS,), keys=down, now=tokens.NOW)


def test_the_full_message_says_what_why_and_how_to_mend(read, tokens):
    with pytest.raises(InputRejected) as refused:
        read(tokens.id_token(tokens.id_claims(aud="https://elsewhere.example")))
    assert str(refused.value) == (
        "the ID token was refused: the ID token is for 'https://elsewhere.example', which ID_TOKEN_AUDIENCES does not "
        "name. Hint: get a fresh one: gcloud auth print-identity-token"
    )
