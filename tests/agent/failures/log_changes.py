"""Changes of a log that change nothing about what went wrong: prefixes, colours, times, and lines around it."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html import escape

Change = Callable[[str], str]

_BEGIN = datetime(2031, 5, 6, 7, 8, 9, 123_000)  # noqa: DTZ001 - a time in a log, often without a zone

BANNER = [
    "(APIServer pid=7) INFO 05-06 07:08:01 [utils.py:299]        █     █     █▄   ▄█",
    "(APIServer pid=7) INFO 05-06 07:08:01 [utils.py:299]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.19.1",
    "(APIServer pid=7) INFO 05-06 07:08:01 [utils.py:299]   █▄█▀ █     █     █     █  model   example/model",
    "(APIServer pid=7) INFO 05-06 07:08:01 [api_server.py:1] vLLM API server version 0.19.1",
    "(APIServer pid=7) INFO 05-06 07:08:01 [utils.py:233] non-default args: {'model': 'example/model', 'port': 8000}",
]
ENGINE = [
    "(EngineCore pid=71) INFO 05-06 07:08:20 [core.py:105] Initializing a V1 LLM engine (v0.19.1) with config: model='example/model'",
    "(EngineCore pid=71) INFO 05-06 07:08:21 [gpu_model_runner.py:4] Starting to load model example/model...",
    "Loading safetensors checkpoint shards: 100% Completed | 2/2 [00:09<00:00,  4.61s/it]",
    "(EngineCore pid=71) INFO 05-06 07:08:31 [gpu_model_runner.py:4] Model loading took 15.62 GiB memory and 9.4 seconds",
    "(EngineCore pid=71) INFO 05-06 07:08:51 [gpu_worker.py:4] Available KV cache memory: 3.97 GiB",
    "(EngineCore pid=71) INFO 05-06 07:08:51 [kv_cache_utils.py:1] GPU KV cache size: 32,704 tokens",
]
READY = [
    "(APIServer pid=7) INFO:     Started server process [7]",
    "(APIServer pid=7) INFO:     Waiting for application startup.",
    "(APIServer pid=7) INFO:     Application startup complete.",
]
ACCESS = [
    '(APIServer pid=7) INFO:     10.0.0.9:41002 - "GET /health HTTP/1.1" 200 OK',
    '(APIServer pid=7) INFO:     10.0.0.9:41004 - "GET /metrics HTTP/1.1" 200 OK',
    'INFO:     10.0.0.9:41006 - "GET /v1/models HTTP/1.1" 200 OK',
    'INFO:     10.0.0.9:41006 - "GET /health HTTP/1.1" 200 OK',
]
TOKENS = [
    '(APIServer pid=7) INFO:     10.0.0.9:41010 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "(APIServer pid=7) INFO 05-06 07:09:10 [loggers.py:257] Engine 000: Avg prompt throughput: 12.0 tokens/s, Avg generation throughput: 31.2 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 12.4%, Prefix cache hit rate: 0.0%",
]
HEALTHY_START = [*BANNER, *ENGINE, *READY, *ACCESS, *TOKENS]

_COLOURS = {"ERROR": 31, "WARNING": 33, "INFO": 32, "CRITICAL": 35}


def prefixed(prefix: str) -> Change:
    """Each line behind the same words, as docker compose, kubectl, stern and journald write them."""
    return lambda text: "\n".join(prefix + line for line in text.split("\n"))


def timed(write: Callable[[datetime], str]) -> Change:
    """Each line behind a time, one second after the line before."""
    return lambda text: "\n".join(
        write(_BEGIN + timedelta(seconds=number)) + line for number, line in enumerate(text.split("\n"))
    )


def coloured(text: str) -> str:
    """Levels in colour, and each line's head dimmed, as vLLM and compose do on a terminal."""
    for word, colour in _COLOURS.items():
        text = text.replace(word, f"\x1b[{colour}m{word}\x1b[0m")
    return "\n".join(f"\x1b[0;36m{line[:1]}\x1b[0m{line[1:]}" for line in text.split("\n"))


def before(lines: list[str]) -> Change:
    """Other lines stand before the log."""
    return lambda text: "\n".join([*lines, text])


def after(lines: list[str]) -> Change:
    """Other lines follow the log."""
    return lambda text: "\n".join([text, *lines])


def beside(prefix: str, lines: list[str], *, own: str) -> Change:
    """The lines of another instance stand between those of this one, and after them."""

    def changed(text: str) -> str:
        mine = [own + line for line in text.split("\n")]
        others = [prefix + line for line in lines]
        mixed = [line for pair in zip(mine, others, strict=False) for line in pair]
        least = min(len(mine), len(others))
        return "\n".join([*mixed, *mine[least:], *others[least:]])

    return changed


