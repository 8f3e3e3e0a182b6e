"""The words of a structured log record: a LogEntry, a Kubernetes event or pod, any logger's JSON, as lines of text."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import re2

from agent.failures.text.client_text import (
    BODY_KEYS,
    BODY_SIGNS,
    CLIENT_KEYS,
    METHOD_KEYS,
    PATH_KEYS,
    SPOKEN_KEYS,
    known_route,
)
from agent.failures.text.log_text import clean, records_of
from agent.failures.text.oldest_first import oldest_entries_first, oldest_first

_INSTANCE = re.compile(r'"(?:instanceId|pod_name|instance_id)": ?"([^"]{1,200})"')
MAX_DEPTH = 32
MAX_JSON_CHARS = 2_000_000

_MESSAGE_KEYS = (
    "message",
    "msg",
    "log",
    "Log_s",
    "Log",
    "Msg",
    "text",
    "textPayload",
    "MESSAGE",
    "line",
    "event",
    "body",
)
_DECODE = json.JSONDecoder().raw_decode
_JSON_BLANKS = " \t\n\r"
_RECORD_START = r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d"
_LINE_BY_LINE = re2.compile(rf"{_RECORD_START}.*{_RECORD_START}|(?:^|\n)[^!-~\n]+\{{".encode())
"""A line that holds two records of vLLM's logger, or a brace behind blanks; linear time on any text."""

_PLAIN = (str, int, float)
_REASON_KEYS = ("reason", "Reason_s", "Reason", "error", "exception", "stack_trace", "detail", "details", "err")
_LEVELS = ("severity: ", "level: ", "levelname: ")
"""What a collector writes of the stream that a line came by: all that stands on standard error is an error to some."""

_OWN_LEVEL = re.compile(r"(?:\([^()\n]{1,80}\) ?){0,3}(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[ :].*")
"""One line that begins with a level, behind the names of its processes."""

_PATH = re.compile(r"(?:\w{2,8}://[^\s/]{1,200})?/\S{0,4096}")

_ENVELOPE = frozenset({"textPayload", "jsonPayload", "protoPayload", "httpRequest"})
_HEAD_KEYS = {key: place for place, key in enumerate((*_REASON_KEYS, *_MESSAGE_KEYS))}
_SPOKEN = CLIENT_KEYS | SPOKEN_KEYS
_SPOKEN_IN_A_BODY = _SPOKEN | BODY_KEYS


def entry_lines(entry: Mapping[str, Any]) -> list[str]:
    """The text of one structured record, as lines without terminal colours.

    Args:
        entry: As ``json`` reads it: a Cloud Logging LogEntry (textPayload, jsonPayload or protoPayload, httpRequest),
            a Kubernetes event or pod, a Container Apps row, or any JSON object that a logger wrote.

    Returns:
        Lines, possibly none. Every string of the payload is kept; those that name a reason or a message come
        first and stand on one line, so that a phrase that spans both is found.
    """
    if _ENVELOPE.isdisjoint(entry):
        return _lines_of(_object_text(entry))
    parts: list[str] = []
    text = entry.get("textPayload")
    if isinstance(text, str):
        parts.append(text)
    payload = entry.get("jsonPayload")
    if isinstance(payload, dict):
        parts.append(_object_text(payload))
    proto = entry.get("protoPayload")
    if isinstance(proto, dict):
        status = proto.get("status")
        if isinstance(status, dict) and isinstance(status.get("message"), str):
            parts.append(status["message"])
        parts.append(_object_text({key: value for key, value in proto.items() if key != "status"}))
    request = entry.get("httpRequest")
    if isinstance(request, dict):
        asked = f"{request.get('requestMethod', '')} {known_route(str(request.get('requestUrl', '')))}"
        parts.append(f"HTTP {asked} status {request.get('status', '')}")
    if not parts:
        parts.append(_object_text(entry))
    return [line for part in parts for line in _lines_of(part)]


def _lines_of(part: str) -> list[str]:
    return [line for line in clean(part).splitlines() if line.strip()]


def log_lines(text: str) -> list[str]:
    """Lines of a log in which some or all lines may be JSON records; whole-text JSON is taken apart too.

    A line that is not JSON, or is cut off, stays as it is, unless it holds several records of vLLM's logger: those
    become lines of their own. Records of several instances say whose they are, as ``kubectl logs --prefix`` does.
    A log that was printed newest first is put in order.
    """
    whole = _parse(text) if text.lstrip()[:1] in {"{", "["} else None
    if isinstance(whole, dict):
        return entry_lines(whole)
    if isinstance(whole, list) and whole:
        several = len({_instance(item) for item in whole if isinstance(item, dict)} - {""}) > 1
        return [line for item in oldest_entries_first(whole) for line in _item_lines(item, several=several)]
    if len(set(_INSTANCE.findall(text))) > 1:
        return [part for line in stretch_lines(text, apart=False) for part in _taken_apart(line, several=True)]
    return list(oldest_first(stretch_lines(text)))


