"""An endpoint is read from one word of the settings."""

import pytest

from agent.adapters.model.endpoint import parse_endpoint
from agent.errors import SettingsRejected


@pytest.mark.parametrize(
    ("url", "service"),
    [
        ("https://gemma4-31b-abcdefghij-ez.a.run.app/v1", "gemma4-31b"),
        ("https://gemma4-31b-123456789012.europe-west4.run.app", "gemma4-31b"),
        ("https://canary---gemma4-31b-abcdefghij-ez.a.run.app", "gemma4-31b"),
        ("https://gemma4-fallback-123456789012.europe-west4.run.app", "gemma4-fallback"),
    ],
)
def test_a_cloud_run_url_says_who_it_is(url, service):
    """It may sleep, wants a token for its own origin, and names its service."""
    endpoint = parse_endpoint(url)
    assert (endpoint.service, endpoint.sleeps) == (service, True)
    assert endpoint.audience == url.removesuffix("/v1")
    assert endpoint.base_url.endswith(".run.app/v1")
    assert endpoint.root + "/v1" == endpoint.base_url


def test_any_other_server_is_awake_and_asks_for_no_identity():
    """A local server: no token, no sleep, no service; a path of its own stays."""
    endpoint = parse_endpoint("http://10.0.0.7:8000/openai/v1/", model="gemma")
    assert (endpoint.sleeps, endpoint.audience, endpoint.service, endpoint.model) == (False, None, None, "gemma")
    assert endpoint.base_url == "http://10.0.0.7:8000/openai/v1"


def test_the_fragment_says_what_the_url_does_not():
    """It is never sent: the base URL has none."""
    endpoint = parse_endpoint("https://llm.example/v1#service=gemma&sleeps=yes&audience=https://a.example&model=m")
    assert (endpoint.service, endpoint.sleeps, endpoint.audience, endpoint.model) == (
        "gemma", True, "https://a.example", "m",
    )  # fmt: skip
    assert "#" not in endpoint.base_url


@pytest.mark.parametrize("text", ["gemma", "ftp://x/v1", "http:///v1", "http://x/v1#wake=no", "recorded"])
def test_what_is_no_endpoint_is_refused(text):
    """With the setting's name and what it wants."""
    with pytest.raises(SettingsRejected, match="MODEL_ENDPOINTS"):
        parse_endpoint(text)
