"""Models with a verdict each: known ones, and the checkpoints of a bucket; one that cannot be read stops no list."""

import dataclasses

import pytest

from agent.app.fit_answers import FitAnswers
from agent.catalogue.load_fit import load_fit_catalogue
from agent.entrypoints.mcp.open_tools import open_tools
from agent.entrypoints.mcp.server import build_server
from agent.entrypoints.mcp.tools.model_tools import ModelTools
from agent.errors import DependencyFailed, InputRejected
from agent.fit.checkpoint.checkpoint import ModelProfile
from agent.settings import Settings
from tests.agent.entrypoints.mcp.test_server import called, text_of

BUNDLED = load_fit_catalogue().models
SMALL, LARGE = "google/gemma-4-E2B-it", "google/gemma-4-31B-it"


def read(place, name, bundled):
    """A bucket with a small and a large checkpoint, and a folder that is none."""
    if place.endswith("notes"):
        raise InputRejected(f"{place!r} was not read", why="it has no config.json", hint="name a checkpoint")
    facts = BUNDLED.find(LARGE if "31b" in place else SMALL)
    return ModelProfile(name=name, source=place, read_at="", facts=facts, dtype_bytes=(), tensors=1, shards=1)


@pytest.fixture
def asked_for():
    return []


@pytest.fixture
def server(tmp_path, asked_for):
    def folders(bucket, folder):
        asked_for.append((bucket, folder))
        if bucket == "closed":
            raise DependencyFailed("storage.googleapis.com was not read", why="HTTP 503", hint="try again")
        names = ["e2b", "gemma-31b", "notes", *(f"more-{n}" for n in range(7))]
        return [f"gs://{bucket}/{folder}/{name}" for name in names]

    models = ModelTools(
        FitAnswers.open,
        settings=lambda: Settings(store=f"sqlite:{tmp_path}"),
        folders=folders,
        mounted={"/mnt/models": "gs://example-models/llm"}.get,
        read=read,
        redact=lambda text: text,
    )
    return build_server(dataclasses.replace(open_tools(), models=models), version="0")


def test_the_checkpoints_of_a_bucket_come_with_a_verdict_each(server):
    asked = {"source": "gs://example-models/llm/", "accelerator": "nvidia-l4"}
    first = called("list_models", asked, server=server).structured_content
    found = {row["source"].rpartition("/")[2]: row for row in first["models"]}
    assert (found["e2b"]["fits"], found["gemma-31b"]["fits"]) == (True, False)
    assert (found["notes"]["fits"], "no config.json" in found["notes"]["reason"]) == (None, True)
    rest = called("list_models", asked | {"offset": first["next_offset"]}, server=server).structured_content
    assert len(first["models"]) + len(rest["models"]) == 10
    assert rest["next_offset"] is None


def test_a_path_that_a_service_mounts_is_its_bucket(server, asked_for):
    shown = called("list_models", {"source": "/mnt/models"}, server=server).structured_content
    assert asked_for == [("example-models", "llm")]
    assert {row["fits"] for row in shown["models"]} == {None}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("/root/models", "reads no files of this machine"),
        ("gs://closed", "503"),
        ("gs://x/../y", "source"),
        ("../x", "source"),
    ],
)
def test_what_is_no_bucket_of_ours_is_refused(server, source, says):
    result = called("list_models", {"source": source}, server=server)
    assert result.is_error
    assert says in text_of(result)
