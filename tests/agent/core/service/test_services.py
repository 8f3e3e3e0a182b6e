"""What is watched is read whole: one file, all its mistakes at once."""

import pytest

from agent.core.service.services import Services, parse_services
from agent.errors import InputRejected, SettingsRejected

GOOD = """
own = ["sre-on-log-event"]

[[service]]
name = "gemma"
platform = "cloud_run"
project = "p"
location = "us-east4"
model = "google/gemma-4-26B-A4B-it-qat-w4a16-ct"
checkpoint = "/mnt/models/gemma/v1"
mounts = { "/mnt" = "gs://outer", "/mnt/models" = "gs://inner/all" }
accelerator = "nvidia-l4"
vllm = "0.22.1"
owner = "slack:#llm"
labels = { team = "search", model = "gemma" }

[service.needs]
context = 16384
users = 4
tokens_per_s = 20
usd_per_h = 2.0

[[service]]
name = "local"
platform = "host"
model = "m"
checkpoint = "/srv/models/m"
accelerator = "cpu"
owner = "console"
"""


@pytest.fixture
def services() -> Services:
    return parse_services(GOOD)


def test_a_service_is_found_by_name(services: Services) -> None:
    """One that is not watched is nothing, or a refusal where it is needed."""
    assert services.service("gemma").needs.context == 16384
    assert services.watched("gemma") == services.service("gemma")
    assert services.watched("other") is services.watched(None) is None
    with pytest.raises(InputRejected, match="gemma, local"):
        services.service("other")


@pytest.mark.parametrize("key", ["sk-0123456789abcdef", "Hunter2Hunter2", "a_b", "", "x" * 41])
def test_a_key_in_the_place_of_its_name_is_refused_and_not_said(key: str) -> None:
    """The file is no place for a secret, nor is the message about it."""
    with pytest.raises(SettingsRejected) as refused:
        parse_services(GOOD.replace('owner = "console"', f'owner = "console"\napi_key = "{key}"'))
    assert "api_key: want the name of a key in SERVICE_API_KEYS" in str(refused.value)
    assert not key or key not in str(refused.value)


def test_a_service_names_its_key_and_what_is_spare() -> None:
    """Unset is unknown; less than nothing is a mistake."""
    named = parse_services(
        GOOD.replace('owner = "console"', 'owner = "console"\napi_key = "local"\nspare_accelerators = 0')
    )
    assert (named.service("local").api_key, named.service("local").spare_accelerators) == ("local", 0)
    assert (named.service("gemma").api_key, named.service("gemma").spare_accelerators) == (None, None)
    with pytest.raises(SettingsRejected, match="spare_accelerators is -1"):
        parse_services(GOOD.replace('owner = "console"', 'owner = "console"\nspare_accelerators = -1'))


def test_a_service_names_who_is_on_call_and_the_runbook() -> None:
    """Both are optional; a runbook is an address that a browser opens."""
    more = 'owner = "console"\nrotation = "LLM, weekly"\nrunbook = "https://wiki.example.com/local#start"'
    named = parse_services(GOOD.replace('owner = "console"', more)).service("local")
    assert (named.rotation, named.runbook) == ("LLM, weekly", "https://wiki.example.com/local#start")
    for wrong in ("javascript:alert(1)", "wiki/local", "https://a b", 'https://x/"onclick='):
        with pytest.raises(SettingsRejected, match="runbook is"):
            parse_services(GOOD.replace('owner = "console"', f"owner = 'console'\nrunbook = '{wrong}'"))


def test_a_service_names_the_key_by_which_receivers_route() -> None:
    """It is sent in the clear: what has the form of an integration's secret key is refused, and not repeated."""
    for key in ("team-llm", "llm/gpu.eu@prod", "llmplatformteam"):
        more = f'owner = "console"\nrouting_key = "{key}"'
        assert parse_services(GOOD.replace('owner = "console"', more)).service("local").routing_key == key
    assert parse_services(GOOD).service("local").routing_key is None
    secrets = ("0123456789abcdef0123456789abcdef", "R02XYZABCDEFGHIJKLMN", "4b0dcb8e-6c1f-4d5c-9c65-1f3b7a0e9d11")
    for wrong in ("", " x", "a b", "x" * 101, "<!channel>", *secrets):
        with pytest.raises(SettingsRejected, match="routing_key") as refused:
            parse_services(GOOD.replace('owner = "console"', f"owner = 'console'\nrouting_key = '{wrong}'"))
        assert wrong not in secrets or wrong not in str(refused.value)


