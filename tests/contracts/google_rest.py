"""Google's REST APIs on loopback: answers by path as the references document them, pages, and refuses on demand.

apis = GoogleRest()
apis.answers["/v2/projects/p/locations"] = {"locations": [...]}     # a list of bodies is paged; (403, "why") refuses
rest = agent.adapters.google.rest.GoogleRest(lambda: "token", at=apis.at)
apis.close()
"""

from urllib.parse import parse_qs, urlsplit

from tests.loopback import Loopback


class GoogleRest:
    """The server; ``seen`` holds (service, path, query, headers) of every request."""

    def __init__(self):
        self.answers = {}
        self.seen = []
        self._server = Loopback(self.answer, methods=["GET"])

    def at(self, service):
        return f"{self._server.url}/{service}"

    def close(self):
        self._server.close()

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
            return status, {"error": {"code": status, "message": message, "status": "X"}}
        return 200, found
