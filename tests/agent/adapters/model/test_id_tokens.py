"""ID tokens are kept for their audience and made anew before they run out."""

import base64
import json

import pytest

from agent.adapters.model.id_tokens import REFRESH_S, IdTokens
from agent.errors import DependencyFailed


def token(expires):
    body = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


def test_a_token_is_kept_for_its_audience_until_shortly_before_its_end(ticks):
    """One for each audience; a new one when less than the margin is left."""
    made = []

    def fetch(audience):
        made.append(audience)
        return token(ticks.now + 3600)

    tokens = IdTokens(fetch, ticks)
    first = tokens.token("https://a")
    assert tokens.token("https://a") == first
    tokens.token("https://b")
    ticks.now += 3600 - REFRESH_S - 1
    assert tokens.token("https://a") == first
    ticks.now += 2
    assert tokens.token("https://a") != first
    assert made == ["https://a", "https://b", "https://a"]


def test_a_token_whose_end_cannot_be_read_is_kept_shortly(ticks):
    """Opaque tokens are used, and soon made anew."""
    made = []
    tokens = IdTokens(lambda audience: made.append(audience) or "opaque", ticks)
    assert tokens.token("https://a") == tokens.token("https://a") == "opaque"
    assert len(made) == 1
    ticks.now += 3600
    tokens.token("https://a")
    assert len(made) == 2


def test_a_failure_is_not_kept(ticks):
    """The next question tries again."""

    def fail(_):
        raise DependencyFailed("no ID token was made", why="no identity", hint="run as a service account")

    tokens = IdTokens(fail, ticks)
    for _ in range(2):
        with pytest.raises(DependencyFailed):
            tokens.token("https://a")
