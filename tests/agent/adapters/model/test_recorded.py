"""Recorded answers come back word by word, and only for the question they were given to."""

import pytest

from agent.adapters.model.recorded import RecordedModel
from agent.core.diagnosis.model_request import Spend
from agent.errors import SettingsRejected
from agent.ports.model import NoAnswer, Reply


class Once:
    """Answers once, then never again."""

    def __init__(self):
        self.asked = 0
        self.received = []

    def ask(self, question):
        self.asked += 1
        assert self.asked == 1
        return Reply(
            text=question.user, model="m", endpoint="http://x/v1", tokens_in=7, tokens_out=3, took_s=0.5, finished=True,
            spent=Spend(calls=1, tokens=10, seconds=0.5),
        )  # fmt: skip

    def judged(self, reply, *, usable):
        self.received.append(usable)


def test_an_answer_is_recorded_once_and_replayed_without_the_model(tmp_path, question):
    """The second run needs no model; cost and words are those of the first."""
    path = tmp_path / "answers.jsonl"
    inner = Once()
    recording = RecordedModel(path, inner=inner)
    first = recording.ask(question())
    assert recording.ask(question(patient="another", limit_s=3)) == first
    recording.judged(first, usable=True)
    assert inner.received == [True]
    assert RecordedModel(path).ask(question()) == first


def test_another_question_has_no_recorded_answer(tmp_path, question):
    """A changed text or schema is another question: no answer, and no use asking again."""
    path = tmp_path / "answers.jsonl"
    RecordedModel(path, inner=Once()).ask(question())
    for changed in ({"user": "x"}, {"system": "x"}, {"answer_schema": "{}"}, {"shorter": ("x",)}):
        with pytest.raises(NoAnswer) as none:
            RecordedModel(path).ask(question(**changed))
        assert not none.value.again


@pytest.mark.parametrize("text", ["{", "[]", '{"question": "q"}', '{"question": "q", "reply": {"text": 5}}', None])
def test_a_file_that_is_none_of_ours_is_refused(tmp_path, text):
    """Missing or broken: the settings are wrong, and it says so at the start."""
    path = tmp_path / "answers.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsRejected, match="recorded answers"):
        RecordedModel(path)
