"""What a client wrote into the server's log: a prompt, a path, a model's name are no word of the server.

Whoever may send a request could otherwise write a failure into the log and have it classified, and acted on.
"""

import re
from collections.abc import Sequence

from agent.failures.text.log_text import has_head
from agent.failures.text.streams import body_of, server_of

MOST_PROMPT_LINES = 200
"""A logger that writes a prompt with its line breaks is read on no further than this."""

_RECEIVED = "Received request "
_PROMPT = " prompt: "
_PROMPT_ENDS = ", params: "
_BODY_WORDS = ("content", "prompt", "arguments", "reasoning", "refusal", "output_text")
CLIENT_MARKS = (
    *(b"http/", b"http ", b" request", b"request ", b"the model ", b"logger.py:", b"generated response", b"prompt: "),
    *(b"reqinput(", b"prompt='", b'prompt="', b"get ", b"post ", b"put ", b"patch ", b"delete ", b"head ", b"options "),
    *(b"input_value=", b"'input'", b'"input"', b"generateparameters", b"unknown model", b"lora_name"),
    *(b"passed in model=", b", url=", b"for url: ", b"with url: ", b"method="),
    *(b"jinja2.exceptions", b"template error"),
    *(b"get] ", b"post] ", b"put] ", b"head] "),
    *(b'prompt=\\"', b"prompt:'", b'prompt:"', b'prompt:\\"', b'"text"', b"'text'"),
    *(word.encode() + quote for word in _BODY_WORDS for quote in (b"'", b'"', b'\\"')),
)
"""In lower case; a line without any of these holds no word of a client that :func:`without_client_words` knows."""

METHOD_KEYS = frozenset({"method", "http_method", "httpmethod", "request_method", "verb"})
"""Keys of an access log, in lower case, beside which one of the next holds what the client asked for."""

PATH_KEYS = frozenset({"path", "uri", "url", "request_uri", "requesturi", "requesturl", "http_path", "target", "route"})

CLIENT_KEYS = frozenset(
    {"useragent", "user_agent", "user-agent", "http_user_agent", "referer", "referrer", "http_referer"}
)
"""Keys of access logs, in lower case, whose value is a request header as the client sent it."""

SPOKEN_KEYS = frozenset({"prompt", "reasoning_content", "refusal", "output_text", "generated_text"})
"""Keys, in lower case, whose value is what people and models say."""

BODY_KEYS = frozenset({"content", "text", "arguments", "reasoning"})
"""The same in the body of a request or an answer; elsewhere a logger may call its own words so."""

BODY_SIGNS = frozenset({"role", "finish_reason", "choices", "messages", "tool_calls", "delta"})
"""Keys of which a request or an answer has one at least."""

