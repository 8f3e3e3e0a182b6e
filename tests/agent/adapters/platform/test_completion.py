"""One real completion over HTTP on loopback: what counts as an answer, and what says nothing about the model."""

import time
from collections.abc import Iterator

import pytest

from agent.adapters.platform.completion import CompletionClient, Outcome, generation_tokens
from agent.errors import DependencyFailed
from tests.contracts import vllm_http


@pytest.fixture
def vllm() -> Iterator:
    server = vllm_http.VllmHttp()
    yield server
    server.stop()


def client(**fields) -> CompletionClient:
    whole = {"id_token": lambda audience: f"token-for-{audience}", "monotonic": time.monotonic, "timeout_s": 5.0}
    return CompletionClient(**(whole | fields))


def ask(vllm, **fields):
    return client(**fields).complete("gemma", url=vllm.url, audience="https://gemma.run.app", model="gemma")


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "until the end"])
def test_a_completion_is_streamed_timed_and_counted(vllm, chunked: bool) -> None:
    """Text, an end, tokens, speed, and the counter that stands at least as high."""
    vllm.script.pause_s = 0.01
    vllm.script.chunked = chunked
    reply = ask(vllm)
    assert (reply.outcome, reply.tokens, reply.counter) == (Outcome.ANSWERED, 3, 3.0)
    assert 0.01 <= reply.first_token_s < 2
    assert 0 < reply.tokens_per_s <= 2 / 0.01
    post, get = vllm.seen
    assert post[1] == "/v1/chat/completions"
    assert (post[3]["model"], post[3]["stream_options"]) == ("gemma", {"include_usage": True})
    assert get[1] == "/metrics"


def test_the_token_and_the_key_travel_in_headers_of_their_own(vllm) -> None:
    """Cloud Run reads the one, vLLM the other; the token is for the service's own address."""
    ask(vllm, api_key=lambda service: f"key-of-{service}")
    headers = vllm.seen[0][2]
    assert headers["X-Serverless-Authorization"] == "Bearer token-for-https://gemma.run.app"
    assert headers["Authorization"] == "Bearer key-of-gemma"


def test_a_server_that_wants_its_own_key_is_told_apart_from_a_closed_front_door(vllm) -> None:
    """The server says so in JSON, Cloud Run's front end with a page; what we sent is never said back."""
    vllm.script.status, vllm.script.body = 401, '{"error":"Unauthorized: sk-secret-of-ours"}'
    reply = ask(vllm, api_key=lambda _: "sk-secret-of-ours")
    assert (reply.outcome, reply.says) == (Outcome.LOCKED, 'HTTP 401: {"error":"Unauthorized: [our key]"}')
    vllm.script.body = "<html><title>401 token-for-https://gemma.run.app</title></html>"
    reply = ask(vllm)
    assert (reply.outcome, "token-for" in reply.says) == (Outcome.REFUSED, False)


def test_a_model_without_a_chat_template_is_asked_plainly(vllm) -> None:
    """A base model completes a prompt; the refused request ran nothing."""
    vllm.script.no_chat_template = True
    assert ask(vllm).outcome is Outcome.ANSWERED
    assert [path for _, path, _, _ in vllm.seen][:2] == ["/v1/chat/completions", "/v1/completions"]


REASONING = (
    b'data: {"choices": [{"delta": {"reasoning": "let me count"}}]}\n\n'
    b'data: {"choices": [{"delta": {}, "finish_reason": "length"}]}\n\ndata: [DONE]\n\n'
)
CASES = {
    "empty": ({"words": []}, Outcome.WRONG, "empty"),
    "blanks": ({"words": [" ", "\n"]}, Outcome.WRONG, "empty"),
    "no end": ({"finish": None}, Outcome.WRONG, "broke off"),
    "one sign over and over": ({"words": ["!"] * 40}, Outcome.WRONG, "over and over"),
    "broken engine": ({"status": 500, "body": "EngineDeadError"}, Outcome.BROKEN, "EngineDeadError"),
    "no such model": ({"status": 404, "body": "The model `gemma` does not exist"}, Outcome.BROKEN, "does not exist"),
    "not let in": ({"status": 403}, Outcome.REFUSED, "403"),
    "no key": ({"status": 401}, Outcome.REFUSED, "401"),
    "no room": ({"status": 429}, Outcome.REFUSED, "429"),
    "sent elsewhere": ({"status": 302}, Outcome.REFUSED, "302"),
    "an error inside the stream": ({"raw": b'data: {"error": {"message": "boom"}}\n\n'}, Outcome.BROKEN, "boom"),
    "half a JSON": ({"raw": b'data: {"choices": [{"del\n\n'}, Outcome.BROKEN, "no JSON object"),
    "a page": ({"raw": b"<html>Service Unavailable</html>"}, Outcome.WRONG, "broke off"),
    "JSON of another shape": (
        {"raw": b'data: {"choices": [3, {"delta": 4, "text": null}]}\n\n'},
        Outcome.WRONG,
        "broke",
    ),
    "a deep one": ({"raw": b"data: " + b"[" * 200_000 + b"\n\n"}, Outcome.BROKEN, "no JSON object"),
    "reasoning only": ({"raw": REASONING}, Outcome.ANSWERED, "length"),
}


