"""Settings are read once, and all mistakes are told at once."""

from pathlib import Path

import pytest

from agent.errors import SettingsRejected
from agent.settings import read_settings
from tools.settings_page import page

ROOT = Path(__file__).resolve().parents[2]


def test_nothing_set_is_an_embedded_rehearsal() -> None:
    """A newcomer sets nothing."""
    settings = read_settings({})
    assert settings.embedded
    assert settings.platform.startswith("rehearsal:")


def test_keys_of_watched_servers_are_read_by_name_and_shown_nowhere() -> None:
    """Their values are secrets, in errors too."""
    settings = read_settings({"SERVICE_API_KEYS": "gemma=k-1=2, local=k-2"})
    assert {n: s.get_secret_value() for n, s in settings.service_api_keys.items()} == {"gemma": "k-1=2", "local": "k-2"}
    assert "k-1" not in repr(settings)
    with pytest.raises(SettingsRejected) as refused:
        read_settings({"SERVICE_API_KEYS": "k-lonely"})
    assert "SERVICE_API_KEYS is set to something else, want name=key pairs" in str(refused.value)


def test_all_mistakes_are_told_at_once_and_secrets_never() -> None:
    """One error names each variable, what it holds and what it wants; a secret's value is not shown."""
    with pytest.raises(SettingsRejected) as refused:
        read_settings({"APPROVAL_TTL_S": "ten", "STORE": "oracle:x", "INGEST_SECRETS": "hunter2hunter2"})
    assert str(refused.value).startswith("3 settings: ")
    assert "APPROVAL_TTL_S is 'ten', want seconds > 0" in str(refused.value)
    assert "STORE is 'oracle:x', want sqlite:<folder> | firestore:<project>" in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"RECEIPT_KEY": "short"}, "RECEIPT_KEY is too short"),
        ({"STORE": "firestore:p"}, "SERVICES is unset"),
        ({"SLACK_TOKEN": "x"}, "SLACK_TOKEN and SLACK_CHANNEL go together"),
        ({"REHEARSAL_COMPRESSION": "0.5"}, "want a factor >= 1"),
        ({"KILL_SWITCH": "maybe"}, "want on | off"),
        ({"VERIFY_WINDOW_S": "nan"}, "want seconds > 0"),
        ({"CLOUD_RUN_EMULATOR_HOST": "run.example.com:443"}, "want 127.0.0.1:port of a stand-in on this machine"),
        ({"CLOUD_LOGGING_EMULATOR_HOST": "10.0.0.1:80"}, "want 127.0.0.1:port of a stand-in on this machine"),
        ({"CLOUD_RUN_EMULATOR_HOST": "127.0.0.1.example.com:443"}, "want 127.0.0.1:port of a stand-in"),
    ],
    ids=[
        "short key",
        "cloud without services",
        "half of Slack",
        "slower",
        "unclear switch",
        "not a number",
        "a Cloud Run elsewhere",
        "a log elsewhere",
        "a name that begins like loopback",
    ],
)
def test_a_mistake_says_what_is_wanted(env: dict[str, str], says: str) -> None:
    """Each kind of mistake, by its words."""
    with pytest.raises(SettingsRejected, match=says.replace("|", r"\|")):
        read_settings(env)


def test_the_page_of_settings_is_current() -> None:
    """docs/settings.md is what the code reads: write it with python -m tools.settings_page."""
    assert (ROOT / "docs" / "settings.md").read_text() == page()


ONE, TWO = (f"whsec_{letter * 32}" for letter in "AB")


@pytest.mark.parametrize(
    ("deciders", "out", "says"),
    [
        (f"pager={ONE},robot={ONE}", None, "'pager' and 'robot' have the same secret"),
        (f"pager={ONE}", ONE, "'pager' and whoever gets WEBHOOK_SECRETS have the same secret"),
        (f"pager={ONE},pager={TWO}", None, ""),
        (f"pager={ONE},pager={ONE}", TWO, ""),
    ],
)
def test_a_secret_of_two_proves_neither(deciders, out, says):
    """The signature does not cover the name in the path, so whoever has the secret could answer as the other."""
    words = {"WEBHOOK_DECIDERS": deciders} | ({"WEBHOOK_SECRETS": out} if out else {})
    if not says:
        assert read_settings(words).webhook_deciders
        return
    with pytest.raises(SettingsRejected, match=says) as caught:
        read_settings(words)
    assert ONE not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://slack.example/api/", "https://u@slack.com/api/", "slack.com/api", "ftp://slack.com/", ""]
)
def test_the_bot_token_goes_nowhere_in_the_clear(url):
    with pytest.raises(SettingsRejected, match="SLACK_API_URL is"):
        read_settings({"SLACK_API_URL": url})
    for good in ("https://slack-gov.com/api/", "http://127.0.0.1:9/api/"):
        assert read_settings({"SLACK_API_URL": good}).slack_api_url == good


def test_a_price_of_the_model_has_two_halves():
    """One half alone would count answers, or questions, as free."""
    with pytest.raises(SettingsRejected, match="MODEL_USD_PER_MILLION_OUT go together"):
        read_settings({"MODEL_USD_PER_MILLION_IN": "0.5"})
    with pytest.raises(SettingsRejected, match="MODEL_USD_PER_MILLION_IN"):
        read_settings({"MODEL_USD_PER_MILLION_IN": "-1", "MODEL_USD_PER_MILLION_OUT": "1"})
    both = read_settings({"MODEL_USD_PER_MILLION_IN": "0.5", "MODEL_USD_PER_MILLION_OUT": "2"})
    assert both.model_price.usd(tokens_in=1_000_000, tokens_out=500_000) == 1.5
    assert read_settings({}).model_price is None
