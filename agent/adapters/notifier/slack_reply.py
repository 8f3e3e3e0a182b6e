"""A word to the one person who pressed, at the place that Slack named; it never holds up an answer."""

import json
import queue
import threading

from agent.adapters.http.client import HttpClient
from agent.errors import SreError

WAITING = 100  # replies; more than that are dropped, the press itself was answered


class SlackReply:
    """Sends short words one after the other, in a thread of its own; what fails is dropped.

    Args:
        client: Reaches public addresses only.
    """

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._queue: queue.Queue[tuple[str, str]] = queue.Queue(WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def __call__(self, url: str, text: str) -> None:
        """Say it soon, seen by that person alone; returns at once."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="slack-reply", daemon=True)
                self._thread.start()
        try:
            self._queue.put_nowait((url, text))
        except queue.Full:
            return

    def _work(self) -> None:
        while True:
            url, text = self._queue.get()
            body = json.dumps({"response_type": "ephemeral", "replace_original": False, "text": text}).encode()
            try:
                self._client.send("POST", url, headers={"content-type": "application/json"}, body=body)
            except SreError:
                continue
