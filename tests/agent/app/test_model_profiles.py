"""Names find their model: profiles before the bundled entries, mounts through services.toml."""

import json
import struct
import threading
import time

import pytest

from agent.adapters.checkpoint.locate import Locator
from agent.app.model_profiles import HUB_S, KnownModels, known_models, mounts, name_of, reader
from agent.catalogue.load_fit import load_fit_catalogue
from agent.errors import InputRejected
from agent.fit.checkpoint.checkpoint import ModelProfile
from agent.settings import read_settings
from tests.loopback import Loopback

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


class Hub:
    """A model hub on loopback: repositories by name, each file by its bytes; ``gate`` holds every answer back."""

    def __init__(self, repositories):
        self.repositories = repositories
        self.asked = []
        self.gate = threading.Event()
        self.gate.set()
        self.server = Loopback(self.answer, methods=["GET"])
        self.url = self.server.url

    def answer(self, request):
        self.asked.append(request.path)
        self.gate.wait(30)
        owner, name, _, _, file = request.path.strip("/").split("/", 4)
        body = self.repositories.get(f"{owner}/{name}", {}).get(file)
        if body is None:
            return 404, b""
        first, last = map(int, request.headers["Range"].removeprefix("bytes=").split("-"))
        part = body[first : last + 1]
        return 206, part, {"Content-Range": f"bytes {first}-{first + len(part) - 1}/{len(body)}"}

    def close(self):
        self.gate.set()
        self.server.close()


def tiny_files(**config):
    """A Llama of one layer, whole."""
    told = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "vocab_size": 1000,
        "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 256, "max_position_embeddings": 4096,
        "tie_word_embeddings": True, **config,
    }  # fmt: skip
    entries = {
        "model.embed_tokens.weight": {"dtype": "BF16", "shape": [1000, 64], "data_offsets": [0, 128_000]},
        "model.layers.0.mlp.up_proj.weight": {"dtype": "BF16", "shape": [256, 64], "data_offsets": [128_000, 160_768]},
    }
    header = json.dumps(entries).encode()
    return {
        "config.json": json.dumps(told).encode(),
        "model.safetensors": struct.pack("<Q", len(header)) + header + bytes(160_768),
    }


@pytest.fixture
def hub():
    running = Hub({"someone/tiny": tiny_files(), "someone/Llama-3.1-8B-Instruct-AWQ": tiny_files()})
    yield running
    running.close()


def asking(hub, tmp_path, *, hub_s=10.0):
    settings = read_settings({"STORE": f"sqlite:{tmp_path / 'state'}", "HF_ENDPOINT": hub.url})
    return KnownModels(BUNDLED, Shelf(), reader(settings), hub_s=hub_s)


def test_a_repository_that_is_not_bundled_is_read_from_the_hub(hub, tmp_path):
    facts = asking(hub, tmp_path).find("someone/tiny")
    assert (facts.name, facts.hidden, facts.checkpoint_bytes) == ("someone/tiny", 64, 160_768)
    assert any("models add hf:someone/tiny" in told for told in facts.assumptions)
    assert all("/someone/tiny/resolve/main/" in path for path in hub.asked)


def test_what_the_hub_holds_wins_over_a_guess_by_the_name_and_a_bundled_name_is_not_asked_for(hub, tmp_path):
    models = asking(hub, tmp_path)
    assert models.find("someone/Llama-3.1-8B-Instruct-AWQ").hidden == 64
    hub.asked.clear()
    assert models.find("Qwen/Qwen3-8B").hidden == 4096
    assert hub.asked == []


def test_a_silent_hub_delays_once_and_is_told_among_the_assumptions(hub, tmp_path):
    hub.gate.clear()
    models = asking(hub, tmp_path, hub_s=0.2)
    began = time.monotonic()
    guessed = models.find("elsewhere/Llama-3.1-8B-Instruct-AWQ")
    with pytest.raises(InputRejected) as refused:
        models.find("someone/tiny")
    assert time.monotonic() - began < 2
    assert guessed.assumptions[0] == "the hub did not answer within 0.2 s"
    assert guessed.quant.scheme == "awq"
    assert "the hub did not answer within 0.2 s" in refused.value.why
    assert refused.value.hint.endswith("sre-agent models add hf:someone/tiny")
    assert len(hub.asked) == 1


def test_a_repository_that_the_hub_does_not_have_ends_with_the_command_that_adds_it(hub, tmp_path):
    with pytest.raises(InputRejected) as refused:
        asking(hub, tmp_path).find("nobody/nothing-at-all")
    assert "404" in refused.value.why
    assert "sre-agent models add hf:nobody/nothing-at-all" in refused.value.hint


def test_a_gguf_file_is_not_offered_to_be_added(hub, tmp_path):
    with pytest.raises(InputRejected) as refused:
        asking(hub, tmp_path).find("bartowski/Qwen2.5-7B-Instruct-GGUF")
    assert refused.value.hint == "ask about Qwen/Qwen2.5-7B-Instruct: its context costs the same."


def test_a_checkpoint_of_the_hub_that_cannot_be_read_says_which_file_and_why(hub, tmp_path):
    hub.repositories["someone/broken"] = {**tiny_files(), "config.json": b"{"}
    with pytest.raises(InputRejected, match=r"someone/broken.*config\.json"):
        asking(hub, tmp_path).find("someone/broken")


def test_an_installation_that_is_told_to_stay_offline_never_asks(hub, tmp_path):
    settings = read_settings({"STORE": f"sqlite:{tmp_path}", "HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "1"})
    models = known_models(BUNDLED, settings)
    with pytest.raises(InputRejected):
        models.find("someone/tiny")
    with pytest.raises(InputRejected, match="HF_HUB_OFFLINE"):
        models.find("hf:someone/tiny")
    with pytest.raises(InputRejected, match="HF_HUB_OFFLINE"):
        models.add("hf:someone/tiny", as_name="tiny")
    assert hub.asked == []


def test_the_wait_is_two_seconds():
    assert HUB_S == 2.0
