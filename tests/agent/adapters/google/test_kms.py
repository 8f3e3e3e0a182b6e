"""Receipts through Cloud KMS: what it says clearly counts, and nothing else does."""

import base64
import hashlib
import hmac

import pytest
import requests

from agent.adapters.google.kms import KmsReceiptSigner
from agent.errors import DependencyFailed

VERSION = "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"


class Answer:
    def __init__(self, status, body):
        self.status_code, self._body = status, body

    def json(self):
        if isinstance(self._body, Exception):
            raise self._body
        return self._body


class Kms:
    """The two methods of the service, as its REST reference describes them."""

    def __init__(self, key=b"k" * 32, **said):
        self.key, self.said, self.asked = key, said, []

    def post(self, url, *, json, timeout):
        self.asked.append((url, json, timeout))
        name, _, method = url.removeprefix("https://cloudkms.googleapis.com/v1/").rpartition(":")
        mac = hmac.new(self.key, base64.b64decode(json["data"]), hashlib.sha256).digest()
        if method == "macSign":
            return Answer(200, {"name": name, "mac": base64.b64encode(mac).decode()} | self.said)
        return Answer(200, {"name": name, "success": base64.b64decode(json["mac"]) == mac} | self.said)


class Broken:
    def __init__(self, answer):
        self.answer = answer

    def post(self, *args, **kwargs):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_what_it_signed_holds_and_nothing_else():
    signer = KmsReceiptSigner(VERSION, Kms())
    mac = signer.sign(b"body")
    assert signer.verify(b"body", mac)
    assert not signer.verify(b"other", mac)
    assert not KmsReceiptSigner(VERSION, Kms(b"x" * 32)).verify(b"body", mac)
    for other in ("", "zz", mac.upper(), mac[:-2], mac + " ", "é" * 64):
        assert not signer.verify(b"body", other)


def test_long_bodies_are_sent_as_their_digest():
    kms = Kms()
    KmsReceiptSigner(VERSION, kms).sign(b"x" * 10**6)
    assert len(kms.asked[0][1]["data"]) == 44
    assert kms.asked[0][2] < 2


@pytest.mark.parametrize(
    "answer",
    [
        requests.ConnectionError(),
        requests.Timeout(),
        OSError(),
        Answer(403, {}),
        Answer(500, {}),
        Answer(200, []),
        Answer(200, None),
        Answer(200, ValueError()),
    ],
    ids=["no connection", "late", "system", "denied", "broken", "a list", "nothing", "not JSON"],
)
def test_no_clear_answer_is_no_signature_and_no_yes(answer):
    signer = KmsReceiptSigner(VERSION, Broken(answer))
    for ask in (lambda: signer.sign(b"x"), lambda: signer.verify(b"x", "00" * 32)):
        with pytest.raises(DependencyFailed):
            ask()


@pytest.mark.parametrize("said", [{"name": "another"}, {"mac": "AAAA"}, {"mac": "!"}, {"mac": None}])
def test_a_code_of_another_key_or_no_code_is_none(said):
    with pytest.raises(DependencyFailed):
        KmsReceiptSigner(VERSION, Kms(**said)).sign(b"x")


@pytest.mark.parametrize("said", [{"success": "true"}, {"success": 1}, {"success": None}, {"name": "another"}])
def test_only_a_clear_yes_of_this_key_is_one(said):
    mac = KmsReceiptSigner(VERSION, Kms()).sign(b"x")
    assert not KmsReceiptSigner(VERSION, Kms(**said)).verify(b"x", mac)
