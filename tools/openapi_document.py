"""OpenAPI of every HTTP entry, for docs/, made from the routes and the models that answer."""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Final

from flask import Flask
from pydantic import BaseModel

from agent.app import build_app_in_memory
from agent.app.stores import machine_clock
from agent.entrypoints.cli.commands import up
from agent.entrypoints.console.app import make_app
from agent.entrypoints.http.application import Refusal, make_http_app
from agent.entrypoints.http.authenticator import ASSERTION_HEADER, TOKEN_HEADER
from agent.entrypoints.http.decide import decisions
from agent.entrypoints.http.ingest import PROOF_HEADER, SHAPES_OF, alerts
from agent.entrypoints.http.operators import operators
from agent.ports.stage_context import Owner
from agent.settings import read_settings
from tools.openapi_routes import (
    AI_CLIENTS,
    INTAKE,
    JSON,
    OPERATORS,
    PAGES,
    PROGRAMS,
    REFUSED,
    SIGNED,
    STRING,
    UP_ALONE,
    Entry,
)
from tools.published_schema import definitions, keep_or_check, written

FILE: Final = Path(__file__).parent.parent / "docs" / "openapi.json"
COMMAND: Final = "python -m tools.openapi_document"
PLACE: Final = "#/components/schemas/"
Route = tuple[str, str]
Server = dict[str, Any]


def _server(url: str, says: str, **defaults: str) -> Server:
    return {"url": url, "description": says, "variables": {name: {"default": used} for name, used in defaults.items()}}


def _port() -> str:
    words = argparse.ArgumentParser()
    up.configure(words)
    return str(words.get_default("port"))


def _up(says: str, address: str = up.LOOPBACK) -> Server:
    return _server("http://{address}:{port}", says, address=address, port=_port())


DECIDE: Final = _server("https://{host}", "the function `decide`", host="decide.example.com")
UP_FOR_OPERATORS: Final = _up(
    f"`sre-agent up --bind ADDRESS`, for requests that carry {TOKEN_HEADER}. On 127.0.0.1, where a decision needs no "
    "proof of identity, it has no such entry: use the command line or the page.",
    "192.0.2.1",
)
SERVERS_OF: Final[tuple[tuple[Mapping[Route, Entry], tuple[Server, ...]], ...]] = (
    (SIGNED, (DECIDE, _up("`sre-agent up`"))),
    (OPERATORS, (DECIDE, UP_FOR_OPERATORS)),
    (
        INTAKE,
        (
            _server("https://{host}", "the function `ingest`", host="ingest.example.com"),
            _up("`sre-agent up`, where INGEST_SECRETS names the sender"),
        ),
    ),
    (
        PROGRAMS,
        (
            _server("https://{host}", "the console behind Identity-Aware Proxy", host="console.example.com"),
            _up("`sre-agent up`"),
        ),
    ),
    (UP_ALONE, (_up("`sre-agent up`; the console on Google Cloud does not answer it"),)),
    (
        AI_CLIENTS,
        (_server("http://127.0.0.1:{port}", "`sre-agent mcp --http PORT`, on this machine alone", port="8765"),),
    ),
)
"""Where each group of entries is answered; the names of hosts and addresses are examples (RFC 2606, RFC 5737)."""
ENTRIES_OF: Final[dict[str, Mapping[Route, Entry]]] = {
    "decide": SIGNED | OPERATORS,
    "ingest": INTAKE,
    "console": PROGRAMS | UP_ALONE,
    "mcp": AI_CLIENTS,
}
PROOFS: Final = {
    "idToken": {
        "type": "apiKey", "in": "header", "name": TOKEN_HEADER,
        "description": "An ID token of Google or of the cluster; see security.md. Each is used once for a decision.",
    },
    "iapAssertion": {
        "type": "apiKey", "in": "header", "name": ASSERTION_HEADER,
        "description": "What Identity-Aware Proxy signed for a person; the console hands it on to `decide`. At "
        f"`sre-agent up` it is read only of a request that carries {TOKEN_HEADER} too.",
    },
    "slackSignature": {"type": "apiKey", "in": "header", "name": "X-Slack-Signature"},
    "pagerDutySignature": {"type": "apiKey", "in": "header", "name": "X-PagerDuty-Signature"},
    "webhookSignature": {
        "type": "apiKey", "in": "header", "name": "webhook-signature",
        "description": "As https://www.standardwebhooks.com has it.",
    },
    "senderBearer": {"type": "http", "scheme": "bearer", "description": "The secret of the sender."},
    "senderBasic": {"type": "http", "scheme": "basic", "description": "The sender's name and its secret."},
    "senderHeader": {"type": "apiKey", "in": "header", "name": PROOF_HEADER.title()},
}  # fmt: skip