def both(first: Change, second: Change) -> Change:
    """Two changes, one after the other."""
    return lambda text: second(first(text))


_PROCESS = r"(?:\(\w{1,40} pid=\d{1,10}\) ?)?"
FELL_BACK = "WARNING 05-06 07:08:09 [custom_all_reduce.py:144] Custom allreduce is disabled, falling back to NCCL"
ANOTHER_ENGINE = TOKENS[1].replace("Engine 000", "Engine 001")


def warned(text: str) -> str:
    """A harmless warning of the same process stands directly above each traceback."""
    return re.sub(rf"(?m)^({_PROCESS})(?=[^\n]{{0,80}}Traceback \()", rf"\g<1>{FELL_BACK}\n\g<1>", text)


def beside_engine(text: str) -> str:
    """Another engine of the same server, without a queue, writes its statistics below each statistics line and at last.

    The last ones stand so far below that they are no sign of what the server did above them. SGLang has no such engines.
    """
    if "server_args=ServerArgs(" in text:
        return text
    between = re.sub(r"(?m)^.*\b(?:Waiting|Pending): \d.*$", rf"\g<0>\n{ANOTHER_ENGINE}", text)
    return "\n".join([between, *ACCESS, ANOTHER_ENGINE, ANOTHER_ENGINE])


_COMPOSE = "web-1  | "

CHANGES: dict[str, Change] = {
    "compose": prefixed(_COMPOSE),
    "kubectl --prefix": prefixed("[pod/llm-7d9f8b6c5-x2x9k/vllm] "),
    "stern": prefixed("llm-7d9f8b6c5-x2x9k vllm "),
    "journal": prefixed("May 06 07:08:09 gpu-host-3 vllm[4242]: "),
    "journal without a time": prefixed("gpu-host-3 vllm[4242]: "),
    "cri": timed(lambda at: f"{at:%Y-%m-%dT%H:%M:%S}.123456789Z stdout F "),
    "colours": coloured,
    "colours in compose": both(coloured, prefixed("\x1b[36mweb-1  |\x1b[0m ")),
    "spelled for a page": escape,
    "curled quotes": lambda text: text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}"),
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "iso time": timed(lambda at: f"{at:%Y-%m-%dT%H:%M:%S}.123456789Z "),
    "syslog time": timed(lambda at: f"{at:%b %d %H:%M:%S} "),
    "time in brackets": timed(lambda at: f"[{at:%Y-%m-%d %H:%M:%S},123] "),
    "epoch": timed(lambda at: f"{at.timestamp():.6f} "),
    "banner before": before(BANNER),
    "banner before, compose": both(before(BANNER), prefixed(_COMPOSE)),
    "access lines after": after(ACCESS),
    "statistics of another engine": beside_engine,
    "statistics of another engine, compose": both(beside_engine, prefixed(_COMPOSE)),
    "a harmless warning above": before([FELL_BACK]),
    "a harmless warning above each traceback": warned,
    "banner before, access lines after": both(before(BANNER), after(ACCESS)),
    "banner, access lines, time": both(
        both(before(BANNER), after(ACCESS)), timed(lambda at: f"{at:%Y-%m-%dT%H:%M:%S}.123456789Z ")
    ),
    "access lines of another": both(prefixed(_COMPOSE), after(["web-2  | " + line for line in ACCESS])),
    "tokens of another": both(prefixed(_COMPOSE), after(["web-2  | " + line for line in TOKENS])),
    "another starts well": both(prefixed(_COMPOSE), after(["web-2  | " + line for line in HEALTHY_START])),
    "another pod, this one bare": after(["[pod/llm-b/vllm] " + line for line in [*READY, *ACCESS, *TOKENS]]),
    "banner, then another ready": both(
        both(before(BANNER), prefixed(_COMPOSE)), after(["web-2  | " + line for line in [*READY, *TOKENS]])
    ),
    "a new start after": after([*BANNER, *ENGINE]),
    "banner before, a new start after": both(before(BANNER), after([*BANNER, *ENGINE])),
    "a new start that gets ready": after([*BANNER, *ENGINE, *READY, *ACCESS]),
    "banner before, new start ready": both(before(BANNER), after([*BANNER, *ENGINE, *READY, *ACCESS])),
    "replicas interleaved": beside("web-2  | ", HEALTHY_START, own=_COMPOSE),
    "pods interleaved": beside("[pod/llm-b/vllm] ", HEALTHY_START, own="[pod/llm-a/vllm] "),
    "journals interleaved": beside(
        "May 06 07:08:09 gpu-host-4 vllm[7]: ", HEALTHY_START, own="May 06 07:08:09 gpu-host-3 vllm[7]: "
    ),
}
"""By name; none of them says anything of the server in question but that it went on being asked, or began anew."""
