"""A stand-in of Log Analytics on loopback: it answers our one query, by the names and the order that stand in it."""

import re
from datetime import datetime
from typing import Any

from tests.loopback import Loopback

WORKSPACE = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"


class LogAnalytics:
    """Rows of the console tables: (time, app, revision, replica, line).

    Attributes:
        fails: Status, code and message of every answer; None to answer.
        partial: Whether the answer says that it is a part.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[datetime, str, str, str, str]] = []
        self.fails: tuple[int, str, str] | None = None
        self.partial = False
        self.queries: list[str] = []
        self._server = Loopback(
            lambda request: self.answer(request.path, request.json()), keep_alive=True, methods=["POST"]
        )
        self.url, self.close = self._server.url, self._server.close

    def client(self) -> Any:
        """Return the library's client; over plain http it refuses to send a token, so that policy is replaced."""
        from azure.core.pipeline.policies import SansIOHTTPPolicy
        from azure.monitor.query import LogsQueryClient

        from tests.contracts.arm_server import Token

        policy: Any = SansIOHTTPPolicy()
        return LogsQueryClient(Token(), endpoint=self.url, authentication_policy=policy)

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.fails is not None:
            status, code, message = self.fails
            return status, {"error": {"code": code, "message": message}}
        assert path.split("/")[3] == WORKSPACE, path
        query = body["query"]
        self.queries.append(query)
        said = dict(re.findall(r'let (\w+) = "([^"]*)";', query))
        count, order = re.search(r"top (\d+) by TimeGenerated (asc|desc)$", query).groups()
        begin, end = map(datetime.fromisoformat, body["timespan"].split("/"))
        wanted = (said["app"], said["revision"], said["replica"])
        found = [
            row
            for row in self.rows
            if begin <= row[0] < end and all(w in {"", has} for w, has in zip(wanted, row[1:4], strict=True))
        ]
        found.sort(key=lambda row: row[0], reverse=order == "desc")
        columns = [{"name": "TimeGenerated", "type": "datetime"}, {"name": "Line", "type": "string"}]
        rows = [[row[0].isoformat().replace("+00:00", "Z"), row[4]] for row in found[: int(count)]]
        told: dict[str, Any] = {"tables": [{"name": "PrimaryResult", "columns": columns, "rows": rows}]}
        return 200, told | ({"error": {"code": "PartialError", "message": "cut"}} if self.partial else {})
