"""S9: half an answer is no answer, and nothing about one is ever repaired."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.diagnosis.model_answer import ANSWER_LIMIT, answer_schema, read_answer
from agent.errors import ModelMisbehaved
from agent.failures.signature import FailureClass
from tests.counts import tries
from tests.outside import shared

CLASSES = tuple(str(class_) for class_ in FailureClass)
IDS = ("e1", "e2", "e3")

PLAIN = {"root_cause": "The cache is too small.", "class": "kv_cache_insufficient", "cited": ["e2"], "unknown": []}
VALID = {
    "plain": PLAIN,
    "cannot tell": {"root_cause": "Nothing decides it.", "class": "unknown", "cited": [], "unknown": ["the exit code"]},
    "asks for lines": PLAIN | {"more": [{"want": "lines_around", "id": "e3"}]},
    "asks for the log before": PLAIN | {"more": [{"want": "earlier_log"}]},
    "asks for a fit": PLAIN | {"more": [{"want": "fit", "max_model_len": 8192}]},
    "asks for another fit": PLAIN | {"more": [{"want": "fit", "gpu_memory_utilization": 0.8}]},
    "every letter": PLAIN | {"root_cause": 'é \U0001f600 "quoted" \\ back \n line \u202e', "unknown": ["a", "b", "c"]},
}


def read(text, *, finished=True, may_ask=True):
    return read_answer(text, finished=finished, classes=CLASSES, ids=IDS, may_ask=may_ask)


@pytest.mark.parametrize("answer", VALID.values(), ids=VALID.keys())
@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "plain"])
def test_every_byte_prefix_of_a_valid_answer_is_refused(answer, ascii_only):
    """The whole is read; every proper prefix of its bytes is refused, finished or not."""
    whole = json.dumps(answer, ensure_ascii=ascii_only).encode()
    assert read(whole.decode()).class_ == answer["class"]
    for length in range(len(whole)):
        with pytest.raises(ModelMisbehaved):
            read(whole[:length].decode("utf-8", "surrogateescape"))
    with pytest.raises(ModelMisbehaved, match="cut off"):
        read(whole.decode(), finished=False)


def test_the_must_refuse_files_of_the_suite_are_refused():
    """JSONTestSuite: 188 of 188 files that no parser may accept."""
    suite = shared("data", "corpora", "JSONTestSuite")
    refused = 0
    for path in sorted(suite.glob("n_*.json")):
        raw = path.read_bytes()
        for text in (raw.decode("utf-8", "surrogateescape"), raw.decode("utf-8", "replace"), raw.decode("latin-1")):
            with pytest.raises(ModelMisbehaved):
                read(text)
        refused += 1
    assert refused == 188


def changed(**changes):
    return json.dumps(PLAIN | changes)


REFUSED = {
    "a class that is none": (changed(**{"class": "gpu_sad"}), "not in the catalogue"),
    "a line that was not shown": (changed(cited=["e9"]), "not shown"),
    "lines around one that was not shown": (changed(more=[{"want": "lines_around", "id": "e9"}]), "not shown"),
    "a class without proof": (changed(cited=[]), "cites no line"),
    "an action": (changed(action="restart"), "Extra inputs"),
    "a command to run": (changed(more=[{"want": "shell", "command": "rm -rf /"}]), "more"),
    "a path to read": (changed(more=[{"want": "earlier_log", "path": "/etc/passwd"}]), "more"),
    "a context of minus one": (changed(more=[{"want": "fit", "max_model_len": -1}]), "more"),
    "a context as text": (changed(more=[{"want": "fit", "max_model_len": "8192"}]), "more"),
    "too many wishes": (changed(more=[{"want": "earlier_log"}] * 4), "more"),
    "endless prose": (changed(root_cause="x" * 1201), "root_cause"),
    "no prose": (changed(root_cause=""), "root_cause"),
    "a class as a list": (changed(**{"class": ["unknown"]}), "class"),
    "a key twice": (changed()[:-1] + ',"class":"unknown"}', "stands twice"),
    "NaN": (changed(more=[{"want": "fit", "gpu_memory_utilization": float("nan")}]), "NaN"),
    "infinity": (changed(more=[{"want": "fit", "gpu_memory_utilization": float("inf")}]), "Infinity"),
    "too deep": (changed(cited=json.loads("[" * 65 + "]" * 65)), "nested deeper"),
    "too long": (changed(unknown=["x" * ANSWER_LIMIT]), "at most 65536"),
    "in a fence": (f"```json\n{changed()}\n```", "Expecting value"),
    "with words before it": (f"Here it is: {changed()}", "Expecting value"),
    "twice": (changed() * 2, "Extra data"),
    "an array": (f"[{changed()}]", "not an object"),
    "a comment": (changed()[:-1] + "/* ok */}", ""),
    "nothing": ("", "Expecting value"),
    "half a surrogate": (changed(root_cause="\ud800"), "surrogate"),
}


@pytest.mark.parametrize(("text", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_exactly_an_answer_is_none(text, why):
    """Refused with a reason; the reason never quotes what the model made up."""
    with pytest.raises(ModelMisbehaved) as refused:
        read(text)
    assert why in refused.value.why
    assert "rm -rf" not in refused.value.why


def test_wishes_count_only_where_they_were_allowed():
    """With asking off an answer that asks is none."""
    with pytest.raises(ModelMisbehaved, match="may not"):
        read(changed(more=[{"want": "earlier_log"}]), may_ask=False)


@given(st.text(max_size=200))
@settings(max_examples=tries(30, ci=150, soak=150), deadline=None)
def test_any_text_is_read_or_refused(text):
    """No text raises anything but ModelMisbehaved."""
    try:
        read(text)
    except ModelMisbehaved:
        return
    raise AssertionError


def test_the_schema_says_what_is_read():
    """Every property that is required is read, the lists are closed, and prose comes before the class."""
    schema = json.loads(answer_schema(CLASSES, IDS, may_ask=True))
    assert list(schema["properties"]) == ["root_cause", "class", "cited", "unknown", "more"]
    assert schema["properties"]["class"]["enum"] == list(CLASSES)
    assert schema["properties"]["cited"]["items"]["enum"] == list(IDS)
    assert schema["additionalProperties"] is False
    assert "more" not in json.loads(answer_schema(CLASSES, IDS, may_ask=False))["properties"]
    assert json.loads(answer_schema(CLASSES, (), may_ask=False))["properties"]["cited"]["items"] == {"type": "string"}
