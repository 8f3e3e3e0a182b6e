"""Rules, a redactor and the maker of samples, shared by the tests of redaction."""

from pathlib import Path

import pytest

from agent.catalogue.load_secrets import load_secrets
from agent.core.redaction import Redactor
from tests import outside
from tests.agent.core.redaction import made_to_pattern as pattern_maker
from tests.agent.core.redaction import printed as as_printed

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="session")
def redactor():
    return Redactor(load_secrets())


@pytest.fixture(scope="session")
def made_to_pattern():
    return pattern_maker


@pytest.fixture(scope="session")
def printed():
    return as_printed


@pytest.fixture(scope="session")
def shared():
    return outside.shared("data")


@pytest.fixture(scope="session")
def met():
    """Secrets of the kinds met in this trade, put together here so that none stands in a file."""
    letters = "Zq3Xv9Kd7Rm2Wp8Ht5Lc4Nb6Jy1Gf0Ts"
    key = "\n".join(["MIIEvQIBADANBgkq" + letters[:32] + letters[5:21]] * 24)
    begin, end = "-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----"
    head, body = "ey" + "JhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9", "ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0"
    tokens = {
        "google-api-key": "AI" + "za" + "Sy" + letters + "A",
        "google-oauth-token": "ya" + "29." + "a0Af" + letters * 2,
        "jwt": f"{head}.{body}.{letters}{letters}",
        "huggingface-token": "h" + "f_" + (letters * 2)[:34],
        "openai-key": "s" + "k-proj-" + letters * 2,
        "aws-access-key-id": "AK" + "IA" + "QWERTYUIOPASDFGH",
        "gitlab-token": "gl" + "pat-" + letters[:20],
    }
    tokens |= {
        f"slack-token/{kind}": f"xo{kind}-" + "123456789012-1234567890123-" + letters[:24]
        for kind in ("xb", "xp", "xa", "xr", "xs", "xe")
    }
    tokens |= {f"github-token/{kind}": f"gh{kind}" + "_" + (letters * 2)[:36] for kind in "pousr"}
    tokens["github-fine-grained-token"] = "github" + "_pat_" + letters[:22] + "_" + (letters * 2)[:59]
    return {
        **{kind: (f"request failed: {token} was refused", token) for kind, token in tokens.items()},
        "private-key/lines": (f"loading {begin}\n{key}\n{end}\n done", key),
        "private-key/json": (
            '{"type": "service_account", "private_key": "'
            + f"{begin}\n{key}\n{end}\n".replace("\n", "\\n")
            + '", "client_email": "a@b"}',
            key.replace("\n", "\\n"),
        ),
        "private-key/json in json": (
            '{\\"private_key\\": \\"' + f"{begin}\n{key}\n{end}".replace("\n", "\\\\n") + '\\"}',
            key.replace("\n", "\\\\n"),
        ),
        "private-key/no end": (f"loading {begin}\n{key}", key),
        "private-key/no begin": (f"{key}\n{end}\nready", key),
        "url-password": ("pull https://bot:" + letters[:12] + "@host.example/repo.git failed", letters[:12]),
        "url-password/database": ("postgresql://app:" + "p4ss.word" + "@10.0.0.3:5432/db", "p4ss.word"),
        "authorization-header/bearer": ("> Authorization: Bearer " + "opaque-" + letters, "opaque-" + letters),
        "authorization-header/basic": ("authorization: Basic " + "dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA=="),
        "authorization-header/json": ('{"Authorization": "Bearer ' + letters + '"}', letters),
        "authorization-header/python": ("[(b'authorization', b'Bearer " + letters + "')]", letters),
        "authorization-header/short": ("Authorization: Bearer " + "abc123", "abc123"),
        "credential/flag": ("vllm serve m --api-key " + "token-abc123 --port 8000", "token-abc123"),
        "credential/args": ("non-default args: {'api_key': ['" + "letmein99" + "'], 'port': 1}", "letmein99"),
        "credential/environment": ("VLLM_API_KEY=" + "opensesame" + " vllm serve", "opensesame"),
        "credential/json": ('{"client_secret": "' + letters + '"}', letters),
        "random-value": ("session token is: " + letters, letters),
    }
