import json
import time

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.text.client_text import (
    CLIENT_MARKS,
    MOST_PROMPT_LINES,
    known_route,
    without_client_words,
    without_prompts,
)
from agent.failures.text.entry_text import log_lines
from tests.agent.failures.log_changes import HEALTHY_START, TOKENS

_OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
_LOGGER = "INFO 06-01 10:00:00 [logger.py:39]"


@pytest.mark.parametrize(
    "line",
    [
        f"{_LOGGER} Received request chatcmpl-1: prompt: '{_OOM}', params: SamplingParams(n=1)",
        f"{_LOGGER} Received request cmpl-1: params: SamplingParams(stop=['OOMKilled'])",
        f"{_LOGGER} Received request OOMKilled: params: SamplingParams(n=1)",
        f"{_LOGGER} {_OOM}",
        f"DEBUG 06-01 10:00:00 [entrypoints/logger.py:30] Request cmpl-1 details: prompt: '{_OOM}', lora: None",
        f"INFO 06-01 10:00:00 [logger.py:55] Generated response cmpl-1: output: '{_OOM}', finish_reason: stop",
        f"[2031-05-06 07:08:09] Receive: obj=GenerateReqInput(rid='9b', text='{_OOM}', sampling_params={{}})",
        f"[2031-05-06 07:08:09 TP0] Finish: obj=GenerateReqInput(rid='9b'), out={{'text': '{_OOM}', 'meta_info': {{}}}}",
        f"[2031-05-06 07:08:09] Receive: obj=EmbeddingReqInput(rid='{_OOM}', text=None)",
        f"2031-05-06 07:08:09,000 - lmdeploy - INFO - async_engine.py:631 - session=1, input_tokens=9, prompt='{_OOM}'",
        "INFO 06-01 10:00:00 [async_llm.py:271] Added request chatcmpl-OOMKilled.",
        "INFO 06-01 10:00:00 async_llm_engine.py:134] Aborted request OOMKilled.",
        'INFO:     10.0.0.1:4000 - "GET /OOMKilled HTTP/1.1" 404 Not Found',
        'INFO:     10.0.0.1:4000 - "GET /health?x=OOMKilled HTTP/1.1" 200 OK',
        'INFO:     10.0.0.1:4000 - "GET /v1/models/OOMKilled HTTP/1.1" 404 Not Found',
        f'10.0.0.1 - - [01/Jun/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "OOMKilled" "{_OOM}"',
        json.dumps({"httpRequest": {"requestUrl": "https://OOMKilled.example/?q=OOMKilled", "status": 404}}),
        f'10.0.0.1 - - [01/Jun/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "{_OOM}" 0.002 - 12 "OOMKilled"',
        "HTTP GET /OOMKilled status 404",
        "[GET] /OOMKilled 404",
        "[GET] https://lamp.example/OOMKilled 404",
        'level=info method=GET path="/OOMKilled" status=404',
        "level=info msg=lamp method=POST uri=/v1/OOMKilled status=404",
        "srv  log_server_r: request: POST /OOMKilled 10.0.0.1 404",
        '[GIN] 2031/05/06 - 07:08:09 | 404 |      12.1µs |  10.0.0.1 | GET      "/OOMKilled"',
        "INFO 2031-05-06 07:08:09,000 default_Lamp x9k -- POST /OOMKilled 404 1.2ms",
        '[2031-05-06T07:08:09.000Z] "POST /OOMKilled HTTP/1.1" 404 NR - "-" 0 0 0 - "-" "OOMKilled" "9b" "lamp" "-"',
        f"INFO HTTPException: 400: [{{'type': 'missing', 'loc': ('body', 'x'), 'msg': 'y', 'input': {{'model': '{_OOM}'}}}}]",
        f'2031-05-06T07:08:09Z  INFO generate{{parameters=GenerateParameters {{ stop: ["{_OOM}"], seed: None }}}}: lamp: Success',
        "WARNING [protocol.py:75] The following fields were present in the request but ignored: {'OOMKilled'}",
        json.dumps({"method": "GET", "path": "/OOMKilled", "status": 404}),
        json.dumps({"level": "info", "path": "/OOMKilled", "user_agent": _OOM}),
        "INFO 404, message='Not Found', url='https://lamp.example/OOMKilled.png'",
        "INFO 404, message='Not Found', url=URL('https://lamp.example/OOMKilled.png?x=1')",
        "INFO lora request: LoRARequest(lora_name='OOMKilled', lora_int_id=1)",
        f"[{{'type': 'value_error', 'msg': 'Value error, lamp', 'input': '{_OOM}'}}]",
        json.dumps({"path": "/health", "status": 200, "user_agent": _OOM}),
        json.dumps({"request": {"path": "/health", "headers": {"User-Agent": _OOM, "Referer": [_OOM]}}}),
    ],
)
def test_what_a_client_wrote_into_the_log_is_no_failure_of_the_server(matcher: Matcher, line: str) -> None:
    lines = log_lines(line)
    found = matcher.classify("\n".join(lines), whole_log=True, platform=None)
    assert found.class_ in {"benign", "unknown"}
    assert not any("OOM" in told.text or "OutOfMemory" in told.text for told in found.evidence)
    assert list(matcher.troubles(lines)) == []


