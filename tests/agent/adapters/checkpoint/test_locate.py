"""Places as people write them."""

import pytest

from agent.adapters.checkpoint.locate import Locator
from agent.adapters.checkpoint.read import read_profile
from agent.errors import InputRejected


def read(locator, source):
    files = locator.open(source)
    try:
        return read_profile(files, name="x", read_at="2026-11-21T00:00:00Z")
    finally:
        files.close()


def serve_under(site, prefix, files):
    site.files = {f"{prefix}/{name}": body for name, body in files.items()}


def test_a_bucket_is_read_through_its_https_api_with_the_callers_token(site, make_files):
    serve_under(site, "models-1/gemma%20x", make_files(1))
    site.needs_token = "ya29.x"
    locator = Locator(storage_url=site.url, google_token=lambda: "ya29.x", hub_token=lambda: "hf_no")
    profile = read(locator, "gs://models-1/gemma x/")
    assert (profile.tensors, profile.source) == (2, "gs://models-1/gemma x")


def test_the_hub_is_read_at_a_revision_with_its_own_token(site, make_files):
    serve_under(site, "google/tiny/resolve/refs%2Fpr%2F3", make_files(1))
    site.needs_token = "hf_x"
    locator = Locator(hub_url=site.url, hub_token=lambda: "hf_x", google_token=lambda: "no")
    assert read(locator, "hf:google/tiny@refs/pr/3").tensors == 2


def test_an_address_may_name_the_folder_or_its_config(site, make_files):
    serve_under(site, "some/where", make_files(2))
    for source in (f"{site.url}/some/where", f"{site.url}/some/where/", f"{site.url}/some/where/config.json"):
        assert read(Locator(), source).shards == 2


def test_a_folder_or_a_file_in_it_is_read_here(folder):
    for source in (str(folder), str(folder / "config.json")):
        assert read(Locator(), source).shards == 2


def test_a_mounted_path_is_read_where_its_volume_lies(site, make_files):
    serve_under(site, "bucket-a/gemma", make_files(1))
    mounts = {"/mnt/models/gemma": "gs://bucket-a/gemma"}.get
    assert read(Locator(mounts=mounts, storage_url=site.url), "/mnt/models/gemma").source == "gs://bucket-a/gemma"


@pytest.mark.parametrize(
    "source",
    [
        "/no/such/folder",
        "gs://",
        "gs://UPPER/x",
        "gs://bucket/../other",
        "hf:",
        "hf:a/b/c",
        "hf:../x",
        "hf:a/b@../../x",
        "http://example.com/x",
        "",
    ],
)
def test_a_place_that_is_none_is_refused_with_how_to_write_it(source):
    with pytest.raises(InputRejected):
        read(Locator(), source)
