"""Ranges over real HTTP on loopback, from servers that behave and servers that do not."""

import pytest

from agent.adapters.checkpoint.http import HttpCheckpoint
from agent.adapters.checkpoint.read import read_profile
from agent.errors import DependencyFailed, InputRejected
from agent.ports.checkpoint import CheckpointFileMissing


def read(files):
    try:
        return read_profile(files, name="tiny", read_at="2026-11-21T00:00:00Z")
    finally:
        files.close()


def test_a_profile_over_http_never_fetches_a_tensor(site, make_files):
    """256 kB of tensors lie there; what is sent is config, index and headers alone."""
    site.files = make_files(2)
    profile = read(HttpCheckpoint(site.url))
    assert profile.facts.checkpoint_bytes == 3 * 128_000
    assert site.sent_bytes < 2_000
    assert [path for path, _ in site.seen].count("/model-00001-of-00002.safetensors") == 2
    assert all("Range" in headers for _, headers in site.seen)


def test_a_single_file_needs_no_index(site, make_files):
    site.files = make_files(1)
    assert read(HttpCheckpoint(site.url)).shards == 1


def test_a_server_that_ignores_ranges_is_read_no_further_than_the_header(site, make_files, make_shard):
    site.mode = "ignores ranges"
    site.files = make_files(1) | {
        "model.safetensors": make_shard([("model.layers.0.mlp.up_proj.weight", "BF16", [32_000, 1000])])
    }
    assert read(HttpCheckpoint(site.url)).facts.checkpoint_bytes == 64_000_000
    assert site.sent_bytes < 20_000_000  # what fits in socket buffers before we hang up


@pytest.mark.parametrize(
    ("mode", "error"),
    [
        ("other range", InputRejected),
        ("compressed", InputRejected),
        ("status 500", DependencyFailed),
        ("hangs up", InputRejected),
    ],
)
def test_a_wrong_answer_is_a_typed_refusal(site, make_files, mode, error):
    site.files, site.mode = make_files(1), mode
    with pytest.raises((error, DependencyFailed)):
        read(HttpCheckpoint(site.url))


def test_a_server_that_drips_is_given_up(site, make_files):
    site.files, site.mode = make_files(1), "drips"
    with pytest.raises(DependencyFailed, match=r"0\.2 s"):
        read(HttpCheckpoint(site.url, read_s=0.2))


def test_a_server_that_is_away_is_a_dependency_that_failed():
    with pytest.raises(DependencyFailed, match=r"config\.json"):
        read(HttpCheckpoint("http://127.0.0.1:9"))


def test_a_closed_file_needs_the_callers_token_and_gets_it(site, make_files):
    site.files, site.needs_token = make_files(1), "s3cr3t"
    with pytest.raises(CheckpointFileMissing, match="403"):
        read(HttpCheckpoint(site.url))
    assert read(HttpCheckpoint(site.url, token=lambda: "s3cr3t")).tensors == 2


def test_the_token_does_not_follow_a_redirect_to_another_host(site, other_site, make_files):
    other_site.files = make_files(1)
    site.redirect_to = other_site.url
    assert read(HttpCheckpoint(site.url, token=lambda: "s3cr3t")).tensors == 2
    assert all("Authorization" in headers for _, headers in site.seen)
    assert not any("Authorization" in headers for _, headers in other_site.seen)


def test_a_circle_of_redirects_ends(site):
    site.redirect_to = site.url
    with pytest.raises(InputRejected, match="redirects more than 5 times"):
        read(HttpCheckpoint(site.url))


@pytest.mark.parametrize("target", ["ftp://127.0.0.1", "file:///etc", "http://169.254.169.254", "gopher://x"])
def test_a_redirect_to_anything_but_https_is_refused(site, target):
    site.redirect_to = target
    with pytest.raises(InputRejected, match="want https"):
        read(HttpCheckpoint(site.url))


@pytest.mark.parametrize(
    "address",
    [
        "http://example.com/x",
        "file:///etc",
        "ftp://x/y",
        "https://",
        "https://user:secret@example.com/x",
        "https://example.com/x?X-Signature=secret",
    ],
)
def test_an_address_that_is_not_https_or_may_hold_a_secret_is_refused_without_repeating_it(address):
    with pytest.raises(InputRejected) as caught:
        HttpCheckpoint(address)
    assert "secret" not in str(caught.value).replace("may hold a secret", "")


def test_credentials_of_a_netrc_file_are_not_sent(site, make_files, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password s3cr3t\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    site.files = make_files(1)
    read(HttpCheckpoint(site.url))
    assert not any("Authorization" in headers for _, headers in site.seen)