@cache
def routes() -> dict[str, dict[Route, str]]:
    """Return what the applications answer: by part, method and path, with the view's own first line.

    A prefix before the path of Slack, PagerDuty or a webhook does not matter, and of a sender's path only the last
    part counts; each such route stands here once.
    """
    root = FILE.parents[1]
    settings = read_settings({}, platform=f"rehearsal:{root / 'examples' / 'gemma4-26b-l4-startup-probe'}")
    decide: Any = SimpleNamespace(authenticator=object(), context=None)
    with TemporaryDirectory() as state:
        app = build_app_in_memory(settings, clock=machine_clock(), state=Path(state))
        return {
            "decide": _routes_of(make_http_app(decisions(decide), operators(decide))),
            "ingest": _routes_of(make_http_app(alerts(app))),
            "console": _routes_of(make_app(app.contexts[Owner.DECIDE], settings=app.settings, metrics=True)),
            "mcp": {("POST", "/mcp"): "Call a tool, or read a resource, as the Model Context Protocol has it."},
        }


def _routes_of(web: Flask) -> dict[Route, str]:
    found: dict[Route, str] = {}
    for rule in web.url_map.iter_rules():
        path = re.sub(r"<(?:\w+(?:\([^)]*\))?:)?(\w+)>", r"{\1}", rule.rule.removeprefix("/<path:_>"))
        path = "/ingest/{sender}" if path in {"/", "/{path}"} and web.name.endswith(".http") else path
        says = (web.view_functions[rule.endpoint].__doc__ or "").strip().partition("\n")[0]
        for method in (rule.methods or set()) - {"HEAD"} - ({"OPTIONS"} if web.name.endswith("console") else set()):
            found[method, path] = says
    return found


def undescribed() -> list[str]:
    """Return which routes have no entry, and which entries no route; one that is listed twice counts too."""
    wrong = []
    for part, answered in routes().items():
        known = set(ENTRIES_OF[part])
        pages = PAGES if part == "console" else frozenset()
        wrong += [f"{part} answers {' '.join(route)}" for route in answered if route not in known | pages]
        wrong += [f"{part} has no {' '.join(route)}" for route in known - set(answered)]
        wrong += [
            f"{part}: {' '.join(route)} says nothing of itself"
            for route in known & set(answered)
            if not answered[route]
        ]
    gone = PAGES - set(routes()["console"])
    return sorted(wrong + [f"console has no page {' '.join(route)}" for route in gone])


def document() -> dict[str, Any]:
    """Return the document.

    Raises:
        ValueError: A route has no entry, or an entry no route.
    """
    if wrong := undescribed():
        raise ValueError("; ".join(wrong))
    paths: dict[str, dict[str, Any]] = {}
    for part, entries in ENTRIES_OF.items():
        for (method, path), entry in entries.items():
            item = paths.setdefault(path, {"servers": _servers((method, path))})
            item[method.lower()] = _operation(part, (method, path), entry)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sre-agent",
            "version": tomllib.loads((FILE.parents[1] / "pyproject.toml").read_text())["project"]["version"],
            "description": "Every HTTP entry for programs: decisions, change requests, event intake, what programs "
            "read of the console, and AI clients. Pages for people are not listed.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": f"http://{up.LOOPBACK}:{_port()}", "description": "`sre-agent up` on this machine"}],
        "paths": paths,
        "components": {"schemas": _schemas(), "securitySchemes": PROOFS},
    }


def _servers(route: Route) -> list[Server]:
    return list(next(servers for entries, servers in SERVERS_OF if route in entries))


