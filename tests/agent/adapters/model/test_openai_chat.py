"""Whatever a server does, a question ends inside its time, tokens and calls: with a reply, or with NoAnswer."""

import socket
import time

import pytest

from agent.adapters.model.openai_chat import OPENS_AFTER, RESTS_S, Breaker
from agent.errors import DependencyFailed
from agent.ports.model import NoAnswer
from tests.model_server import FAULTS

UNREADABLE = {"half JSON", "wrong schema", "prose", "fenced JSON"}  # whole answers; the reader refuses them
CUT = {"cut off", "endless stream"}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_ends_inside_the_budget(servers, chat, question, fault):
    """No fault outlasts the deadline, spends more than was allowed, or escapes as another error."""
    with servers.Server(servers.answering(servers.FAULTS[fault])) as server:
        asked = question(limit_s=0.6)
        began = time.monotonic()
        try:
            reply = chat(server.url).ask(asked)
        except NoAnswer as none:
            spent = none.spent
            assert fault not in UNREADABLE | CUT
        else:
            spent = reply.spent
            assert fault in UNREADABLE | CUT
            assert reply.finished is (fault in UNREADABLE)
            assert len(reply.text) <= 65_537
        assert time.monotonic() - began < asked.limit_s + 2  # two seconds for a busy machine; the faults last for ever
        assert spent.calls <= asked.limit_calls
        assert spent.tokens <= asked.limit_tokens
        assert spent.seconds <= asked.limit_s
        assert len(server.questions) == spent.calls


def test_a_server_that_is_down_is_no_answer(chat, question):
    """A closed port: nothing was spent, and asking again may help."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(NoAnswer) as none:
        chat(f"http://127.0.0.1:{port}/v1").ask(question())
    assert none.value.again
    assert none.value.spent.tokens == 0
    assert none.value.spent.calls == 0


def test_an_answer_counts_though_the_server_is_slow_to_close(servers, chat, question):
    """After the last word nothing is waited for in vain: the answer is there."""
    with servers.Server(servers.answering(servers.LATE_BUT_GOOD["slow to close"])) as server:
        reply = chat(server.url).ask(question())
    assert reply.text == servers.GOOD
    assert reply.finished
    assert (reply.tokens_in, reply.tokens_out, reply.model) == (100, 20, "stand-in")


def test_tokens_that_the_server_does_not_count_are_bounded(servers, chat, question):
    """Without usage the bound is charged: a byte is never less than a token."""
    with servers.Server(servers.answering(lambda _: servers.streamed(servers.GOOD, tokens=None))) as server:
        reply = chat(server.url).ask(question())
    assert reply.tokens_in >= len("Answer by the schema.What broke?")
    assert reply.tokens_out == question().max_tokens


@pytest.mark.parametrize("fault", ["silent", "reset", "HTML", "HTTP 401", "HTTP 429", "HTTP 500"])
def test_the_breaker_opens_and_one_call_tries_again(servers, chat, question, ticks, fault):
    """At most five failures reach a sick server; after its rest one more does; when it answers, all do."""
    say = {"now": servers.FAULTS[fault]}
    with servers.Server(servers.answering(lambda body: say["now"](body))) as server:  # noqa: PLW0108 - it changes
        model = chat(server.url)
        for _ in range(12):
            with pytest.raises(NoAnswer):
                model.ask(question(limit_s=0.3))
        while_open = len(server.requests)
        assert model.figures()[server.url]["opened"] == 1
        for _ in range(3):
            with pytest.raises(NoAnswer) as rests:
                model.ask(question())
        assert "rests" in rests.value.why
        assert rests.value.again
        assert len(server.requests) == while_open
        ticks.now += RESTS_S
        say["now"] = lambda _: servers.GOOD
        reply = model.ask(question())
        assert reply.finished
        model.judged(reply, usable=True)
        assert not model.figures()[server.url]["open"]


def test_answers_that_cannot_be_used_open_the_breaker_too(servers, chat, question):
    """A server that talks nonsense is asked at most five times in a row."""
    with servers.Server(servers.answering(servers.FAULTS["prose"])) as server:
        model = chat(server.url)
        for _ in range(5):
            try:
                model.judged(model.ask(question()), usable=False)
            except NoAnswer:
                break
        assert model.figures()[server.url]["open"]
        assert len(server.questions) <= 5


def test_the_next_endpoint_answers_for_a_broken_one(servers, chat, question):
    """The list is tried in order within one budget, and the cost of both is told."""
    with (
        servers.Server(servers.answering(servers.FAULTS["HTML"])) as broken,
        servers.Server(servers.answering(lambda _: servers.GOOD)) as good,
    ):
        reply = chat(broken.url, good.url).ask(question())
    assert reply.endpoint == good.url
    assert reply.spent.calls == 2
    assert reply.spent.tokens > reply.tokens_in + reply.tokens_out


def test_the_patient_is_not_asked_about_itself(servers, chat, question):
    """The endpoint that is the service in trouble is skipped; alone, nobody is asked and nobody waits for it."""
    with (
        servers.Server(servers.answering(lambda _: servers.GOOD)) as patient,
        servers.Server(servers.answering(lambda _: servers.GOOD)) as other,
    ):
        named = f"{patient.url}#service=gemma"
        assert chat(named, other.url).ask(question()).endpoint == other.url
        with pytest.raises(NoAnswer) as none:
            chat(named).ask(question())
        assert not none.value.again
        assert "patient" in none.value.why
        assert patient.requests == []


def test_a_sleeping_endpoint_is_not_woken_for_nothing(servers, chat, question, ticks):
    """It is left asleep; once it has answered it counts as awake for a while."""
    with servers.Server(servers.answering(lambda _: servers.GOOD)) as server:
        model = chat(f"{server.url}#sleeps=yes")
        with pytest.raises(NoAnswer, match="sleep") as none:
            model.ask(question(may_wake=False))
        assert not none.value.again
        assert server.requests == []
        assert model.ask(question(may_wake=True)).finished
        assert model.ask(question(may_wake=False)).finished
        ticks.now += 3600
        with pytest.raises(NoAnswer, match="sleep"):
            model.ask(question(may_wake=False))


def test_waking_costs_no_token(servers, chat, question):
    """A server that does not even list its model has been asked nothing yet."""

    def act(request):
        return servers.FAULTS["silent"](request)

    with servers.Server(act) as server, pytest.raises(NoAnswer) as none:
        chat(server.url).ask(question(limit_s=0.6))
    assert none.value.again
    assert none.value.spent.tokens == 0
    assert none.value.spent.calls == 0
    assert server.questions == []


def test_a_server_without_json_schema_is_asked_in_its_own_form(servers, chat, question):
    """HTTP 500 to json_schema: json_object with the schema beside it, from then on at once."""

    def say(body):
        if body["response_format"]["type"] == "json_schema":
            return servers.reply(500, {"error": "response_format must be text or json_object"})
        assert body["response_format"]["schema"] == {"type": "object"}
        return servers.GOOD

    with servers.Server(servers.answering(say)) as server:
        model = chat(server.url)
        assert model.ask(question()).spent.calls == 2
        assert model.ask(question()).spent.calls == 1
        assert model.figures()[server.url]["form"] == "json_object"


def test_a_server_that_knows_no_schema_is_not_used(servers, chat, question):
    """Neither form: no model, never free text."""
    with servers.Server(servers.answering(servers.FAULTS["HTTP 400"])) as server, pytest.raises(NoAnswer) as none:
        chat(server.url).ask(question())
    assert "schema" in none.value.why
    assert [q["response_format"]["type"] for q in server.questions] == ["json_schema", "json_object"]


def window_of(servers, size, *, count=None):
    listing = {"data": [{"id": "small", "max_model_len": size}]}

    def act(request):
        _, path, _ = request
        if path.endswith("/models"):
            return servers.reply(200, listing)
        if path == "/tokenize" and count is not None:
            return servers.reply(200, {"count": count, "max_model_len": size})
        return servers.streamed(servers.GOOD) if path.endswith("/completions") else servers.reply(404, {})

    return act


def test_the_longest_text_that_fits_the_window_is_sent(servers, chat, question):
    """Without a count a byte is taken for a token; with the server's own count more fits."""
    asked = question(user="x" * 3000, shorter=("x" * 1000, "x" * 100), max_tokens=500)
    with servers.Server(window_of(servers, 2048)) as server:
        assert chat(server.url).ask(asked).used == 1
        assert len(server.questions[0]["messages"][1]["content"]) == 1000
    with servers.Server(window_of(servers, 2048, count=700)) as server:
        assert chat(server.url).ask(asked).used == 0
    with servers.Server(window_of(servers, 512)) as server, pytest.raises(NoAnswer, match="does not fit"):
        chat(server.url).ask(asked)


