"""A word to the one person who pressed, or another message in place of the pressed one; it holds up no answer."""

import json
import queue
import threading
from typing import Any

from agent.adapters.http.client import HttpClient
from agent.errors import SreError

WAITING = 100  # replies; more than that are dropped, the press itself was answered


class SlackReply:
    """Sends to the places that Slack named, one after the other, in a thread of its own; what fails is dropped.

    Args:
        client: Reaches public addresses only.
    """

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._queue: queue.Queue[tuple[str, dict[str, Any]]] = queue.Queue(WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def __call__(self, url: str, text: str) -> None:
        """Say it soon, seen by that person alone; returns at once."""
        self._send(url, {"response_type": "ephemeral", "replace_original": False, "text": text})

    def replace(self, url: str, message: dict[str, Any]) -> None:
        """Put another message in the place of the one with the button, seen by everybody; returns at once."""
        self._send(url, {"replace_original": True} | message)

    def _send(self, url: str, said: dict[str, Any]) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="slack-reply", daemon=True)
                self._thread.start()
        try:
            self._queue.put_nowait((url, said))
        except queue.Full:
            return

    def _work(self) -> None:
        while True:
            url, said = self._queue.get()
            body = json.dumps(said).encode()
            try:
                self._client.send("POST", url, headers={"content-type": "application/json"}, body=body)
            except SreError:
                continue
