"""A model's summary is used only where every figure, name, time and end of it stands in the original."""

import json

import pytest

from agent.core.text.rewording import REWORDING_SCHEMA, read_rewording
from agent.errors import ModelMisbehaved

ORIGINAL = (
    "On 2026-11-21 03:00:00 UTC the agent detected a failure of gemma4-26b (revision gemma4-26b-00005-k2f): the startup "
    "probe gave up after 780 s while the model was still loading. Impact: nothing served. Two plans were made. "
    "--max-model-len is 16384. From detection to recovery it took 30 s, 0.01 USD and 97 % of the window."
)


def read(summary, *, is_over=True, finished=True, **more):
    answer = json.dumps({"summary": summary} | more)
    return read_rewording(answer, finished=finished, original=ORIGINAL, is_over=is_over)


@pytest.mark.parametrize(
    "said",
    [
        "The startup probe of gemma4-26b gave up after 780 s, so nothing served; recovery took 30 s.",
        "At 03:00:00 UTC on 2026-11-21 gemma4-26b-00005-k2f failed. Two plans were made (0.01 USD).",
        "With --max-model-len at 16384, the model was still loading.",
        ORIGINAL,
    ],
    ids=["shorter", "other order", "a flag", "as it was"],
)
def test_what_states_nothing_new_is_used(said):
    assert read(said) == said


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("It took 31 s.", "31 s"),
        ("It took 30 min.", "30 min"),
        ("It took thirty s.", "thirty"),
        ("It took -30 s.", "-30 s"),
        ("It took half of the window.", "half"),
        ("It began at 03:00:01 UTC.", "03:00:01"),
        ("It began on 2026-11-22.", "2026-11-22"),
        ("gemma4-31b failed.", "gemma4-31b"),
        ("Revision gemma4-26b-00006-abc failed.", "gemma4-26b-00006-abc"),
        ("See http://evil.example for more.", "http[:]//evil.example"),
        ("Ask ops@example.com.", "ops@example[.]com"),
        ("Raise --gpu-memory-utilization.", "--gpu-memory-utilization"),
        ("It failed \u00b2 s.", "\u00b2"),
        ("It failed \u0663 s.", "\u0663"),
        ("The probe gave up because customers lost data.", "customers"),
        ("Alice rejected the plan.", "rejected"),
        ("The probe gave up, and traffic is normal.", "traffic"),
        ("The model was not loading.", "not"),
        ("The server was hacked.", "hacked"),
    ],
    ids=lambda value: value if " " not in str(value) else "",
)
def test_what_states_something_of_its_own_is_refused(said, names):
    with pytest.raises(ModelMisbehaved) as refused:
        read(said)
    assert repr(names) in str(refused.value)
    assert "the summary of the record stands" in str(refused.value)


def test_an_end_is_not_claimed_before_the_end():
    """The same words are the model's to choose once the record says that it is over."""
    said = "The probe gave up after 780 s, and it was fixed."
    assert read(said) == said
    with pytest.raises(ModelMisbehaved, match="fixed"):
        read(said, is_over=False)


@pytest.mark.parametrize(
    ("answer", "finished", "why"),
    [
        (json.dumps({"summary": "It failed."}), False, "cut off"),
        ("It failed.", True, "Expecting value"),
        (json.dumps({"summary": "It failed.", "more": 1}), True, "not the one text"),
        (json.dumps({"summary": 5}), True, "not the one text"),
        (json.dumps({"summary": " \n "}), True, "empty"),
        (json.dumps({"summary": "It failed. " * 200}), True, "much longer"),
        ("[" * 100_000, True, "at most 16384"),
    ],
    ids=["cut off", "prose", "another key", "a number", "blank", "long", "deep"],
)
def test_what_is_no_answer_is_refused(answer, finished, why):
    with pytest.raises(ModelMisbehaved, match=why):
        read_rewording(answer, finished=finished, original=ORIGINAL, is_over=True)


def test_lines_are_joined_and_hidden_signs_are_refused():
    assert read("The probe\n\ngave up.") == "The probe gave up."
    with pytest.raises(ModelMisbehaved, match="202e"):
        read("The probe gave\u202e up.")


def test_the_schema_is_what_is_read():
    schema = json.loads(REWORDING_SCHEMA)
    assert (list(schema["properties"]), schema["additionalProperties"]) == (["summary"], False)