def test_what_was_sent_is_bounded(servers, chat, question):
    """Temperature 0, a bounded answer, a stream, the schema, and who we are."""
    with servers.Server(servers.answering(lambda _: servers.GOOD)) as server:
        chat(server.url, headers=lambda _: {"Authorization": "Bearer k"}).ask(question(max_tokens=321))
    body = server.questions[0]
    assert (body["max_tokens"], body["temperature"], body["stream"], body["model"]) == (321, 0, True, "stand-in")
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}


def test_without_an_identity_nobody_is_asked(servers, chat, question):
    """No ID token, no request: the reason is told."""

    def none(_):
        raise DependencyFailed("no ID token", why="no identity here", hint="run as a service account")

    with servers.Server(servers.answering(lambda _: servers.GOOD)) as server, pytest.raises(NoAnswer) as failed:
        chat(server.url, headers=none).ask(question())
    assert "no identity here" in failed.value.why
    assert server.requests == []


def test_it_opens_after_failures_in_a_row_only(ticks):
    """A good call in between starts the count anew."""
    breaker = Breaker(ticks)
    for _ in range(OPENS_AFTER - 1):
        breaker.record(good=False)
    breaker.record(good=True)
    for _ in range(OPENS_AFTER - 1):
        breaker.record(good=False)
    assert breaker.admits()
    breaker.record(good=False)
    assert not breaker.admits()
    assert OPENS_AFTER <= 5


def test_one_probe_goes_through_for_each_rest(ticks):
    """Half open: one call; a second one at the same moment waits, even if the first never reports."""
    breaker = Breaker(ticks)
    for _ in range(OPENS_AFTER):
        breaker.record(good=False)
    ticks.now += RESTS_S
    assert [breaker.admits() for _ in range(4)] == [True, False, False, False]
    ticks.now += RESTS_S
    assert breaker.admits()
    breaker.record(good=False)
    assert not breaker.admits()
    ticks.now += RESTS_S
    assert breaker.admits()
    breaker.record(good=True)
    assert [breaker.admits() for _ in range(4)] == [True] * 4
    assert breaker.opened == 1
