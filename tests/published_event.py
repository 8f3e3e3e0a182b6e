"""Holds what goes out by webhook to the schema that docs/ publishes, and to no field beyond it."""

import json
from functools import cache
from pathlib import Path

from jsonschema import Draft202012Validator

SCHEMA = Path(__file__).parents[1] / "docs" / "webhook-events.schema.json"


@cache
def strict():
    """The validator; here a field that the schema does not have is a fault, though a receiver ignores it."""
    document = json.loads(SCHEMA.read_text())
    Draft202012Validator.check_schema(document)
    for form in document["$defs"].values():
        if "properties" in form:
            form["additionalProperties"] = False
    return Draft202012Validator(document, format_checker=Draft202012Validator.FORMAT_CHECKER)


def require_published(body):
    """Fail where an event has not the form that is published for its own type."""
    event = json.loads(body)
    form = strict().evolve(schema={"$ref": f"#/$defs/{event['type']}", "$defs": strict().schema["$defs"]})
    faults = [f"{fault.json_path}: {fault.message}" for fault in form.iter_errors(event)]
    if faults:
        raise AssertionError(f"{event['type']} is not as docs/{SCHEMA.name} says: {faults}")
    return event
