"""The access token of whoever runs the command, or none: what is public is read without."""

from agent.adapters.google.access_token import CLOUD, access_token
from tests.agent.adapters.google.test_operator_token import TokenServer, a_key_file, nobody

__all__ = ["nobody"]


def test_nobody_has_none(nobody):
    assert access_token(CLOUD) is None


def test_a_service_account_gets_one_for_the_scope(nobody, tmp_path, monkeypatch):
    answer = (200, {"access_token": "ya29.mine", "expires_in": 3600, "token_type": "Bearer"})
    with TokenServer(answer) as google:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(a_key_file(tmp_path, google.url)))
        assert access_token(CLOUD) == "ya29.mine"
    assert len(google.asked) == 1


def test_who_is_refused_has_none(nobody, tmp_path, monkeypatch):
    with TokenServer((400, {"error": "invalid_grant"})) as google:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(a_key_file(tmp_path, google.url)))
        assert access_token(CLOUD) is None


def test_an_answer_without_a_token_is_none(nobody, tmp_path, monkeypatch):
    """Not the word None, which a server would be asked to take for a token."""
    with TokenServer((200, {"access_token": None, "expires_in": 3600})) as google:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(a_key_file(tmp_path, google.url)))
        assert access_token(CLOUD) is None
    assert len(google.asked) == 1
