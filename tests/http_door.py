"""One request at the web application of the deciding function, as a web server hands it over."""

import io
import sys
from collections import deque

from werkzeug.test import run_wsgi_app

from agent.entrypoints.http.application import HEADERS, make_http_app
from agent.entrypoints.http.decide import decisions
from agent.entrypoints.http.operators import operators
from tests.published_http import require_published

ALWAYS = {name.lower() for name in HEADERS} | {"content-length"}
WEBS = 8
_made = deque(maxlen=WEBS)


def web_of(gate):
    """The application of a gate; the last ones are kept, because many requests go to a few."""
    web = next((web for made, web in _made if made is gate), None)
    if web is None:
        web = make_http_app(decisions(gate), operators(gate))
        _made.append((gate, web))
    return web


def asked(method, path, headers, body, *, gate, query=""):
    """Return status, headers that not every answer has, and body."""
    environ = {
        "REQUEST_METHOD": method, "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": query,
        "SERVER_NAME": "localhost", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0), "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(body), "wsgi.errors": sys.stderr,
        "wsgi.multithread": True, "wsgi.multiprocess": False, "wsgi.run_once": False,
    }  # fmt: skip
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
        environ[key] = f"{environ[key]},{value}" if key in environ else value
    pieces, status, sent = run_wsgi_app(web_of(gate), environ)
    said = b"".join(pieces)
    assert sent["cache-control"] == "no-store"
    found = {name.lower(): value for name, value in sent if name.lower() not in ALWAYS}
    require_published(method, path, int(status.split()[0]), dict(sent).get("content-type", ""), said, sent=body)
    if not said:
        found.pop("content-type", None)
    return int(status.split()[0]), found, said
