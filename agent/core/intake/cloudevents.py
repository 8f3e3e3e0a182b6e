"""CloudEvents 1.0 over HTTP: the attributes are checked, and the data is a body of a shape that we know."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Final

from agent.core.intake.json_fields import missing, text
from agent.errors import InputRejected
from agent.strict_json import read_object

SHAPE: Final = "CloudEvent"
_REQUIRED: Final = ("id", "source", "type")
"""https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md (2026-11-22)."""
_STRUCTURED: Final = "application/cloudevents+json"
_BATCH: Final = "application/cloudevents-batch+json"


def data_of(headers: Mapping[str, str], body: bytes, *, limit: int) -> bytes:
    """Return the JSON that a CloudEvent carries.

    Args:
        headers: Of the request, names in lower case.
        body: As it came: the event itself (structured mode), or its data (binary mode).
        limit: The most bytes of the body.

    Raises:
        InputRejected: No CloudEvent 1.0, a batch, or data that is no JSON.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == _BATCH:
        raise InputRejected(f"the {SHAPE} became no signal", why="it is a batch", hint="send one event at a time")
    if kind == _STRUCTURED or "ce-specversion" not in headers:
        return _data(read_object(body, what=SHAPE, limit=limit))
    _check({name: headers.get(f"ce-{name}", "") for name in ("specversion", *_REQUIRED)})
    _check_json(kind)
    return body


def _data(event: Mapping[str, Any]) -> bytes:
    _check(event)
    _check_json(text(event, "datacontenttype").partition(";")[0].strip().lower())
    if "data_base64" in event:
        try:
            return base64.b64decode(text(event, "data_base64"), validate=True)
        except (binascii.Error, ValueError):
            raise missing(SHAPE, "data_base64", event["data_base64"]) from None
    if not isinstance(event.get("data"), Mapping):
        raise missing(SHAPE, "data", event.get("data"))
    return json.dumps(event["data"], ensure_ascii=False).encode("utf-8", "surrogatepass")


def _check(attributes: Mapping[str, Any]) -> None:
    if attributes.get("specversion") != "1.0":
        raise missing(SHAPE, "specversion '1.0'", attributes.get("specversion"))
    for name in _REQUIRED:
        if not text(attributes, name):
            raise missing(SHAPE, name, attributes.get(name))


def _check_json(kind: str) -> None:
    """Data without a type is JSON; any other type is none that we read."""
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise missing(SHAPE, "datacontenttype", kind)
