"""The operator's token: from fixed words without a shell, from a service account for one audience, or in words why not."""

import json
import os
import sys
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from agent.adapters.google.operator_token import operator_token, printed
from agent.errors import DependencyFailed
from tests.loopback import Loopback

AUDIENCE = "https://sre-decide-123.us-central1.run.app"


def python(program):
    return [sys.executable, "-c", program]


def test_what_a_command_prints_is_the_token():
    assert operator_token(AUDIENCE, command=python("print('aa.bb-c.d_')")) == "aa.bb-c.d_"


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import sys; sys.exit('you are not logged in')", "ended with 1: you are not logged in"),
        ("print('')", "printed no token"),
        ("print('a.b')", "printed no token"),
        ("print('a.b.c d.e.f')", "printed no token"),
        ("print('ERROR: x')", "printed no token"),
    ],
)
def test_whatever_is_no_token_is_said_in_words(program, says):
    with pytest.raises(DependencyFailed, match=says):
        printed(python(program))


def test_a_command_that_is_not_there_is_said_in_words():
    with pytest.raises(DependencyFailed, match="did not run: FileNotFoundError"):
        printed(["/nowhere/gcloud"])


def test_no_shell_reads_the_words(tmp_path):
    """A semicolon is a letter like any other."""
    made = tmp_path / "made"
    with pytest.raises(DependencyFailed):
        printed(["echo", f"a.b.c; touch {made}"])
    assert not made.exists()


@pytest.fixture
def nobody(tmp_path, monkeypatch):
    """A machine without credentials, metadata or gcloud; returns the folder of its commands."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("PATH", str(bin_))
    return bin_


def test_nobody_is_told_what_was_tried_and_what_to_do(nobody):
    with pytest.raises(DependencyFailed) as failed:
        operator_token(AUDIENCE)
    assert str(failed.value) == (
        "no ID token of yours was found: there are no application default credentials (DefaultCredentialsError); "
        "gcloud is not installed. Hint: run: gcloud auth login; or set ID_TOKEN_COMMAND to what prints one (docs/security.md)"
    )


def test_gcloud_is_asked_with_fixed_words(nobody, tmp_path):
    """A person's credentials make no token for an audience; gcloud's own command does what it can."""
    said = tmp_path / "said"
    tool = nobody / "gcloud"
    tool.write_text(f'#!/bin/sh\necho "$@" > {said}\necho aa.bb.cc\n')
    tool.chmod(0o755)
    assert operator_token(AUDIENCE) == "aa.bb.cc"
    assert said.read_text() == "auth print-identity-token\n"


class TokenServer(Loopback):
    """Google's token endpoint on loopback: answers what it is told to, and keeps what it was asked."""

    def __init__(self, answer):
        self.asked = []
        super().__init__(
            lambda request: (self.asked.append(parse_qs(request.body.decode())), answer)[1], methods=["POST"]
        )
        self.url += "/token"


def a_key_file(folder: Path, url):
    private = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "key.json"
    body = {
        "type": "service_account", "project_id": "p", "private_key_id": "k", "private_key": private.decode(),
        "client_email": "sre@p.iam.gserviceaccount.com", "client_id": "1", "token_uri": url,
    }  # fmt: skip
    path.write_text(json.dumps(body))
    return path


def unsigned(**claims):
    import base64

    part = [base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=").decode() for p in ({"alg": "RS256"}, claims)]
    return f"{part[0]}.{part[1]}.sig"


def test_a_service_account_asks_for_a_token_for_us_alone(nobody, tmp_path, monkeypatch):
    made = unsigned(aud=AUDIENCE, exp=4102444800)
    with TokenServer((200, {"id_token": made})) as server:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(a_key_file(tmp_path, server.url)))
        assert operator_token(AUDIENCE) == made
    (asked,) = server.asked
    (signed,) = asked["assertion"]
    import base64

    body = signed.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    assert claims["target_audience"] == AUDIENCE


def test_a_service_account_that_may_not_is_told_so(nobody, tmp_path, monkeypatch):
    with TokenServer((400, {"error": "invalid_grant", "error_description": "the account is gone"})) as server:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(a_key_file(tmp_path, server.url)))
        with pytest.raises(DependencyFailed, match="invalid_grant"):
            operator_token(AUDIENCE)


def test_a_person_without_gcloud_has_the_token_of_their_login(nobody, tmp_path, monkeypatch):
    made = unsigned(aud="764086051850-6qr4p6gpi6hn506pt8ejuq83di341hur.apps.googleusercontent.com")
    answer = {"access_token": "ya29.x", "expires_in": 3599, "id_token": made, "token_type": "Bearer"}
    with TokenServer((200, answer)) as server:
        path = tmp_path / "adc.json"
        body = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
        path.write_text(json.dumps(body | {"token_uri": server.url}))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        monkeypatch.setattr("google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", server.url)
        assert operator_token(AUDIENCE) == made
    assert os.environ["PATH"] == str(nobody)
