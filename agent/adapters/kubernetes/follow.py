"""A list and then a watch: every change of a collection, resumed where the connection ended, nothing twice."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from agent.adapters.kubernetes.client import KubernetesApi
from agent.adapters.kubernetes.open_streams import OpenStreams
from agent.core.intake.json_fields import part
from agent.errors import SreError, StateConflict
from agent.ports.cluster import Change, Seen
from agent.strict_json import read_object
from agent.structured_log import structlog

PAGE = 500
WATCH_S: Final = 240  # the server ends a watch after so long; a connection that died in silence is noticed soon after
SLACK_S: Final = 30
LINE_BYTES: Final = 8 * 2**20  # etcd holds 1.5 MB for an object
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 10.0

log = structlog.get_logger(__name__)


class Following:
    """Follows collections of one API server; one call for each collection, each in a thread of its own."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._streams = OpenStreams()

    def follow(self, path: str, tell: Callable[[Change], None], *, fields: str = "") -> None:
        """Follow one collection; see the port."""
        _Collection(self._api, path, tell, fields, streams=self._streams).run()

    def stop(self) -> None:
        """End every follow; see the port."""
        self._streams.stop()


class _Collection:
    """One collection that is followed."""

    def __init__(
        self,
        api: KubernetesApi,
        path: str,
        tell: Callable[[Change], None],
        fields: str,
        *,
        streams: OpenStreams,
    ) -> None:
        self._api, self._path, self._tell = api, path, tell
        self._streams, self._stopping = streams, streams.stopping
        self._selector = {"fieldSelector": fields} if fields else {}
        self._reported: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._version = ""
        self._wait_s = FIRST_WAIT_S
        self._in_the_way = ""

    def run(self) -> None:
        """List and watch until the end."""
        while not self._stopping.is_set():
            try:
                if self._version:
                    self._forget_if_restored()
                if not self._version:
                    self._list()
                if not self._watch():
                    self._rest()
            except StateConflict:  # 410: the version to go on from is too old, so the list is read anew
                self._version = ""
                log.info("cluster.watch_expired", path=self._path)
                self._rest()
            except SreError as error:
                if not self._stopping.is_set():
                    self._failed(str(error))
                self._rest()
            except Exception:
                log.exception("cluster.watch_failed", path=self._path, again_in_s=self._wait_s)
                self._rest()

    def _failed(self, error: str) -> None:
        """Warn of what stands in the way once: a right may be missing for good."""
        write = log.debug if error == self._in_the_way else log.warning
        write("cluster.watch_failed", path=self._path, error=error, again_in_s=self._wait_s)
        self._in_the_way = error

    def _rest(self) -> None:
        self._stopping.wait(self._wait_s)
        self._wait_s = min(self._wait_s * 2, LONGEST_WAIT_S)

    def _forget_if_restored(self) -> None:
        """Forget what was told where the server stands before it: it was restored from a backup (ADR 0040).

        It would tell nothing until its versions have caught up, and may use a version twice for different states.
        """
        answer = self._api.get(self._path, query={"limit": "1"} | self._selector)
        held, stands = self._version, str(part(answer, "metadata").get("resourceVersion") or "")
        if held.isdecimal() and stands.isdecimal() and int(stands) < int(held):
            log.warning("cluster.restored", path=self._path, held=held, stands=stands)
            self._version = ""
            self._reported = {uid: ("", sketch) for uid, (_, sketch) in self._reported.items()}

    def _list(self) -> None:
        """Read the whole collection; tell what was not told in that state, and what is not there any more."""
        there: set[str] = set()
        query = {"limit": str(PAGE)} | self._selector
        while True:
            answer = self._api.get(self._path, query=query)
            head = part(answer, "metadata")
            for item in answer.get("items") or ():
                there.add(_of(item, "uid"))
                self._take(Change(Seen.LISTED, item))
            if not head.get("continue"):
                break
            query = query | {"continue": str(head["continue"])}
        for uid in [uid for uid in self._reported if uid not in there]:
            self._take(Change(Seen.GONE, self._reported[uid][1]))
        self._version = str(head.get("resourceVersion") or "")

    def _watch(self) -> bool:
        """Take changes until the server ends the watch, as it does after ``WATCH_S`` at the latest.

        Returns:
            Whether it lasted; something between us and the server may end each watch at once.
        """
        begun = time.monotonic()
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH_S),
        }
        with (
            self._api.stream("GET", self._path, query=query | self._selector, timeout_s=WATCH_S + SLACK_S) as response,
            self._streams.reading(response) as goes_on,
        ):
            for line in _lines(response) if goes_on else ():
                if self._stopping.is_set():
                    break
                self._event(read_object(line, what="event of the watch", limit=LINE_BYTES))
        if self._stopping.is_set():
            return True
        if time.monotonic() - begun < FIRST_WAIT_S:
            return False
        self._wait_s, self._in_the_way = FIRST_WAIT_S, ""
        return True

    def _event(self, event: Mapping[str, Any]) -> None:
        kind, item = event.get("type"), part(event, "object")
        if kind == "ERROR":
            raise StateConflict(
                "the watch ended", why=str(item.get("message"))[:500], hint="no action needed: the watch is restarted"
            )
        if kind != "BOOKMARK":
            self._take(Change(Seen.GONE if kind == "DELETED" else Seen.CHANGED, item))
            self._wait_s = FIRST_WAIT_S
        self._version = _of(item, "resourceVersion") or self._version

    def _take(self, change: Change) -> None:
        """Tell a change, unless this very state was told; where it was not taken, the list is read anew."""
        uid, version = _of(change.object, "uid"), _of(change.object, "resourceVersion")
        if change.seen is not Seen.GONE and self._reported.get(uid, ("",))[0] == version:
            return
        try:
            self._tell(change)
        except Exception:
            self._version = ""
            raise
        if change.seen is Seen.GONE:
            self._reported.pop(uid, None)
        else:
            self._reported[uid] = (version, _sketch(change.object))


def _lines(response: Any) -> Iterator[bytes]:
    """Yield the lines of a response as they come; a line that no object has ends it."""
    held = b""
    for chunk in response.stream(65_536):
        *lines, held = (held + chunk).split(b"\n")
        yield from (line for line in lines if line.strip())
        if len(held) > LINE_BYTES:
            raise StateConflict(
                "the watch ended",
                why="an event is larger than any object",
                hint="no action needed: the watch is restarted",
            )


def _sketch(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is kept of an object: enough to say later that it is gone."""
    return {"metadata": {key: _of(item, key) for key in ("name", "namespace", "uid")}}


def _of(item: Mapping[str, Any], key: str) -> str:
    return str(part(item, "metadata").get(key) or "")