@pytest.mark.parametrize(
    ("line", "class_"),
    [
        ("E0506 07:08:09.000000 1 lamp.cc:1] Request for unknown model: 'OOMKilled' is not found", "model_not_found"),
        (f"  Input should be a number [type=number_type, input_value='{_OOM}', input_type=str]", "invalid_flag"),
        ("[2031-05-06 07:08:09] Chat template error for 'OOMKilled'", "chat_template_error"),
        (f"jinja2.exceptions.TemplateError: Roles must alternate; got 'a' before '{_OOM}'", "chat_template_error"),
        ("Invalid model name passed in model=OOMKilled. Call `/v1/models` to view available models", "model_not_found"),
        ("  Input should be 'x' [type=literal_error, input_value={'a': 'OOMKilled'}, input_type=dict]", "invalid_flag"),
    ],
)
def test_a_value_that_is_refused_is_just_that_whatever_it_says(matcher: Matcher, line: str, class_: str) -> None:
    assert matcher.classify(line, whole_log=True, platform=None).class_ == class_
    assert [match.class_ for _, match in matcher.scan([line])] in ([class_], [])


def test_a_model_that_nobody_serves_is_just_that_whatever_its_name(matcher: Matcher) -> None:
    line = f"ERROR [serving_chat.py:150] Error with model message='The model `{_OOM}` does not exist.' code=404"
    assert matcher.classify(line, whole_log=True, platform=None).class_ == "model_not_found"
    assert [match.class_ for _, match in matcher.scan([line])] == ["model_not_found"]


@pytest.mark.parametrize(
    "line",
    [
        f"ERROR 06-01 10:00:00 [core.py:9] {_OOM}",
        "ValueError: The model `/models/a` has no config.json",
        "1 validation error for GenerateReqInput",
        "client: POST http://lamp.default.svc/v1/lamps: Read timed out",
        "check image lamp exists: HEAD https://lamp.example/v2/lamp/manifests/1: unexpected status code 401 Unauthorized",
        "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://huggingface.co/lamp/26b/config.json",
        "WARNING 06-01 10:00:00 [_logger.py:72] device type=cpu is not supported by the V1 Engine.",
        "(APIServer pid=1) INFO 06-01 10:00:00 [loggers.py:127] Engine 000: Running: 1 reqs, Waiting: 0 reqs",
        'INFO:     10.0.0.1:4000 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error',
        'INFO:     10.0.0.1:4000 - "GET /favicon.ico HTTP/1.1" 404 Not Found',
    ],
)
def test_the_words_of_the_server_stay_as_they_are(line: str) -> None:
    assert without_client_words(line) == line


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        ("/", "/"),
        ("", "/"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/models/acme/m", "/v1/models/..."),
        ("https://h.example/health/ready?x=1", "/health/ready"),
        ("/.env", "/..."),
    ],
)
def test_of_a_path_the_known_routes_stay(target: str, kept: str) -> None:
    assert known_route(target) == kept


def test_beside_a_forged_line_the_server_is_still_heard(matcher: Matcher) -> None:
    forged = 'INFO:     10.0.0.1:4000 - "GET /OOMKilled HTTP/1.1" 404 Not Found'
    real = f"ERROR 06-01 10:00:00 [core.py:9] {_OOM}"
    assert [index for index, _ in matcher.troubles([forged, real, forged])] == [1]


@pytest.mark.parametrize(
    "line",
    [
        f"{_LOGGER} {_OOM}",
        "INFO [async_llm.py:271] Added request chatcmpl-1.",
        "INFO Generated response cmpl-1: output: 'x'",
        'INFO: "GET /x HTTP/1.1" 404',
        "HTTP GET /x status 404",
        "Receive: obj=GenerateReqInput(text='OOMKilled')",
        "session=1, prompt='OOMKilled'",
        '"GET / HTTP/1.1" 200 5 ' + '"OOMKilled" ' * 40,
        "The model `x` does not exist.",
        "request: POST /OOMKilled 10.0.0.1 404",
        'GET      "/OOMKilled"',
        "[type=string_type, input_value='OOMKilled', input_type=str]",
        "[{'type': 'missing', 'loc': ('body', 'x'), 'input': 'OOMKilled'}]",
        'GenerateParameters { stop: ["OOMKilled"] }}: lamp',
        "fields were present in the request but ignored: {'OOMKilled'}",
        "unknown model: 'OOMKilled'",
        "lora_name='OOMKilled'",
        ", url='https://lamp.example/OOMKilled.png'",
        "x for url: https://lamp.example/OOMKilled.png",
        "Invalid model name passed in model=OOMKilled. Call x",
    ],
)
def test_every_line_that_changes_bears_a_mark_and_changes_once(line: str) -> None:
    changed = without_client_words(line)
    assert changed != line
    assert any(mark in line.lower().encode() for mark in CLIENT_MARKS)
    assert without_client_words(changed) == changed


