"""The schema of outgoing events is current, valid, and has every type that is sent."""

import json

import pytest
from jsonschema import Draft202012Validator, ValidationError

from agent.presentation.event_types import EVENT_TYPES
from tests.published_event import require_published, strict
from tools import webhook_schema
from tools.published_schema import keep_or_check
from tools.webhook_schema import COMMAND, FILE, document, page


def test_the_committed_schema_is_current(capsys):
    assert keep_or_check(FILE, page(), COMMAND, ["--check"]) == 0, COMMAND
    assert capsys.readouterr().err == ""


def test_a_schema_that_is_not_current_is_told_and_written(tmp_path, capsys):
    kept = tmp_path / "events.json"
    assert keep_or_check(kept, page(), COMMAND, ["--check"]) == 1
    assert COMMAND in capsys.readouterr().err
    assert keep_or_check(kept, page(), COMMAND, []) == 0
    assert keep_or_check(kept, page(), COMMAND, ["--check"]) == 0


def test_every_type_that_is_sent_has_a_form_and_every_field_of_the_guide_its_place():
    forms = document()["$defs"]
    assert {kind for kind in forms if "." in kind} == {*EVENT_TYPES, "notification.test"}
    assert {ref["$ref"].rpartition("/")[2] for ref in document()["oneOf"]} == {k for k in forms if "." in k}
    assert "routing_key" in forms["Current"]["required"]
    assert forms["PlanEventData"]["properties"]["undo"]["description"] == "How it is undone."


def test_the_whole_document_tells_events_apart_by_their_type():
    """A stranger validates against the document itself, not against one of its parts."""
    validator = Draft202012Validator(document())
    good = {"type": "notification.test", "timestamp": "2026-11-21T03:00:00+00:00", "data": {"what": "A test."}}
    validator.validate(good)
    for wrong in (good | {"type": "incident.opened"}, good | {"type": "x"}, good | {"data": {}}):
        with pytest.raises(ValidationError):
            validator.validate(wrong)


def test_what_the_schema_does_not_have_is_found_here():
    event = {"type": "notification.test", "timestamp": "2026-11-21T03:00:00+00:00", "data": {"what": "x", "more": 1}}
    with pytest.raises(AssertionError, match="more"):
        require_published(json.dumps(event))
    assert strict() is strict()
    assert webhook_schema.FILE.is_file()
