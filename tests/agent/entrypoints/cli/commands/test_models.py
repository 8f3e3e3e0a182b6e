"""The models command: a real folder with real safetensors files, a real database."""

import json
import struct

import pytest

from agent.entrypoints.cli.main import main

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "vocab_size": 1000,
    "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 256, "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
}  # fmt: skip


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    return tmp_path / "state"


@pytest.fixture
def make(tmp_path):
    def made(name, **config):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({**CONFIG, **config}))
        tensors = {"model.embed_tokens.weight": [1000, 64], "model.layers.0.mlp.up_proj.weight": [256, 64]}
        entries, end = {}, 0
        for tensor, (rows, columns) in tensors.items():
            entries[tensor] = {
                "dtype": "BF16",
                "shape": [rows, columns],
                "data_offsets": [end, end + 2 * rows * columns],
            }
            end += 2 * rows * columns
        header = json.dumps(entries).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * end)
        return folder

    return made


def said(capsys, *words):
    code = main(["models", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_an_added_model_is_listed_shown_and_advised_on_by_its_name(capsys, state, make):
    code, out, _ = said(capsys, "add", str(make("tiny")), "--name", "me/tiny", "--json")
    assert code == 0
    assert json.loads(out)["bytes_by_group"] == {"embeddings": 128_000, "mlp": 32_768}
    listed = [json.loads(line) for line in said(capsys, "list", "--json")[1].splitlines()]
    assert listed[0]["name"] == "me/tiny"
    assert len(listed) > 20
    assert json.loads(said(capsys, "show", "me/tiny", "--json")[1])["tensors"] == 2
    assert main(["advise", "--model", "me/tiny", "--accelerator", "nvidia-l4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["current"]["fits"] is True


def test_a_checkpoint_that_contradicts_the_bundled_entry_wins_and_says_so(capsys, state, make):
    _, out, err = said(capsys, "add", str(make("gemma-4-E2B-it")), "--name", "google/gemma-4-E2B-it", "--json")
    assert "vocab: bundled 262144, checkpoint 1000; the checkpoint's is used" in err
    assert json.loads(out)["contradictions"]
    assert json.loads(said(capsys, "show", "google/gemma-4-E2B-it", "--json")[1])["vocab"] == 1000
    listed = [json.loads(line) for line in said(capsys, "list", "--json")[1].splitlines()]
    assert [row["source"] for row in listed if row["name"] == "google/gemma-4-E2B-it"] != ["bundled"]


def test_a_checkpoint_that_lacks_layers_is_not_added(capsys, state, make):
    code, out, err = said(capsys, "add", str(make("half", num_hidden_layers=4)), "--name", "me/half", "--json")
    assert (code, out) == (2, "")
    assert "of 4 layers it holds nothing of 1, 2, 3" in err
    assert "me/half" not in said(capsys, "list", "--json")[1]


def test_a_folder_is_read_at_once_and_nothing_is_kept(capsys, state, make):
    code, out, _ = said(capsys, "show", str(make("tiny")), "--json")
    assert (code, json.loads(out)["checkpoint_bytes"]) == (0, 160_768)
    assert not state.exists()


def test_a_mounted_path_is_found_by_the_place_its_profile_was_read_from(capsys, state, make):
    folder = make("tiny")
    said(capsys, "add", str(folder), "--name", "mine")
    assert json.loads(said(capsys, "show", f"{folder}/", "--json")[1])["source"] == f"{folder}"


def test_a_hostile_checkpoint_is_refused_and_not_kept(capsys, state, make):
    folder = make("evil")
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)
    code, out, err = said(capsys, "add", str(folder))
    assert (code, out) == (2, "")
    assert "its header claims" in err
    assert not state.exists()


@pytest.mark.parametrize("words", [["add", "/no/such/folder"], ["show", "nobody/nothing"], ["add", "gs://UPPER"]])
def test_what_is_not_there_ends_with_2_and_a_way_on(capsys, state, words):
    code, _, err = said(capsys, *words)
    assert code == 2
    assert err.count("sre-agent models:") == 1


def test_a_cloud_store_says_that_it_keeps_no_profiles(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("STORE", "firestore:p")
    monkeypatch.setenv("BUS", "pubsub:p")
    services = tmp_path / "services.toml"
    services.write_text("")
    monkeypatch.setenv("SERVICES", str(services))
    code, _, err = said(capsys, "list")
    assert code == 2
    assert "does not keep profiles" in err