def stretch_lines(text: str, *, apart: bool = True) -> list[str]:
    """Lines of a stretch of a log, as :func:`log_lines` gives them, but that the stretch is not one JSON value.

    A stretch without JSON lines and without lines of several records costs little more than splitting it.
    """
    text = clean(text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not apart:
        return text.split("\n")
    if _LINE_BY_LINE.search(text.encode("utf-8", "surrogatepass")) is not None:
        return [part for line in text.split("\n") for part in _taken_apart(line)]
    found: list[str] = []
    at = 0
    while at <= len(text):
        brace = at if text.startswith("{", at) else text.find("\n{", at) + 1 or len(text) + 1
        if brace > at:
            found += text[at : brace - 1].split("\n")
        at = brace
        if brace <= len(text):
            end = text.find("\n", brace)
            at = 1 + (end if end >= 0 else len(text))
            found += _taken_apart(text[brace : at - 1])
    return found


def _taken_apart(line: str, *, several: bool = False) -> list[str]:
    entry = _parse(line) if line.lstrip()[:1] == "{" and line.rstrip()[-1:] == "}" else None
    return _item_lines(entry, several=several) if isinstance(entry, dict) else records_of(line)


def _item_lines(item: object, *, several: bool) -> list[str]:
    if not isinstance(item, dict):
        return clean(str(item)).splitlines()
    lines = entry_lines(item)
    name = _instance(item) if several else ""
    return [f"[instance/{name}] {line}" for line in lines] if name else lines


def _instance(entry: Mapping[str, Any]) -> str:
    """The instance, or the pod and its container, that a LogEntry is of; empty where it names none."""
    labels, resource = entry.get("labels"), entry.get("resource")
    of = resource.get("labels") if isinstance(resource, dict) else None
    mine = labels if isinstance(labels, dict) else {}
    its = of if isinstance(of, dict) else {}
    named = mine.get("instanceId") or its.get("pod_name") or its.get("instance_id")
    return "".join(str(named).split())[:200].replace("]", "") if named else ""


def _parse(text: str) -> object:
    if len(text) > MAX_JSON_CHARS:
        return None
    text = text.strip(_JSON_BLANKS)
    try:
        value, end = _DECODE(text)  # not strict: a log line; its text is taken, whatever stands twice
    except (ValueError, RecursionError):
        return None
    return value if end == len(text) else None


def _object_text(value: Mapping[str, Any]) -> str:
    spoken, value = _spoken_keys(value), _as_routed(value)
    head: dict[int, str] = {}
    rest: list[str] = []
    for key, item in value.items():
        if key.lower() in spoken:
            continue
        if isinstance(item, str):
            if key in _HEAD_KEYS:
                head[_HEAD_KEYS[key]] = item
            else:
                rest.append(f"{key}: {item}")
        elif isinstance(item, _PLAIN):
            rest.append(f"{key}: {_word(item)}")
        else:
            rest.extend(_leaves(key, item, 0, spoken))
    if head and all(map(_OWN_LEVEL.fullmatch, head.values())):
        rest = [said for said in rest if not said.startswith(_LEVELS)]
    if head:
        rest.insert(0, ": ".join([head[place] for place in sorted(head)] if len(head) > 1 else head.values()))
    return "\n".join(rest)


def _leaves(key: str, value: object, depth: int, spoken: frozenset[str]) -> Iterator[str]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, dict):
        spoken, value = spoken | _spoken_keys(value), _as_routed(value)
        kept = {name: item for name, item in value.items() if name.lower() not in spoken}
        plain = [f"{name}: {_word(item)}" for name, item in kept.items() if isinstance(item, _PLAIN)]
        if plain:
            yield f"{key}: " + ", ".join(plain)
        for name, item in kept.items():
            if not isinstance(item, _PLAIN):
                yield from _leaves(name, item, depth + 1, spoken)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(key, item, depth + 1, spoken)
    elif value is not None:
        yield f"{key}: {_word(value)}"


def _as_routed(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """A record of a request with no more of its path than routes that are known; any other as it is."""
    if (METHOD_KEYS | CLIENT_KEYS).isdisjoint(key.lower() for key in value):
        return value
    asked = {key: known_route(said) for key, said in value.items() if key.lower() in PATH_KEYS and _is_path(said)}
    return {**value, **asked}


def _is_path(said: object) -> bool:
    return isinstance(said, str) and _PATH.fullmatch(said) is not None


def _spoken_keys(value: Mapping[str, Any]) -> frozenset[str]:
    """Keys, in lower case, under which a client or the model speaks: more beside one of the signs, and all inside."""
    return _SPOKEN if BODY_SIGNS.isdisjoint(value) else _SPOKEN_IN_A_BODY


def _word(value: object) -> str:
    """A plain value as JSON writes it: the catalogue's phrases say true and false, not True and False."""
    return str(value).lower() if isinstance(value, bool) else str(value)
