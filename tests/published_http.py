"""Holds what an application answers, and what it takes, to the OpenAPI document that docs/ publishes."""

import json
import re
from functools import cache
from pathlib import Path

from jsonschema import Draft202012Validator

FILE = Path(__file__).parents[1] / "docs" / "openapi.json"
JSON = "application/json"
NO_SUCH = {404, 405}


@cache
def published():
    """The document, and each of its paths as an expression; those without a name in them come first."""
    document = json.loads(FILE.read_text())
    paths = sorted(document["paths"], key=lambda path: path.count("{"))
    shapes = [(re.compile(re.sub(r"\\\{\w+\\\}", "([^/]+)", re.escape(path))), path) for path in paths]
    return document, shapes


@cache
def validator_of(reference):
    """The validator of one form; here an unknown field is a fault also of what goes out."""
    schemas = json.loads(json.dumps(published()[0]["components"]["schemas"]))
    for form in schemas.values():
        if "properties" in form:
            form["additionalProperties"] = False
    schema = json.loads(reference) | {"components": {"schemas": schemas}}
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def faults(schema, value):
    """What is wrong with a value, by its place."""
    found = validator_of(json.dumps(schema)).iter_errors(value)
    return [f"{fault.json_path}: {fault.message}"[:300] for fault in found]


def operation(method, path):
    """What the document says of a request, or None where it says nothing."""
    document, shapes = published()
    for shape, name in shapes:
        if shape.fullmatch(path) or (name in {"/slack/actions", "/pagerduty/events"} and path.endswith(name)):
            item = document["paths"][name]
            if method.lower() in item:
                return item[method.lower()]
    return None


def require_published(method, path, status, kind, body, *, sent=b""):
    """Fail where an answer is not as the document says, or where a body was taken that the document refuses."""
    described = operation(method, path)
    wrong = []
    if described is None:
        wrong = [] if status in NO_SUCH or "/webhooks/" in path else ["it is not described"]
    elif str(status) not in described["responses"]:
        wrong = [] if status in {*NO_SUCH, 413, 503} else [f"{status} is not described"]
    else:
        content = described["responses"][str(status)].get("content", {})
        kind = kind.partition(";")[0]
        if body and kind not in content:
            wrong = [f"{kind!r} is not described for {status}"]
        elif kind == JSON and body:
            wrong = faults(content[JSON]["schema"], json.loads(body))
        takes = described.get("requestBody", {}).get("content", {}).get(JSON)
        if status == 200 and takes is not None:
            wrong += [f"taken, though {fault}" for fault in faults(takes["schema"], json.loads(sent))]
    if wrong:
        raise AssertionError(f"{method} {path} is not as docs/{FILE.name} says: {wrong[:5]}")
