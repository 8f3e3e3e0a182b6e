"""Google's REST APIs on loopback: answers by path as the references document them, pages, and refuses on demand.

apis = GoogleRest()
apis.answers["/v2/projects/p/locations"] = {"locations": [...]}     # a list of bodies is paged; (403, "why") refuses
rest = agent.adapters.google.rest.GoogleRest(lambda: "token", at=apis.at)
apis.close()
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class GoogleRest:
    """The server; ``seen`` holds (service, path, query, headers) of every request."""

    def __init__(self):
        self.answers = {}
        self.seen = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                status, body = outer.answer(self)
                self.send_response(status)
                self.send_header("Content-Type", "application/json; charset=UTF-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def at(self, service):
        return f"http://127.0.0.1:{self._server.server_address[1]}/{service}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request):
        parts = urlsplit(request.path)
        _, service, path = parts.path.split("/", 2)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.seen.append((service, f"/{path}", query, dict(request.headers)))
        found = self.answers.get(f"/{path}", (404, "not found"))
        if isinstance(found, list):
            page = int(query.get("pageToken") or 0)
            more = {"nextPageToken": str(page + 1)} if page + 1 < len(found) else {}
            found = found[page] | more
        if isinstance(found, tuple):
            status, message = found
            return status, json.dumps({"error": {"code": status, "message": message, "status": "X"}}).encode()
        return 200, found if isinstance(found, bytes) else json.dumps(found).encode()
