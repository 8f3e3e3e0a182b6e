"""Names find their model: profiles before the bundled entries, mounts through services.toml."""

import pytest

from agent.adapters.checkpoint.locate import Locator
from agent.bootstrap.known_models import KnownModels, mounts, name_of
from agent.catalogue.load_fit import load_fit_catalogue
from agent.errors import InputRejected
from agent.fit.checkpoint import ModelProfile
from agent.settings import read_settings

BUNDLED = load_fit_catalogue().models
SERVICES = """
[[service]]
name = "gemma"
platform = "cloud_run"
project = "p"
location = "us-east4"
model = "google/gemma-4-31B-it-qat-w4a16-ct"
checkpoint = "/mnt/models/gemma-4-31B-it-qat-w4a16-ct"
accelerator = "nvidia-l4"
owner = "console"
[service.mounts]
"/mnt/models" = "gs://bucket-a/models"
"""


class Shelf:
    """Profiles in memory, for the looking-up alone; the real shelf has its own tests."""

    def __init__(self, *profiles):
        self.held = {profile.name: profile for profile in profiles}

    def put(self, profile):
        self.held[profile.name] = profile

    def get(self, name):
        return self.held.get(name)

    def list(self):
        return tuple(self.held.values())


def profile(name, source):
    facts = BUNDLED.find("google/gemma-4-E2B-it")
    return ModelProfile(
        name=name, source=source, read_at="2026-11-21", facts=facts, dtype_bytes=(), tensors=1, shards=1
    )


def known(*profiles):
    def read(source, name, bundled):
        return profile(name, source)

    return KnownModels(BUNDLED, Shelf(*profiles), read)


def test_a_profile_wins_over_the_bundled_entry_of_its_name_and_is_found_by_its_place():
    held = profile("google/gemma-4-31B-it", "gs://b/m")
    assert known(held).find("google/gemma-4-31B-it").size == "E2B"
    assert known(held).find("gs://b/m/").size == "E2B"
    assert known().find("google/gemma-4-31B-it").size == "31B"


@pytest.mark.parametrize(
    "name", ["hf:google/gemma-4-12B-it", "gs://b/models/gemma-4-12B-it", "/mnt/models/gemma-4-12B-it"]
)
def test_an_address_whose_name_is_known_needs_no_network(name):
    assert known().find(name).size == "12B"


def test_a_name_that_nobody_knows_is_refused():
    with pytest.raises(InputRejected, match="nobody/nothing"):
        known().find("nobody/nothing")


def test_a_mount_of_a_watched_service_leads_to_its_bucket(tmp_path):
    services = tmp_path / "services.toml"
    services.write_text(SERVICES)
    settings = read_settings({"STORE": f"sqlite:{tmp_path}", "SERVICES": str(services)})
    resolve = mounts(settings)
    assert resolve("/mnt/models/gemma-x") == "gs://bucket-a/models/gemma-x"
    assert resolve("/mnt/modelsx/y") is None
    assert Locator(mounts=resolve).open("/mnt/models/gemma-x").source == "gs://bucket-a/models/gemma-x"


def test_an_address_that_nobody_knows_is_read_where_it_lies():
    assert known().find("gs://bucket/some/model-x").size == "E2B"


def test_what_is_added_is_found_by_its_name_afterwards():
    models = known()
    models.add("gs://bucket/some/model-x", as_name="mine")
    assert models.profile("mine").source == "gs://bucket/some/model-x"
    assert [held.name for held in models.added()] == ["mine"]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("hf:google/gemma-4-31B-it", "google/gemma-4-31B-it"),
        ("hf:google/gemma-4-31B-it@main", "google/gemma-4-31B-it"),
        ("gs://bucket/models/gemma-4-12B-it/", "gemma-4-12B-it"),
        ("/mnt/models/gemma-4-26B-A4B-it-qat-w4a16-ct", "gemma-4-26B-A4B-it-qat-w4a16-ct"),
        ("https://example.com/a/tiny/config.json", "tiny"),
    ],
)
def test_a_profile_is_named_after_its_repository_or_folder(source, name):
    assert name_of(source) == name


def test_a_place_without_a_folder_asks_for_a_name():
    with pytest.raises(InputRejected, match="--name"):
        name_of("gs://bucket")