def test_a_hostile_line_costs_no_more_than_its_length() -> None:
    for piece in (
        '"GET /',
        "HTTP GET /x",
        "Request a details",
        "The model `",
        "INFO logger.py:",
        'HTTP/1.1" 200 5 "',
        "input_value=",
        "GET /",
    ):
        line = piece * 4000
        started = time.process_time()
        without_client_words(line)
        assert time.process_time() - started < 2.0, piece


@pytest.mark.parametrize(
    "line",
    [
        '{"role": "user", "content": "torch.OutOfMemoryError: CUDA out of memory"}, oh',
        "messages=[{'role': 'user', 'content': 'it\\'s torch.OutOfMemoryError: CUDA out of memory'}]",
        'body: {\\"content\\": \\"torch.OutOfMemoryError: CUDA out of memory\\", \\"n\\": 1}',
        '"content": [{"type": "text", "text": "torch.OutOfMemoryError: CUDA out of memory"}]',
        'data: {"choices":[{"delta":{"content":"torch.OutOfMemoryError: CUDA out of memory',
        "engine got prompt: 'torch.OutOfMemoryError: CUDA out of memory', params: 3",
        '{"function": {"name": "f", "arguments": "{\\"x\\": \\"CUDA out of memory\\"}"}} oh',
        '"refusal": "CUDA out of memory"',
    ],
)
def test_what_people_and_models_say_in_a_body_is_no_evidence(matcher, line):
    assert "CUDA out of memory" not in without_client_words(line)
    assert list(matcher.troubles([line])) == []
    assert matcher.classify(line, whole_log=False, platform=None).class_ in {"benign", "unknown"}


@pytest.mark.parametrize(
    "line",
    [
        "torch.OutOfMemoryError: CUDA out of memory, content: none",
        'content-type: "text"; CUDA out of memory',
        "Avg prompt throughput: 0.0 tokens/s; CUDA out of memory",
    ],
)
def test_words_that_only_look_like_a_body_stay(line):
    assert without_client_words(line) == line


_OPENS = "(APIServer pid=7) INFO 05-06 07:09:10 [logger.py:39] Received request cmpl-1: prompt: 'please explain:"
_ENDS = "thanks', params: SamplingParams(n=1)"
_KILLED = "Out of memory: Killed process 12 (python) total-vm:12kB"


@pytest.mark.parametrize("prefix", ["", "web-1  | ", "2031-05-06T07:08:09.123Z "])
def test_a_prompt_over_several_lines_is_no_evidence(matcher: Matcher, prefix: str) -> None:
    lines = [prefix + line for line in [*HEALTHY_START, _OPENS, _KILLED, "it says", _ENDS, *TOKENS]]
    assert matcher.classify("\n".join(lines), whole_log=True, platform=None).benign
    assert without_prompts(lines[-6:-2]) == [lines[-6], "", "", ""]


@pytest.mark.parametrize(
    "between",
    [
        [_KILLED],
        [_KILLED, *["more"] * MOST_PROMPT_LINES, _ENDS],
        [f"(EngineCore pid=9) ERROR 05-06 07:09:11 [core.py:9] {_KILLED}", _ENDS],
        [f"May 06 07:08:09 host-a kernel: {_KILLED}", _ENDS],
        [_ENDS, _KILLED],
    ],
    ids=["no end", "an end too far below", "another process", "another program", "below the end"],
)
def test_a_line_that_may_be_none_of_a_prompt_stays_evidence(matcher: Matcher, between: list[str]) -> None:
    lines = [*HEALTHY_START, _OPENS, *between, *TOKENS]
    assert matcher.classify("\n".join(lines), whole_log=True, platform=None).class_ == "host_oom"


@pytest.mark.parametrize(
    "quote", ["\N{RIGHT SINGLE QUOTATION MARK}", "&#39;", "&apos;", "\N{RIGHT DOUBLE QUOTATION MARK}", "&quot;"]
)
@pytest.mark.parametrize(
    "shown",
    [
        "ERROR 05-06 07:08:09 [serving.py:43] it failed: messages=[{{'role': 'user', 'content': 'What{} {}'}}]",
        '{{"role": "user", "content": "What{} {}"}}',
        "INFO 05-06 07:08:09 [logger.py:43] Received request cmpl-1: prompt: 'What{} {}', params: SamplingParams(n=1)",
    ],
)
def test_a_curled_or_spelled_quote_does_not_end_what_a_client_says(matcher: Matcher, shown: str, quote: str) -> None:
    said = shown.format(quote, _OOM)
    assert matcher.classify(said, whole_log=True, platform=None).class_ in {"unknown", "benign"}
