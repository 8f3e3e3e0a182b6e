"""A question is read whole or refused with the key that is wrong."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import InputRejected
from agent.fit.question import Question, question_from

GOOD = {"model": "a/b", "accelerator": "nvidia-l4"}


def test_the_count_is_what_the_flags_need_unless_given():
    assert question_from({**GOOD, "flags": "-tp 4 -pp 2"}).count == 8
    assert question_from({**GOOD, "flags": "-tp 4", "count": "8"}).count == 8


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"accelerator": "nvidia-l4"}, "model"),
        ({"model": "a/b"}, "accelerator"),
        ({**GOOD, "count": 0}, "count"),
        ({**GOOD, "count": -1}, "count"),
        ({**GOOD, "count": 1.5}, "count"),
        ({**GOOD, "count": True}, "count"),
        ({**GOOD, "count": "many"}, "count"),
        ({**GOOD, "flags": {"max_model_len": 1}}, "flags"),
        ({**GOOD, "flags": "--max-model-len -2"}, "max-model-len"),
        ({**GOOD, "vllm": ["0.21"]}, "vllm"),
        ({**GOOD, "need_context": 0}, "need_context"),
        ({**GOOD, "need_users": "x"}, "need_users"),
        ({**GOOD, "flags": "vllm serve other/model --max-model-len 8"}, "other/model"),
        ({**GOOD, "flags": "--model other/model"}, "other/model"),
    ],
)
def test_bad_rows_name_the_key(row, told):
    with pytest.raises(InputRejected) as refused:
        question_from(row)
    assert told in refused.value.what


@pytest.mark.parametrize("flags", ["vllm serve a/b", "--model A/B --max-model-len 8", "vllm serve a/b/"])
def test_a_command_line_that_serves_the_same_model_is_the_same_question(flags):
    asked = question_from({**GOOD, "flags": flags})
    assert (asked.flags.model, asked.notes) == (None, ())


@pytest.mark.parametrize("flags", ["vllm serve /mnt/models/x", "--model gs://bucket/x", "--model ./x", "--model ~/x"])
def test_a_path_that_is_served_is_taken_for_the_model_and_that_is_told(flags):
    (note,) = question_from({**GOOD, "flags": flags}).notes
    assert flags.split()[-1] in note
    assert "a/b" in note


@given(
    st.dictionaries(
        st.sampled_from(["model", "accelerator", "count", "flags", "vllm", "need_context", "need_users"]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=9)
        | st.lists(st.text(max_size=3), max_size=2),
    )
)
def test_any_row_is_read_or_refused(row):
    with contextlib.suppress(InputRejected):
        assert isinstance(question_from(row), Question)


def test_devices_that_the_flags_leave_empty_are_said():
    assert question_from(GOOD | {"count": 3}).notes == (
        "2 of 3 devices are not used: the flags split the server over 1",
    )
    assert question_from(GOOD | {"count": 2, "flags": "--tensor-parallel-size 2"}).notes == ()