_GONE = "..."
_ROUTE = re.compile(
    r"v[1-3]|api|chat|completions|models|embeddings|responses|messages|generate|infer|predict|predictions|invocations"
    r"|tokenize|detokenize|score|rerank|pooling|classify|audio|transcriptions|translations|files|batches|render|tags"
    r"|(?:un)?load_lora_adapter|sleep|wake_up|is_sleeping|load|server_info|version|metrics|ping|status|_?health|healthz"
    r"|livez?|readyz?|startup|docs|openapi\.json|favicon\.ico|robots\.txt|index\.html|"
)
"""Parts of the paths that model servers, probes and crawlers ask for."""
_ACCESS = re.compile(r'"([A-Z]{3,7}) ([^"]{0,4096}?) (HTTP/\d(?:\.\d)?)"')
_SUMMARY = re.compile(r"(HTTP [A-Z?]{1,7}) (\S{0,4096}) (status \d{0,3}\b)")
_COMBINED = re.compile(
    r'(HTTP/\d(?:\.\d)?" \d{3}(?: [\w{}.,=-]{1,80}){0,4})'
    r'(?:(?: -| \d{1,12}(?:\.\d{1,6})?){0,6} "[^"\n]{0,8192}"){1,400}'
)
"""Behind a status: sizes, and in quotes the referrer, user agent, host and who was asked upstream."""
_ROUTED = re.compile(
    r"\b(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)(\]? {1,8}\"?)"
    r"(?:https?://[^/\s\"]{1,200}(?=/[^\s\"]{0,4096}(?<!:)(?:[\s\"]|$)))?(/[^\s\"]{0,4096})"
)
"""No address before a colon: that is one which somebody of this machine asked, and could not reach."""
_OF_LOGFMT = re.compile(r"(\b(?:path|uri|url|request_uri)=\"?)(/[^\s\"]{0,4096})")
_INPUT = re.compile(r"(\binput_value=)(?!\.\.\.,? ?).*?(, input_type=|$)")
"""What pydantic shows of the value that it refuses."""
_INPUT_OF_BODY = re.compile(
    r"""(["']type["']: ?["'][a-z_.]{1,60}["'], ?["'](?:loc|msg)["']: .{0,400}?["']input["']:)(?! ?\.\.\.).*"""
)
_PARAMETERS = re.compile(r"(GenerateParameters \{ )(?!\.\.\.).*(\}\})")
"""Of Text Generation Inference, among them the words at which a client wants it to stop."""
_IGNORED = re.compile(r"(present in the request but ignored: )(?!\.\.\.).*")
_NAMED = re.compile(
    r"(\bunknown model:? ['\"]|\blora_name=['\"])(?!\.\.\.['\"]).{0,400}?(['\"])"
    r"|(name passed in model=)(?!\.\.\. ).*?(\. |$)"
)
_OF_TEMPLATE = re.compile(r"((?:jinja2\.exceptions\.|[Tt]emplate error).{0,80}?['\"])(?!\.\.\.['\"]).*(?=['\"])")
"""What a template says of a request that it refuses, from the first quote to the last: names and roles among it."""
_HUBS = ("huggingface", "hf-mirror", "hf.co", "modelscope", "/api/models/", "googleapis.com", "amazonaws.com")
_OF_A_MODEL = re.compile(r"/resolve/[\w.-]{1,80}/\S{0,200}\.(?:json|safetensors|txt|model|py|bin)\b")
_FETCHED = re.compile(
    r"(, url=(?:URL\()?['\"]https?://[^/'\"\s]{1,200}/)(?!\.\.\.['\"])[^'\"\s]*"
    r"|( (?:for|with) url: (?:https?://[^/\s]{1,200})?/)(?!\.\.\.(?:\s|$))\S*"
)
"""Where a client's picture was asked for; of the hubs the path names the model."""
_REQUEST = re.compile(
    r"\b((?:Received|Added|Aborted|Aborting|Finished) request(?:\(s\))?|Generated response"
    r"|Request(?= .{1,200} details: ))(?: ((?:chatcmpl|cmpl|embd|score|rerank|pool|classify|resp)\b-?)?.*|$)"
)
_OF_SGLANG = re.compile(r"(: obj=\w{1,40}ReqInput\().*")
"""How SGLang logs a request, and its answer behind that; the line breaks of both are spelled out."""
_REQUEST_LOGGER = re.compile(
    r"((?:INFO|DEBUG)\b.{0,60}\blogger\.py:\d{1,5}\] )(?!Received request|Generated response).*"
)
_BODY = re.compile(
    r"""((?:\\?["'](?:content|prompt|arguments|reasoning(?:_content)?|refusal|output_text)\\?["']|["']type["']:\s?["']text["'],\s?["']text["']|\bprompt):\s?|\bprompt=)"""
    r"""(?:\\"(?:[^"\\]|\\[^"])*(?:\\"|$)|"(?:[^"\\]|\\.)*(?:"|$)|'(?:[^'\\]|\\.)*(?:'|$))"""
)
_ORIGIN = re.compile(r"^\w{2,8}://[^/?]*")
_MODEL = re.compile(r"(The model [`'\"])(.{0,400}?)([`'\"] does not exist)")


