"""The OpenAPI document is current, valid, and has every route that the applications answer, and no other."""

import json
from types import SimpleNamespace

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from agent.entrypoints.http.ingest import SHAPES_OF
from agent.entrypoints.mcp.serve import http_server
from agent.settings import read_settings
from tests.published_http import faults, require_published
from tools import openapi_document
from tools.openapi_document import COMMAND, ENTRIES_OF, FILE, document, page, routes, undescribed
from tools.published_schema import keep_or_check

ROUTES = dict(routes())


@pytest.fixture(scope="module")
def kept():
    return json.loads(FILE.read_text())


def test_the_committed_document_is_current():
    assert keep_or_check(FILE, page(), COMMAND, ["--check"]) == 0, COMMAND


def test_it_is_valid_openapi_3_1(kept):
    assert kept["openapi"] == "3.1.0"
    assert [fault.message for fault in OpenAPIV31SpecValidator(kept).iter_errors()] == []


def test_every_route_is_described_and_nothing_else(kept):
    """Both ways, and so that one more or one fewer is found."""
    assert undescribed() == []
    described = {(m.upper(), path) for path, item in kept["paths"].items() for m in item if m != "servers"}
    assert described == {route for entries in ENTRIES_OF.values() for route in entries}
    assert len(described) == sum(map(len, ENTRIES_OF.values()))


@pytest.mark.parametrize("part", ["decide", "ingest", "console"])
def test_a_route_without_an_entry_is_found_and_an_entry_without_a_route(part, monkeypatch):
    (route, *_) = ENTRIES_OF[part]
    more = ROUTES | {part: ROUTES[part] | {("GET", "/x"): "X."}}
    monkeypatch.setattr(openapi_document, "routes", lambda: more)
    assert undescribed() == [f"{part} answers GET /x"]
    less = ROUTES | {part: {name: says for name, says in ROUTES[part].items() if name != route}}
    monkeypatch.setattr(openapi_document, "routes", lambda: less)
    assert undescribed() == [f"{part} has no {' '.join(route)}"]
    with pytest.raises(ValueError, match="has no"):
        document()


def test_the_path_of_ai_clients_is_the_one_that_is_served():
    """The MCP server is no Flask application: its own routes are asked."""
    tools = SimpleNamespace(table=(), services=None, incidents=None, redact=str)
    try:
        server = http_server(tools, read_settings({}), port=8765, version="1")
    except AttributeError:
        pytest.skip("the resources need the tools")
    paths = {route.path for route in server.streamable_http_app(stateless_http=True).routes}
    assert paths == {path for _, path in ENTRIES_OF["mcp"]}


def test_every_sender_and_every_proof_is_there(kept):
    (sender,) = kept["paths"]["/ingest/{sender}"]["post"]["parameters"]
    assert sender["schema"]["enum"] == sorted(SHAPES_OF)
    needed = {name for item in kept["paths"].values() for op in item.values() if isinstance(op, dict)
              for way in op["security"] for name in way}  # fmt: skip
    assert needed == set(kept["components"]["securitySchemes"])


def test_what_comes_in_is_closed_and_what_goes_out_is_open(kept):
    forms = kept["components"]["schemas"]
    assert forms["Asked"]["additionalProperties"] is False
    assert "additionalProperties" not in forms["Incident"]
    assert forms["Body"]["properties"]["break_glass"]["description"].startswith("Approve in spite of")


def test_what_the_document_does_not_say_is_found_here():
    ref = {"$ref": "#/components/schemas/KillSwitch"}
    assert faults(ref, {"on": True, "by": "", "why": "", "at": None}) == []
    assert faults(ref, {"on": "yes", "by": "", "why": "", "at": None})
    for answer in ((200, b'{"on": 1}'), (418, b"{}"), (200, b"[]")):
        with pytest.raises(AssertionError, match="is not as docs/"):
            require_published("GET", "/kill-switch", answer[0], "application/json", answer[1])
    with pytest.raises(AssertionError, match="not described"):
        require_published("GET", "/nowhere", 200, "application/json", b"{}")