def _operation(part: str, route: Route, entry: Entry) -> dict[str, Any]:
    method, path = route
    name = re.sub(r"\W+", "_", f"{method.lower()}{path}").strip("_")
    found: dict[str, Any] = {"operationId": name, "tags": [part], "summary": routes()[part][route]}
    if parameters := [*_in_path(path), *_in_query(entry.query), *_in_headers(entry.headers)]:
        found["parameters"] = parameters
    if entry.takes:
        body = {kind: {"schema": _form(form)} for kind, form in entry.takes.items()}
        found["requestBody"] = {"required": True, "content": body}
    found["responses"] = _answers(entry)
    found["security"] = [{name: []} for name in entry.by]
    return found


def _in_path(path: str) -> Iterable[dict[str, Any]]:
    kinds: dict[str, dict[str, Any]] = {"form": {"enum": ["md", "json", "html"]}}
    if path.startswith("/ingest/"):
        kinds["sender"] = {"enum": sorted(SHAPES_OF)}
    for name in re.findall(r"\{(\w+)\}", path):
        yield {"name": name, "in": "path", "required": True, "schema": kinds.get(name, {"type": "string"})}


def _in_query(form: type[BaseModel] | None) -> Iterable[dict[str, Any]]:
    if form is None:
        return
    ((_, schema),) = definitions([form], "taken", place=PLACE).items()
    for name, kind in schema["properties"].items():
        yield {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": kind}


def _in_headers(names: dict[str, bool]) -> Iterable[dict[str, Any]]:
    for name, needed in names.items():
        if name != "Accept":  # said by the media types of the answers
            yield {"name": name, "in": "header", "required": needed, "schema": {"type": "string"}}


def _answers(entry: Entry) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "Done."}
    if entry.gives:
        good["content"] = {kind: {"schema": _answered(form, entry)} for kind, form in entry.gives.items()}
    refusal = {entry.refused_as: {"schema": _form(Refusal if entry.refused_as == JSON else STRING)}}
    found = {"200": good} | {str(status): {"description": says} for status, says in entry.also.items()}
    words = REFUSED | {413: "too large"}
    return found | {str(status): {"description": words[status], "content": refusal} for status in entry.refuses}


def _answered(form: type[BaseModel] | dict[str, Any], entry: Entry) -> dict[str, Any]:
    one = _form(form)
    if entry.many:
        return {"type": "array", "items": one}
    return {"anyOf": [one, {"type": "null"}]} if entry.nullable else one


def _form(form: type[BaseModel] | dict[str, Any]) -> dict[str, Any]:
    return dict(form) if isinstance(form, dict) else {"$ref": f"{PLACE}{_name_of(form)}"}


def _name_of(form: type[BaseModel]) -> str:
    return form.__name__


@cache
def _schemas() -> dict[str, Any]:
    """Return every form by name; one that comes in and goes out in two ways has ``Taken`` at its end coming in."""
    entries = [entry for part in ENTRIES_OF.values() for entry in part.values()]
    comes = [form for entry in entries for form in entry.takes.values() if isinstance(form, type)]
    goes = [form for entry in entries for form in entry.gives.values() if isinstance(form, type)]
    given = definitions(goes, "given", place=PLACE, mode="serialization")
    given |= definitions([Refusal], "given", place=PLACE)
    taken = definitions(comes, "taken", place=PLACE)
    twice = {name for name in taken if name in given and taken[name] != given[name]}
    return dict(sorted((given | {_taken(name, twice): _renamed(form, twice) for name, form in taken.items()}).items()))


def _taken(name: str, twice: set[str]) -> str:
    return f"{name}Taken" if name in twice else name


def _renamed(schema: Any, twice: set[str]) -> Any:
    if isinstance(schema, list):
        return [_renamed(each, twice) for each in schema]
    if isinstance(schema, dict):
        return {name: _renamed(each, twice) for name, each in schema.items()}
    if isinstance(schema, str) and schema.startswith(PLACE):
        return PLACE + _taken(schema.removeprefix(PLACE), twice)
    return schema


def page() -> str:
    """Return the file's text."""
    return written(document())


if __name__ == "__main__":
    sys.exit(keep_or_check(FILE, page(), COMMAND, sys.argv[1:]))