def without_client_words(line: str) -> str:
    """The line with the words of clients taken out; a line without any stays as it is.

    Out go the prompts, parameters and identifiers that the loggers of vLLM, SGLang, LMDeploy and Text Generation
    Inference write, referrer and user agent of an access log, what is no known route in a path, the names of models
    and adapters that nobody serves, values that are refused, addresses of pictures, and what people and models say in
    the body of a request or an answer.
    """
    if "logger.py:" in line:
        line = _REQUEST_LOGGER.sub(rf"\1{_GONE}", line)
    if "ReqInput(" in line:
        line = _OF_SGLANG.sub(rf"\1{_GONE}", line)
    if "equest" in line or "Generated response" in line:
        line = _REQUEST.sub(lambda found: f"{found[1]} {found[2] or ''}{_GONE}", line)
    if "HTTP" in line:
        line = _ACCESS.sub(lambda found: f'"{found[1]} {known_route(found[2])} {found[3]}"', line)
        line = _SUMMARY.sub(lambda found: f"{found[1]} {known_route(found[2])} {found[3]}", line)
        line = _COMBINED.sub(r"\1", line)
    line = _ROUTED.sub(lambda found: f"{found[1]}{found[2]}{known_route(found[3])}", line)
    if "method=" in line:
        line = _OF_LOGFMT.sub(lambda found: f"{found[1]}{known_route(found[2])}", line)
    if '":' in line or "':" in line or "prompt:" in line or "prompt=" in line:
        line = _BODY.sub(rf"\1{_GONE}", line)
    if "does not exist" in line:
        line = _MODEL.sub(rf"\1{_GONE}\3", line)
    return _without_refused_values(line)


def _without_refused_values(line: str) -> str:
    """The line without the values of a request that was refused, or of which some were ignored, or not to be had."""
    if "input_value=" in line:
        line = _INPUT.sub(rf"\1{_GONE}\2", line)
    if "input" in line:
        line = _INPUT_OF_BODY.sub(rf"\1{_GONE}", line)
    if "GenerateParameters" in line and "}}" in line:
        line = _PARAMETERS.sub(rf"\1{_GONE}\2", line)
    if "but ignored: " in line:
        line = _IGNORED.sub(rf"\1{_GONE}", line)
    if "jinja2.exceptions" in line or "emplate error" in line:
        line = _OF_TEMPLATE.sub(rf"\1{_GONE}", line)
    if "url" in line and not (any(hub in line for hub in _HUBS) or _OF_A_MODEL.search(line)):
        line = _FETCHED.sub(lambda found: f"{found[1] or found[2]}{_GONE}", line)
    return _NAMED.sub(lambda found: f"{found[1] or found[3]}{_GONE}{found[2] or found[4]}", line)


def without_prompts(lines: Sequence[str]) -> Sequence[str]:
    """The lines with those made empty over which a logger wrote the prompt of one request.

    The prompt opens where a request is received and ends where its parameters stand, at most ``MOST_PROMPT_LINES``
    below. A line in between that has a head of its own, another server's name or a level, is none of the prompt.
    """
    if not any(_PROMPT in line for line in lines):
        return lines
    kept = list(lines)
    opened: int | None = None
    for index, line in enumerate(lines):
        if opened is not None and (_PROMPT_ENDS in line or index - opened > MOST_PROMPT_LINES):
            if index - opened <= MOST_PROMPT_LINES:
                kept[opened + 1 : index + 1] = [
                    _of_prompt(lines[opened], said) for said in lines[opened + 1 : index + 1]
                ]
            opened = None
        elif _PROMPT in line and _RECEIVED in line and _PROMPT_ENDS not in line:
            opened = index
    return kept


def _of_prompt(opening: str, line: str) -> str:
    """Empty for a line that goes on with the prompt; as it is where another program or record has it."""
    body = body_of(line)
    same = server_of(line) == server_of(opening) and (body == line) == (body_of(opening) == opening)
    return "" if same and not has_head(body) else line


def known_route(target: str) -> str:
    """The path of a request as far as its parts are routes that are known; no host, no query."""
    path = _ORIGIN.sub("", target).split("?", 1)[0]
    parts = path.split("/")[1:]
    known = 0
    while known < len(parts) and _ROUTE.fullmatch(parts[known]):
        known += 1
    return "/" + "/".join([*parts[:known], *([_GONE] if known < len(parts) else [])])
