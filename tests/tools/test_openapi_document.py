"""The OpenAPI document is current, valid, and has every route that the applications answer, and no other."""

import json
import re
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from werkzeug.test import Client

from agent.app import build_app_in_memory
from agent.entrypoints.cli.analysis import SteppedClock
from agent.entrypoints.cli.commands.up import LOOPBACK, console_server
from agent.entrypoints.console.app import make_app
from agent.entrypoints.console.serve import claim
from agent.entrypoints.http.authenticator import ASSERTION_HEADER, TOKEN_HEADER
from agent.entrypoints.http.ingest import SHAPES_OF
from agent.entrypoints.mcp.serve import http_server
from agent.errors import DependencyFailed, PolicyRefused
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from tests.published_http import faults, operation, require_published
from tools import openapi_document
from tools.openapi_document import COMMAND, ENTRIES_OF, FILE, document, page, routes, undescribed
from tools.openapi_routes import OPERATORS, PROGRAMS, UP_ALONE
from tools.published_schema import keep_or_check

ROUTES = dict(routes())
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gemma4-26b-l4-startup-probe"
NAMES = {"sender": "cloudevents", "form": "md"}
ASKS = {"WebHook-Request-Origin": "events.example.com"}
TOKEN = {TOKEN_HEADER: "x.y.z"}
ELSEWHERE = "0.0.0.0"  # nothing listens there: the application is asked in this process


@pytest.fixture(scope="module")
def kept():
    return json.loads(FILE.read_text())


def test_the_committed_document_is_current():
    assert keep_or_check(FILE, page(), COMMAND, ["--check"]) == 0, COMMAND


def test_reading_the_routes_leaves_nothing_in_the_tree():
    """Several workers read them at once; a database beside the sources was locked for all but one."""
    left = FILE.parents[1] / "rehearsal.sqlite"
    left.unlink(missing_ok=True)
    openapi_document.routes.cache_clear()
    assert dict(routes()) == ROUTES
    assert not left.exists()


@pytest.mark.slow
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
    assert forms["ChangeBody"]["additionalProperties"] is False
    assert "additionalProperties" not in forms["Incident"]
    assert forms["DecisionBody"]["properties"]["break_glass"]["description"].startswith("Approve in spite of")


def test_what_the_document_does_not_say_is_found_here():
    ref = {"$ref": "#/components/schemas/KillSwitch"}
    assert faults(ref, {"on": True, "by": "", "why": "", "at": None}) == []
    assert faults(ref, {"on": "yes", "by": "", "why": "", "at": None})
    for answer in ((200, b'{"on": 1}'), (418, b"{}"), (200, b"[]")):
        with pytest.raises(AssertionError, match="is not as docs/"):
            require_published("GET", "/kill-switch", answer[0], "application/json", answer[1])
    with pytest.raises(AssertionError, match="not described"):
        require_published("GET", "/nowhere", 200, "application/json", b"{}")


def installed(folder, environ=None, **settings):
    """An installation in memory."""
    read = read_settings(environ or {}, platform=f"rehearsal:{EXAMPLE}", **settings)
    return build_app_in_memory(read, clock=SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC)), state=folder)


@pytest.fixture(scope="module", params=[LOOPBACK, ELSEWHERE])
def up_at(request, tmp_path_factory):
    """An address, and what `sre-agent up` serves there."""
    environ = {"INGEST_SECRETS": "cloudevents=0123456789abcdef-s3cret"}
    app = installed(tmp_path_factory.mktemp("up"), environ, bind=request.param)
    with claim(0) as held:
        server = console_server(app, held)
    with closing(server):
        yield request.param, Client(server.app)


def asked(web, method, path, headers):
    """What is answered, from this machine and under its name, where nothing is there that a name could mean."""
    place = re.sub(r"\{(\w+)\}", lambda name: NAMES.get(name[1], "none"), path)
    here = {"base_url": f"http://{LOOPBACK}:8080", "environ_overrides": {"REMOTE_ADDR": LOOPBACK}}
    return web.open(place, method=method, headers=headers, **here)


def is_described(said, method, path):
    """Whether the document has the status and the media type of an answer; a page for people has others."""
    described = operation(method, path)["responses"].get(str(said.status_code))
    return described is not None and (not said.data or said.mimetype in described.get("content", {}))


def test_up_answers_what_the_document_says_that_it_answers(up_at, kept):
    """What is under an example address is there only where it is bound outside this machine."""
    address, web = up_at
    for part in ("decide", "ingest", "console"):
        for method, path in ENTRIES_OF[part]:
            named = [server["variables"].get("address") for server in kept["paths"][path]["servers"]]
            (at,) = [address["default"] for address in named if address]
            said = asked(web, method, path, TOKEN if part == "decide" else ASKS)
            assert is_described(said, method, path) == (at == LOOPBACK or address == ELSEWHERE), (method, path, address)


def test_an_assertion_alone_proves_nothing_to_up(up_at, kept):
    """The console shows its page, or nothing, to whoever carries no token."""
    address, web = up_at
    assert TOKEN_HEADER in kept["components"]["securitySchemes"]["iapAssertion"]["description"]
    looks = [route for route in OPERATORS if "iapAssertion" in OPERATORS[route].by]
    assert looks
    for method, path in looks:
        alone, both = (asked(web, method, path, more | {ASSERTION_HEADER: "x.y.z"}) for more in ({}, TOKEN))
        assert not is_described(alone, method, path), path
        assert is_described(both, method, path) == (address == ELSEWHERE), path


def test_no_address_of_this_machine_is_said_to_speak_https(kept):
    servers = [server for item in kept["paths"].values() for server in item["servers"]]
    assert len(servers) > len(kept["paths"])
    for server in servers:
        defaults = {name: said["default"] for name, said in server["variables"].items()}
        if server["url"].startswith("https:"):
            assert defaults["host"].endswith(".example.com")
        else:
            assert "{port}" in server["url"]
    assert {server["url"] for server in kept["servers"]} == {"http://127.0.0.1:8080"}


@pytest.mark.parametrize(("error", "status"), [(PolicyRefused, 403), (DependencyFailed, 503)])
def test_a_program_that_the_console_refuses_is_answered_as_described(error, status, tmp_path):
    """Nobody that we know, or the keys that tell who it is could not be had."""

    class Refusing:
        local = False

        def person(self, headers):
            raise error("the page was not shown", why="a test", hint="none")

    app = installed(tmp_path, public_url="https://console.example.com")
    web = make_app(app.contexts[Owner.DECIDE], settings=app.settings, identity=Refusing(), metrics=True).test_client()
    answers = {route: asked(web, *route, {}) for route in PROGRAMS | UP_ALONE}
    assert [route for route, said in answers.items() if not is_described(said, *route)] == []
    assert {path.rpartition("/")[2] for (_, path), said in answers.items() if said.status_code == status} >= {
        "report.{form}",
        "events",
    }