@pytest.mark.parametrize(("script", "outcome", "says"), CASES.values(), ids=CASES)
def test_what_an_answer_is_worth(vllm, script: dict, outcome: Outcome, says: str) -> None:
    """Wrong and broken are failures of the server; refused says nothing about the model."""
    for name, value in script.items():
        setattr(vllm.script, name, value)
    reply = ask(vllm)
    assert (reply.outcome, says in reply.says) == (outcome, True), reply.says


def test_silence_ends_in_time(vllm) -> None:
    """A server that hangs is told apart from one that is broken."""
    vllm.script.hangs = True
    assert ask(vllm, timeout_s=0.2).outcome is Outcome.SILENT


def test_an_endless_stream_ends_in_time(vllm) -> None:
    """Each word comes quickly, the end never does."""
    vllm.script.words = ["la "] * 100_000
    assert ask(vllm, timeout_s=0.2).outcome is Outcome.SILENT


def test_a_line_without_an_end_is_cut(vllm) -> None:
    """No newline ever comes: the size ends it."""
    vllm.script.raw = b"data: " + b"x" * (5 * 2**20)
    assert ask(vllm).outcome is Outcome.SILENT


def test_a_refused_connection_is_broken() -> None:
    """Nobody listens there."""
    server = vllm_http.VllmHttp()
    server.stop()
    assert ask(server).outcome is Outcome.BROKEN


@pytest.mark.parametrize(("cuts", "outcome"), [(1, Outcome.ANSWERED), (2, Outcome.BROKEN)])
def test_a_connection_that_ends_within_an_answer_is_asked_once_more(vllm, cuts: int, outcome: Outcome) -> None:
    """A proxy that hangs up is no verdict on the model; a server that breaks twice is."""
    vllm.script.cuts = cuts
    reply = ask(vllm)
    assert reply.outcome is outcome, reply.says
    assert [path for _, path, _, _ in vllm.seen].count("/v1/chat/completions") == 2
    if outcome is Outcome.ANSWERED:
        assert (reply.tokens, reply.text) == (3, "one, two, three")


def test_without_a_token_nothing_is_sent(vllm) -> None:
    """An identity that cannot be had is no verdict on the model."""

    def none(audience: str) -> str:
        raise DependencyFailed("no ID token was made", why="no identity", hint="run as one")

    assert ask(vllm, id_token=none).outcome is Outcome.REFUSED
    assert vllm.seen == []


def test_counters_are_optional(vllm) -> None:
    """A proxy may hide them."""
    vllm.script.counter = None
    reply = ask(vllm)
    assert (reply.outcome, reply.counter) == (Outcome.ANSWERED, None)


def test_counters_of_several_engines_are_summed() -> None:
    """Data parallel servers have one line each; histograms and gauges are none."""
    text = (
        'vllm:generation_tokens_total{engine="0"} 5.0\nvllm:generation_tokens_total{engine="1"} 1.5e+01\n'
        'vllm:request_generation_tokens_sum{engine="0"} 99.0\nvllm:generation_tokens_created{engine="0"} 1.7e+09\n'
    )
    assert generation_tokens(text) == 20
    assert generation_tokens("up 1\n") is None


def test_a_label_may_hold_what_ends_labels() -> None:
    """A model's or an adapter's name is anything: braces, escaped quotes, a line separator, a blank and a number."""
    for name in ("a}b", "}", r"a\"} 9", "} 1 ", "{}", r"\\", "a\u2028b", "x, y=1"):
        text = f'vllm:generation_tokens_total{{engine="0",model_name="{name}"}} 7.0\n'
        assert generation_tokens(text) == 7, name
    assert generation_tokens('vllm:generation_tokens_total{model_name="a} 9\n') is None


def test_a_value_that_is_no_number_is_passed_over() -> None:
    """Nothing on the way of a verification raises; what cannot be read is not there."""
    for value in ("--", "1e", "NaN", "+Inf", "1_0", "", "seven"):
        assert generation_tokens(f"vllm:generation_tokens_total {value}\n") is None