def test_a_mounted_checkpoint_is_read_from_its_bucket(services: Services) -> None:
    """The nearest mount counts; on a host a path is a path; without a checkpoint the model's id is one."""
    assert services.service("gemma").checkpoint_uri == "gs://inner/all/gemma/v1"
    assert services.service("local").checkpoint_uri == "/srv/models/m"
    bare = parse_services(GOOD.replace('checkpoint = "/srv/models/m"', ""))
    assert bare.service("local").checkpoint_uri == "m"


def test_a_mount_is_no_prefix_of_a_name(services: Services) -> None:
    """/mnt/modelsX does not lie under /mnt/models."""
    text = GOOD.replace("/mnt/models/gemma/v1", "/mnt/modelsX/gemma")
    assert parse_services(text).service("gemma").checkpoint_uri == "gs://outer/modelsX/gemma"


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"service_name": "gemma", "project_id": "p", "location": "us-east4"}, "gemma"),
        ({"service_name": "gemma"}, "gemma"),
        ({"service_name": "gemma", "project_id": "another"}, None),
        ({"service_name": "gemma", "location": "europe-west1"}, None),
        ({"service_name": "unknown"}, None),
        ({"ContainerAppName_s": "local"}, "local"),
        ({"node_id": "local"}, "local"),
        ({"team": "search", "model": "gemma", "more": "x"}, "gemma"),
        ({"team": "search"}, None),
        ({}, None),
    ],
)
def test_a_service_is_found_by_its_labels(services: Services, labels: dict[str, str], name: str | None) -> None:
    """Its name where the platform gives one, project and location agreeing; else the labels the owner gave, all of them."""
    found = services.by_labels(labels)
    assert (found.name if found else None) == name


def test_our_own_services_are_known(services: Services) -> None:
    """They are never a source of signals."""
    assert services.is_own("sre-on-log-event")
    assert not services.is_own("gemma")
    assert not services.is_own(None)


def test_all_mistakes_are_told_at_once() -> None:
    """Seven mistakes in one file: the owner mends it once."""
    text = """
    own = ["gemma"]
    extra = 1
    [[service]]
    name = "gemma"
    platform = "cloud_run"
    project = "p"
    location = "l"
    model = "m"
    accelerator = "nvidia-l5"
    owner = "console"
    [[service]]
    name = "gemma"
    platform = "mainframe"
    model = "m"
    accelerator = "Nvidia L4"
    mystery = 1
    [[service]]
    name = "second"
    platform = "cloud_run"
    model = "m"
    checkpoint = "/mnt/x"
    accelerator = "nvidia-l4"
    owner = "console"
    """
    with pytest.raises(SettingsRejected) as refused:
        parse_services(text, accelerators=frozenset({"nvidia-l4"}))
    said = str(refused.value)
    for word in (
        "unknown key 'extra'",
        "platform is 'mainframe'",
        "accelerator is 'Nvidia L4'",
        "unknown key 'mystery'",
        "owner is missing",
        "needs project and location",
        "'nvidia-l5', want one of nvidia-l4",
        "'gemma' is both watched and our own",
    ):
        assert word in said, word
    assert "services.toml was not read: 8 mistakes" in said


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (('location = "us-east4"', ""), "needs project and location"),
        (("/mnt/models/gemma/v1", "/elsewhere/gemma"), "lies under none of mounts"),
        (('"gs://outer"', '"outer"'), "gs://BUCKET"),
        (("context = 16384", "context = 0"), "needs.context is 0"),
        (("users = 4", "users = 'four'"), "needs.users is 'four'"),
        (('vllm = "0.22.1"', 'vllm = "newest"'), "vllm is 'newest'"),
        (('name = "local"', 'name = "gemma"'), "'gemma' stands 2 times"),
        (('owner = "console"', 'owner = ""'), "owner is ''"),
        (('own = ["sre-on-log-event"]', 'own = "x"'), "own is 'x'"),
        (("[[service]]", "[[services]]"), "unknown key 'services'"),
        (("[[service]]", "[[service"), "not TOML"),
    ],
)
def test_a_mistake_is_named(change: tuple[str, str], word: str) -> None:
    """With its place and its value."""
    with pytest.raises(SettingsRejected) as refused:
        parse_services(GOOD.replace(*change))
    assert word in str(refused.value)


def test_nothing_watched_is_a_mistake() -> None:
    """An empty file does not mean everything."""
    for empty in ("", 'own = ["x"]', {"service": []}, {"service": "all"}):
        with pytest.raises(SettingsRejected, match=r"there is no \[\[service\]\]"):
            parse_services(empty)


def test_a_table_is_read_like_text(services: Services) -> None:
    """Settings that were parsed elsewhere give the same."""
    again = parse_services({"own": list(services.own), "service": [s.model_dump() for s in services.services]})
    assert again == services
