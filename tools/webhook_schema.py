"""JSON Schema of every event that goes out by webhook, for docs/, made from the forms that are sent."""

import sys
from pathlib import Path
from typing import Any, Final

from agent.presentation.webhook_event import FORMS, WebhookEvent
from tools.published_schema import definitions, keep_or_check, written

FILE: Final = Path(__file__).parent.parent / "docs" / "webhook-events.schema.json"
COMMAND: Final = "python -m tools.webhook_schema"


def document() -> dict[str, Any]:
    """Return the schema: an event is of one of the types, each by its name under ``$defs``."""
    forms = {kind: WebhookEvent[form] for kind, form in FORMS.items()}  # type: ignore[valid-type] # made at run time
    found = definitions(forms.values(), "given", place="#/$defs/")
    envelope_of = {kind: found[form.__name__.replace("[", "_").replace("]", "_")] for kind, form in forms.items()}
    events = {kind: _of_type(kind, envelope_of[kind]) for kind in forms}
    parts = {name: schema for name, schema in found.items() if not name.startswith("WebhookEvent_")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Webhook events of sre-agent",
        "description": "See webhooks.md. Ignore types and fields that you do not know: later versions may add some.",
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in events],
        "$defs": events | parts,
    }


def _of_type(kind: str, envelope: dict[str, Any]) -> dict[str, Any]:
    """Return the form of one event: the common envelope with its own type."""
    return envelope | {"properties": envelope["properties"] | {"type": {"const": kind}}}


def page() -> str:
    """Return the file's text."""
    return written(document())


if __name__ == "__main__":
    sys.exit(keep_or_check(FILE, page(), COMMAND, sys.argv[1:]))
