"""Whole checkpoints, honest and hostile, from a folder."""

import json
import struct

import pytest

from agent.adapters.checkpoint.locate import LocalCheckpoint
from agent.adapters.checkpoint.read import read_profile
from agent.errors import InputRejected
from agent.ports.checkpoint import CheckpointFileMissing


def read(folder):
    return read_profile(LocalCheckpoint(folder), name="tiny", read_at="2026-11-21T00:00:00Z")


def test_a_folder_is_read_whole(folder):
    profile = read(folder)
    assert (profile.shards, profile.tensors, profile.facts.checkpoint_bytes) == (2, 3, 384_000)
    assert profile.source == str(folder)


def test_a_shard_cut_short_is_refused(folder):
    shard = folder / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(InputRejected, match=r"describes \d+ bytes, the file has \d+"):
        read(folder)


def test_a_shard_that_ends_inside_its_header_is_refused(folder):
    shard = folder / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:40])
    with pytest.raises(InputRejected, match="the whole file has 40"):
        read(folder)


def test_an_index_that_promises_more_than_the_shards_hold_is_refused(folder):
    index = folder / "model.safetensors.index.json"
    document = json.loads(index.read_bytes())
    document["weight_map"]["model.layers.9.ghost"] = "model-00001-of-00002.safetensors"
    index.write_text(json.dumps(document))
    with pytest.raises(InputRejected, match=r"model\.layers\.9\.ghost"):
        read(folder)


def test_an_index_that_names_too_few_of_the_numbered_shards_is_refused(folder):
    index = folder / "model.safetensors.index.json"
    document = json.loads(index.read_bytes())
    kept = {name: file for name, file in document["weight_map"].items() if file.startswith("model-00001")}
    index.write_text(json.dumps({"weight_map": kept}))
    with pytest.raises(InputRejected, match="names 1 of 2 numbered files, 2 is missing"):
        read(folder)


def test_a_shard_that_is_not_there_is_named(folder):
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(CheckpointFileMissing, match=r"model-00002-of-00002\.safetensors"):
        read(folder)


def test_a_whole_checkpoint_without_its_last_layers_is_refused(folder):
    config = json.loads((folder / "config.json").read_bytes())
    config["text_config"]["num_hidden_layers"] = 3
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputRejected, match="of 3 layers it holds nothing of 1, 2"):
        read(folder)


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "a/b.safetensors", "..", ".hidden.safetensors", "x\n.safetensors", "x\\y", ""],
)
def test_an_index_cannot_lead_out_of_the_folder(folder, name):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(InputRejected, match="not a plain file name"):
        read(folder)


@pytest.mark.parametrize(
    "index",
    [
        pytest.param({"weight_map": {}}, id="no shards"),
        pytest.param({"weight_map": [1]}, id="a list"),
        pytest.param({"weight_map": {"a": 1}}, id="a number for a name"),
        pytest.param({"weight_map": {f"t{n}": f"{n}.safetensors" for n in range(1025)}}, id="1,025 shards"),
        pytest.param({"weight_map": {"a": "pytorch_model.bin"}}, id="a pickle"),
    ],
)
def test_an_index_that_is_none_is_refused(folder, index):
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(InputRejected, match=r"index\.json was refused"):
        read(folder)


def test_a_header_that_claims_exabytes_is_refused_before_a_byte_of_it_is_read(folder):
    (folder / "model-00001-of-00002.safetensors").write_bytes(struct.pack("<Q", 2**62) + b"{}")
    with pytest.raises(InputRejected, match="claims"):
        read(folder)


def test_a_config_of_five_megabytes_is_refused(folder):
    (folder / "config.json").write_bytes(b" " * (5 * 2**20))
    with pytest.raises(InputRejected, match="more than"):
        read(folder)


def test_a_folder_without_config_says_which_file_is_missing(tmp_path):
    with pytest.raises(CheckpointFileMissing, match=r"config\.json"):
        read(tmp_path)


def test_a_folder_in_the_place_of_a_file_is_refused(folder):
    (folder / "model-00001-of-00002.safetensors").unlink()
    (folder / "model-00001-of-00002.safetensors").mkdir()
    with pytest.raises(InputRejected, match="no regular file"):
        read(folder)


def test_links_are_followed_as_in_the_hubs_cache(folder, tmp_path_factory):
    linked = tmp_path_factory.mktemp("snapshot")
    for file in folder.iterdir():
        (linked / file.name).symlink_to(file)
    assert read(linked).tensors == 3
