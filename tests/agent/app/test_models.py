"""The model is put together from the settings, and can be scored over recorded logs without an incident."""

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent.app.model_classifier import ModelClassifier, model_classifier
from agent.app.models import _headers, model_of, model_use
from agent.core.diagnosis.model_request import When
from agent.entrypoints.cli.classified_records import ClassifyInput
from agent.errors import DependencyFailed, SettingsRejected
from agent.settings import Settings, read_settings
from tests import model_words

TESTS = Path(__file__).resolve().parents[2]
KV = "ValueError: To serve at least one request with the model's max seq len (131072), (4.0 GiB KV cache is needed, which is larger than the available KV cache memory (1.0 GiB)"


def test_no_endpoint_or_never_is_no_model():
    """Nothing is needed to run without one."""
    assert model_of(Settings()) is None
    assert model_of(Settings(model_endpoints=("http://127.0.0.1:9/v1",), model_ask_when="never")) is None
    assert model_of(Settings(model_endpoints=("http://127.0.0.1:9/v1",))) is not None


def test_a_wrong_endpoint_is_told_at_the_start():
    """Not when the first incident comes."""
    with pytest.raises(SettingsRejected, match="MODEL_ENDPOINTS"):
        model_of(Settings(model_endpoints=("gemma",)))


def test_the_settings_say_how_the_model_is_used():
    """When, wake and asking come from the settings; the classes from the catalogue."""
    use = model_use(
        read_settings({"MODEL_ASK_WHEN": "uncertain", "MODEL_WAKE_WHEN": "never", "MODEL_FOLLOW_UP": "off"})
    )
    assert (use.when, use.wake, use.may_ask) == (When.UNCERTAIN, When.NEVER, False)
    assert "unknown" in use.classes
    assert set(use.classes) - {"unknown"} == set(use.fixes)


@pytest.mark.parametrize(
    ("key", "audience", "wanted"),
    [
        (None, None, {}),
        ("k", None, {"Authorization": "Bearer k"}),
        (None, "https://a", {"Authorization": "Bearer id(https://a)"}),
        ("k", "https://a", {"Authorization": "Bearer k", "X-Serverless-Authorization": "Bearer id(https://a)"}),
    ],
)
def test_who_we_are_stands_in_its_header(key, audience, wanted):
    """The server's key and the identity for Cloud Run do not displace each other."""
    from agent.adapters.model.endpoint import Endpoint

    endpoint = Endpoint(base_url="https://x/v1", audience=audience)
    secret = SecretStr(key) if key else None
    assert _headers(endpoint, secret, lambda audience: f"id({audience})") == wanted


@pytest.mark.parametrize(("which", "class_"), [("model", "host_oom"), ("both", "kv_cache_insufficient")])
def test_certain_rules_stand_where_both_are_scored(which, class_):
    """The model alone is scored by its word; together the rules decide."""
    classify = ModelClassifier(which, model_words.Says(model_words.names("host_oom")), model_use(Settings()))
    assert str(classify(ClassifyInput(id="1", log=KV, whole_log=True)).class_) == class_
    assert classify.figures()["tokens"] == 980


def test_what_could_not_be_used_is_counted():
    """Two refused answers for one record: unknown, by the model alone."""
    classify = ModelClassifier("model", model_words.Says(lambda _: "no"), model_use(Settings()))
    assert str(classify(ClassifyInput(id="1", log=KV, whole_log=True)).class_) == "unknown"
    assert classify.figures()["schema_failures"] == 2
    assert classify.figures()["usable"] == 0


def test_recorded_answers_are_scored_without_the_model(tmp_path, monkeypatch, capsys):
    """Scoring with both over a recording: the same figures, no endpoint."""
    from agent.adapters.model.recorded import RecordedModel
    from agent.entrypoints.cli.main import main

    answers = tmp_path / "answers.jsonl"
    recording = ModelClassifier(
        "both", RecordedModel(answers, inner=model_words.Says(model_words.names("unknown"))), model_use(Settings())
    )
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps({"id": "1", "log": KV, "class": "kv_cache_insufficient", "fix_action": "x"}) + "\n")
    recording(ClassifyInput(id="1", log=KV, whole_log=False))
    monkeypatch.setenv("MODEL_ENDPOINTS", f"recorded:{answers}")
    assert main(["eval", str(corpus), "--with", "both", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["model"]["tokens"] == 980
    assert result["with"] == "both"


def test_without_a_model_there_is_nothing_to_score(monkeypatch):
    """The dependency is named, with the way to mend it."""
    monkeypatch.delenv("MODEL_ENDPOINTS", raising=False)
    with pytest.raises(DependencyFailed, match="MODEL_ENDPOINTS"):
        model_classifier("both")
