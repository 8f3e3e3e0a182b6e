"""The promises of the model port, over what real servers said: vLLM, and llama.cpp's server, which answers 500.

The tapes hold questions, what went over the wire, and what was read then; `make lab-model` records them anew.
"""

import json
from pathlib import Path

import pytest

from agent.adapters.model.endpoint import parse_endpoint
from agent.adapters.model.openai_chat import OPENS_AFTER, OpenAiChat
from agent.adapters.model.recorded import RecordedModel
from agent.core.diagnosis.model_answer import read_answer
from agent.errors import ModelMisbehaved
from agent.failures.signature import FailureClass
from agent.ports.model import NoAnswer, Question
from tests import model_server

TESTS = Path(__file__).resolve().parents[1]
TAPES = sorted((TESTS / "data" / "model").glob("*.jsonl"))
CLASSES = tuple(str(class_) for class_ in FailureClass)


def rows_of(tape):
    head, *rows = [json.loads(line) for line in tape.read_text().splitlines()]
    return head, rows


def playing(tape):
    """A server that says what the real one said: by path, form and question, refused forms included."""
    _, rows = rows_of(tape)
    said = {}
    listing = None
    for row in rows:
        for exchange in row["http"]:
            if exchange["path"].endswith("/models"):
                listing = exchange
            else:
                said[exchange["path"], exchange["form"], row["question"]["user"]] = exchange
    refused = next((e for row in rows for e in row["http"] if e["status"] >= 400), None)

    def act(request):
        _, path, body = request
        if path.endswith("/models"):
            found = listing
        elif not path.endswith("/chat/completions"):
            return model_server.reply(404, {"detail": "Not Found"})
        else:
            form = body["response_format"]["type"]
            found = said.get((path, form, body["messages"][1]["content"]))
            found = found or (refused if refused and refused["form"] == form else None)
        assert found is not None, f"nothing was recorded for {path}"
        return model_server.reply(found["status"], found["body"].encode(), kind=found["type"])

    return act


@pytest.fixture(params=TAPES, ids=lambda tape: tape.stem)
def tape(request):
    return request.param


@pytest.fixture(params=["wire", "answers"])
def model(request, tape, tmp_path):
    """The adapter over the recorded wire, and the recorded answers that it makes of it."""
    with model_server.Server(playing(tape)) as server:
        chat = OpenAiChat([parse_endpoint(server.url)], headers=lambda _: {}, sleep=lambda _: None)
        if request.param == "wire":
            yield chat
            return
        file = tmp_path / "answers.jsonl"
        recording = RecordedModel(file, inner=chat)
        for row in rows_of(tape)[1]:
            recording.ask(Question.model_validate(row["question"]))
        yield RecordedModel(file)


def test_the_tapes_are_there():
    """A server that knows json_schema, and one that answers it with HTTP 500."""
    statuses = {tape.stem: {e["status"] for row in rows_of(tape)[1] for e in row["http"]} for tape in TAPES}
    assert statuses["vllm"] == {200}
    assert statuses["llama_cpp"] == {200, 500}


def test_every_recorded_question_gets_its_answer(model, tape):
    """Text, model, counts and ending as they were read when they were recorded, inside the question's budget."""
    for row in rows_of(tape)[1]:
        question = Question.model_validate(row["question"])
        reply = model.ask(question)
        assert {name: getattr(reply, name) for name in row["reply"]} == row["reply"]
        assert reply.spent.calls <= question.limit_calls
        assert reply.tokens_in + reply.tokens_out == reply.spent.tokens <= question.limit_tokens


def test_answers_that_were_usable_are_read_again(model, tape):
    """The schema did its work: what was marked usable is, what was not is refused."""
    for row in rows_of(tape)[1]:
        question = Question.model_validate(row["question"])
        reply = model.ask(question)
        properties = json.loads(question.answer_schema)["properties"]
        ids = properties["cited"]["items"].get("enum", [])
        try:
            read_answer(reply.text, finished=reply.finished, classes=CLASSES, ids=ids, may_ask="more" in properties)
            usable = True
        except ModelMisbehaved:
            usable = False
        assert usable is row["usable"]


def test_the_server_is_learned_once(tape):
    """The form that a server refuses is tried once; later questions go straight to the one it knows."""
    _, rows = rows_of(tape)
    with model_server.Server(playing(tape)) as server:
        chat = OpenAiChat([parse_endpoint(server.url)], headers=lambda _: {})
        for row in rows:
            chat.ask(Question.model_validate(row["question"]))
        refusing = any(e["status"] == 500 for row in rows for e in row["http"])
        forms = [body["response_format"]["type"] for body in server.questions]
        assert forms[1 if refusing else 0 :] == [forms[-1]] * len(rows)
        assert len(server.requests) - len(server.questions) == 1


def test_a_question_without_a_budget_is_not_sent(model, tape):
    """No tokens left, no call: nobody is asked on credit."""
    question = Question.model_validate(rows_of(tape)[1][0]["question"]).with_(user="another", limit_tokens=10)
    with pytest.raises(NoAnswer) as none:
        model.ask(question)
    assert none.value.spent.tokens == 0


def test_whoever_answered_is_not_asked_again_where_its_answers_cannot_be_used(tape):
    """Three that could not be used in a row close the endpoint; a usable one between them starts the count anew."""
    _, rows = rows_of(tape)
    question = Question.model_validate(rows[0]["question"])
    with model_server.Server(playing(tape)) as server:
        chat = OpenAiChat([parse_endpoint(server.url)], headers=lambda _: {}, sleep=lambda _: None)
        for usable in (*[False] * (OPENS_AFTER - 1), True, *[False] * OPENS_AFTER):
            chat.judged(chat.ask(question), usable=usable)
        asked = len(server.questions)
        with pytest.raises(NoAnswer):
            chat.ask(question)
        assert len(server.questions) == asked


def test_a_recording_that_answers_itself_hears_a_judgement_and_stays_the_same(tape, tmp_path):
    """Nobody is behind it: the next answer is the same one."""
    file = tmp_path / "answers.jsonl"
    question = Question.model_validate(rows_of(tape)[1][0]["question"])
    with model_server.Server(playing(tape)) as server:
        chat = OpenAiChat([parse_endpoint(server.url)], headers=lambda _: {}, sleep=lambda _: None)
        RecordedModel(file, inner=chat).ask(question)
    alone = RecordedModel(file)
    reply = alone.ask(question)
    for _ in range(OPENS_AFTER):
        alone.judged(reply, usable=False)
    assert alone.ask(question) == reply
