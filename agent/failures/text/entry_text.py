"""The words of a structured log record: a LogEntry, a Kubernetes event or pod, any logger's JSON, as lines of text."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import re2

from agent.failures.text.client_text import BODY_KEYS, BODY_SIGNS, CLIENT_KEYS, OWN_WORDS, SPOKEN_KEYS, known_route
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
_RECORD_START = r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d"
_TWO_RECORDS = re2.compile(rf"{_RECORD_START}.*{_RECORD_START}".encode())
"""A line that holds two records of vLLM's logger; linear time on any text."""

_JSON_ENDS = ("}", " ", "\t")
_PLAIN = str | int | float
_REASON_KEYS = ("reason", "Reason_s", "Reason", "error", "exception", "stack_trace", "detail", "details", "err")
_HEAD_KEYS = {key: place for place, key in enumerate((*_REASON_KEYS, *_MESSAGE_KEYS))}


def entry_lines(entry: Mapping[str, Any]) -> list[str]:
    """The text of one structured record, as lines without terminal colours.

    Args:
        entry: A Cloud Logging LogEntry (textPayload, jsonPayload or protoPayload, httpRequest), a Kubernetes
            event or pod, a Container Apps row, or any JSON object that a logger wrote.

    Returns:
        Lines, possibly none. Every string of the payload is kept; those that name a reason or a message come
        first and stand on one line, so that a phrase that spans both is found.
    """
    parts: list[str] = []
    text = entry.get("textPayload")
    if isinstance(text, str):
        parts.append(text)
    payload = entry.get("jsonPayload")
    if isinstance(payload, Mapping):
        parts.append(_object_text(payload))
    proto = entry.get("protoPayload")
    if isinstance(proto, Mapping):
        status = proto.get("status")
        if isinstance(status, Mapping) and isinstance(status.get("message"), str):
            parts.append(status["message"])
        parts.append(_object_text({key: value for key, value in proto.items() if key != "status"}))
    request = entry.get("httpRequest")
    if isinstance(request, Mapping):
        asked = f"{request.get('requestMethod', '')} {known_route(str(request.get('requestUrl', '')))}"
        parts.append(f"HTTP {asked} status {request.get('status', '')}")
    if not parts:
        parts.append(_object_text(entry))
    return [line for part in parts for line in clean(part).splitlines() if line.strip()]


def log_lines(text: str) -> list[str]:
    """Lines of a log in which some or all lines may be JSON records; whole-text JSON is taken apart too.

    A line that is not JSON, or is cut off, stays as it is, unless it holds several records of vLLM's logger: those
    become lines of their own. Records of several instances say whose they are, as ``kubectl logs --prefix`` does.
    A log that was printed newest first is put in order.
    """
    whole = _parse(text) if text.lstrip()[:1] in {"{", "["} else None
    if isinstance(whole, Mapping):
        return entry_lines(whole)
    if isinstance(whole, list) and whole:
        several = len({_instance(item) for item in whole if isinstance(item, Mapping)} - {""}) > 1
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
    lines = text.split("\n")
    if not apart:
        return lines
    several = _TWO_RECORDS.search(text.encode("utf-8", "surrogatepass")) is not None
    found: list[str] = []
    for line in lines:
        if several or (line[-1:] in _JSON_ENDS and line.lstrip()[:1] == "{"):
            found.extend(_taken_apart(line))
        else:
            found.append(line)
    return found


def _taken_apart(line: str, *, several: bool = False) -> list[str]:
    entry = _parse(line) if line.lstrip()[:1] == "{" and line.rstrip()[-1:] == "}" else None
    return _item_lines(entry, several=several) if isinstance(entry, Mapping) else records_of(line)


def _item_lines(item: object, *, several: bool) -> list[str]:
    if not isinstance(item, Mapping):
        return clean(str(item)).splitlines()
    name = _instance(item) if several else ""
    return [f"[instance/{name}] {line}" if name else line for line in entry_lines(item)]


def _instance(entry: Mapping[str, Any]) -> str:
    """The instance, or the pod and its container, that a LogEntry is of; empty where it names none."""
    labels, resource = entry.get("labels"), entry.get("resource")
    of = resource.get("labels") if isinstance(resource, Mapping) else None
    mine: Mapping[str, Any] = labels if isinstance(labels, Mapping) else {}
    its: Mapping[str, Any] = of if isinstance(of, Mapping) else {}
    named = mine.get("instanceId") or its.get("pod_name") or its.get("instance_id")
    return "".join(str(named).split())[:200].replace("]", "") if named else ""


def _parse(text: str) -> object:
    if len(text) > MAX_JSON_CHARS:
        return None
    try:
        return json.loads(text)  # not strict: a log line; its text is taken, whatever stands twice
    except (ValueError, RecursionError):
        return None


def _object_text(value: Mapping[str, Any]) -> str:
    body = not (BODY_SIGNS.isdisjoint(value) and OWN_WORDS.isdisjoint(value))
    named = value.keys() & _HEAD_KEYS.keys()
    head = [
        key
        for key in sorted(named, key=_HEAD_KEYS.__getitem__)
        if isinstance(value[key], str) and not _of_client(key, body=body)
    ]
    rest: list[str] = []
    for key, item in value.items():
        if key in head or _of_client(key, body=body):
            continue
        if isinstance(item, _PLAIN):
            rest.append(f"{key}: {_word(item)}")
        else:
            rest.extend(_leaves(key, item, 0, body=body))
    return "\n".join([": ".join([value[key] for key in head]), *rest] if head else rest)


def _leaves(key: str, value: object, depth: int, *, body: bool) -> Iterator[str]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        body = body or not BODY_SIGNS.isdisjoint(value)
        said = {name: item for name, item in value.items() if not _of_client(name, body=body)}
        plain = {name: item for name, item in said.items() if isinstance(item, _PLAIN)}
        if plain:
            yield f"{key}: " + ", ".join(f"{name}: {_word(item)}" for name, item in plain.items())
        for name, item in said.items():
            if name not in plain:
                yield from _leaves(str(name), item, depth + 1, body=body)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(key, item, depth + 1, body=body)
    elif value is not None:
        yield f"{key}: {_word(value)}"


@lru_cache(maxsize=1024)
def _of_client(key: object, *, body: bool) -> bool:
    """Whether a key holds what a client, or the model, says; ``body`` for a request or an answer and all inside."""
    name = str(key).lower()
    return name in CLIENT_KEYS or name in SPOKEN_KEYS or (body and name in BODY_KEYS)


def _word(value: object) -> str:
    """A plain value as JSON writes it: the catalogue's phrases say true and false, not True and False."""
    return str(value).lower() if isinstance(value, bool) else str(value)
