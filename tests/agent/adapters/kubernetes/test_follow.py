"""The watch against a real API server: every change once, whatever happens to the connection in between."""

import json
import threading
import time
from contextlib import contextmanager
from itertools import pairwise

import pytest
import requests
from structlog.testing import capture_logs

from agent.adapters.kubernetes.follow import FIRST_WAIT_S, Following, _Collection
from agent.adapters.kubernetes.open_streams import OpenStreams
from agent.errors import DependencyFailed
from agent.ports.cluster import Seen
from tests import kube
from tests.agent.adapters.kubernetes.test_client import server
from tests.waiting import until

pytestmark = pytest.mark.xdist_group("kube")


@pytest.fixture
def cable(kube_plane):
    made = kube.Cable(kube_plane.ports["kube-apiserver"])
    yield made
    made.close()


@pytest.fixture
def api(kube_plane, cable, tmp_path):
    """A client that reaches the API server through the cable."""
    return cable.api(kube_plane, tmp_path / "kubeconfig")


class Heard:
    """Keeps what was told; ``refuse`` makes the next takers fail."""

    def __init__(self):
        self.changes, self.refusals = [], 0

    def __call__(self, change):
        if self.refusals:
            self.refusals -= 1
            raise DependencyFailed("the store is full", why="it says so", hint="no action needed")
        meta = change.object["metadata"]
        self.changes.append((change.seen, meta["name"], (change.object.get("data") or {}).get("n")))

    def names(self, prefix=""):
        return [name for _, name, _ in self.changes if name.startswith(prefix)]

    def of(self, name):
        return [(seen, n) for seen, found, n in self.changes if found == name]


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def following(api, heard, kube_cluster):
    """Follows the config maps of a namespace: the smallest objects there are."""
    cluster = kube_cluster()
    cluster.maps = f"/api/v1/namespaces/{cluster.namespace}/configmaps"
    follower = Following(api)
    follower.put = lambda name, n: cluster.api.create(cluster.maps, {"metadata": {"name": name}, "data": {"n": str(n)}})
    follower.set = lambda name, n: cluster.api.patch(
        f"{cluster.maps}/{name}", [{"op": "replace", "path": "/data/n", "value": str(n)}]
    )
    follower.drop = lambda name: cluster.plane.request("DELETE", f"{cluster.maps}/{name}")
    follower.cluster = cluster
    threads = []

    def begin(path=None, **how):
        threads.append(threading.Thread(target=follower.follow, args=(path or cluster.maps, heard), kwargs=how))
        threads[-1].start()
        return follower

    yield begin
    begun = time.monotonic()
    follower.stop()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive(), "the watch did not end"
    assert time.monotonic() - begun < 10


def test_what_is_there_is_listed_and_what_changes_is_told_once(following, heard):
    follower = following()
    follower.put("a", 1)
    until(lambda: "a" in heard.names())
    follower.set("a", 2)
    until(lambda: len(heard.of("a")) == 2)
    follower.drop("a")
    until(lambda: len(heard.of("a")) == 3)
    assert [seen for seen, _ in heard.of("a")][1:] == [Seen.CHANGED, Seen.GONE]
    assert [n for _, n in heard.of("a")][:2] == ["1", "2"]


def test_an_end_that_comes_while_a_watch_is_opened_ends_it(api, heard, kube_cluster, monkeypatch):
    """Nobody else could: it was not there yet when the connections were cut off."""
    follower, path, opened = Following(api), kube_cluster().path("pods"), api.stream

    @contextmanager
    def stream(*args, **how):
        with opened(*args, **how) as response:
            follower.stop()
            yield response

    monkeypatch.setattr(api, "stream", stream)
    thread = threading.Thread(target=follower.follow, args=(path, heard), daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_a_selector_leaves_the_others_out(following, heard):
    follower = following(fields="metadata.name=mine")
    follower.put("other", 1)
    follower.put("mine", 2)
    until(lambda: "mine" in heard.names())
    assert heard.names() == ["mine"]


def test_while_the_server_is_away_nothing_is_lost_and_nothing_told_twice(following, heard, cable):
    follower = following()
    follower.put("before", 1)
    until(lambda: "before" in heard.names())
    cable.cut()
    follower.put("meanwhile", 2)
    follower.set("before", 3)
    cable.mend()
    follower.put("after", 4)
    until(lambda: {"meanwhile", "after"} <= set(heard.names()))
    until(lambda: len(heard.of("before")) == 2)
    assert [n for _, n in heard.of("before")] == ["1", "3"]
    assert sorted(heard.names()).count("meanwhile") == 1


def test_what_nobody_could_store_is_told_again_and_the_rest_once(following, heard):
    follower = following()
    follower.put("first", 1)
    until(lambda: "first" in heard.names())
    heard.refusals = 2
    follower.put("second", 2)
    until(lambda: "second" in heard.names())
    follower.put("third", 3)
    until(lambda: "third" in heard.names())
    assert [heard.names().count(name) for name in ("first", "second", "third")] == [1, 1, 1]


def test_a_version_that_the_server_forgot_has_the_list_read_anew(kube_plane, following, heard, cable):
    """410 Gone, by a real compaction: what was told is not told again, what was missed is. Events have no cache."""
    cluster = following("/api/v1/nodes").cluster  # a second watch beside it disturbs nothing
    events = f"/api/v1/namespaces/{cluster.namespace}/events"

    def put(name):
        about = {"namespace": cluster.namespace}
        return cluster.api.create(events, {"metadata": {"name": name}, "involvedObject": about, "message": "x"})

    with capture_logs() as logs:
        following(events)
        for name in ("old", "leaves"):
            put(name)
        until(lambda: {"old", "leaves"} <= set(heard.names()))
        cable.cut()
        cluster.plane.request("DELETE", f"{events}/leaves")
        put("missed")
        newest = put("newest")["metadata"]["resourceVersion"]
        etcd = f"http://127.0.0.1:{kube_plane.ports['etcd']}/v3/kv/compaction"
        body = {"revision": newest, "physical": True}
        assert requests.post(etcd, json=body, timeout=20).status_code == 200
        cable.mend()
        until(lambda: {"missed", "newest"} <= set(heard.names()))
        until(lambda: heard.of("leaves")[-1][0] is Seen.GONE)
    assert any(row["event"] == "cluster.watch_expired" and row["path"] == events for row in logs)
    assert heard.names("old") == ["old"]


class Hasty:
    """Answers a list, and ends each watch at once."""

    def __init__(self, listed=b'{"metadata":{"resourceVersion":"1"},"items":[]}'):
        self.asked, self.listed = [], listed

    def __call__(self, request):
        if "watch=true" not in request.path:
            return 200, self.listed
        self.asked.append(time.monotonic())
        return 200, b""


def test_a_watch_that_ends_at_once_is_not_asked_for_in_a_storm(tmp_path, heard):
    """A proxy that does not know watches must not turn them into polling."""
    hasty = Hasty()
    with server(hasty, tmp_path) as api:
        follower = Following(api)
        thread = threading.Thread(target=follower.follow, args=("/api/v1/pods", heard))
        thread.start()
        until(lambda: len(hasty.asked) >= 3)
        follower.stop()
        thread.join(15)
    waits = [later - sooner for sooner, later in pairwise(hasty.asked[:3])]
    assert waits[0] >= FIRST_WAIT_S * 0.9
    assert waits[1] >= FIRST_WAIT_S * 1.8


def state(version, **objects):
    """A list as the API server gives it: versions of the whole and of each object, and what each holds."""
    items = [
        {"metadata": {"name": name, "uid": name, "resourceVersion": own}, "data": {"n": n}}
        for name, (own, n) in objects.items()
    ]
    return json.dumps({"metadata": {"resourceVersion": version}, "items": items}).encode()


def test_of_a_server_that_was_restored_the_list_is_read_anew(tmp_path, heard):
    """Its versions went back: what is gone with the backup is told, and a version that stands for another state now."""
    restored = Hasty(state("120", kept=("90", "1"), later=("110", "1")))
    with capture_logs() as logs, server(restored, tmp_path) as api:
        follower = Following(api)
        thread = threading.Thread(target=follower.follow, args=("/api/v1/pods", heard), daemon=True)
        thread.start()
        until(lambda: heard.names() == ["kept", "later"])
        restored.listed = state("100", kept=("90", "2"))
        until(lambda: len(heard.of("kept")) == 2 and heard.of("later")[-1][0] is Seen.GONE)
        follower.stop()
        thread.join(15)
    assert heard.of("kept")[-1] == (Seen.LISTED, "2")
    assert [row["held"] for row in logs if row["event"] == "cluster.restored"] == ["120"]


def test_a_version_that_a_real_server_has_not_reached_is_not_waited_for(api, heard, kube_cluster):
    """After a restore a watch from the version that was held says nothing until the server has caught up."""
    cluster = kube_cluster()
    path = f"/api/v1/namespaces/{cluster.namespace}/configmaps"
    streams = OpenStreams()
    collection = _Collection(api, path, heard, "", streams=streams)
    collection._version = str(10**9)
    thread = threading.Thread(target=collection.run, daemon=True)
    thread.start()
    cluster.api.create(path, {"metadata": {"name": "told"}, "data": {"n": "1"}})
    until(lambda: "told" in heard.names())
    streams.stop()
    thread.join(10)
    assert not thread.is_alive()


def test_what_stands_in_the_way_is_said_once_and_not_at_every_try(tmp_path, heard):
    """A right that is missing for good must not fill the log."""
    asked = []

    def forbidding(_):
        asked.append(time.monotonic())
        return 403, {"kind": "Status", "message": "nodes is forbidden"}

    with capture_logs() as logs, server(forbidding, tmp_path) as api:
        follower = Following(api)
        thread = threading.Thread(target=follower.follow, args=("/api/v1/nodes", heard))
        thread.start()
        until(lambda: len(asked) >= 3)
        follower.stop()
        thread.join(15)
    said = [row["log_level"] for row in logs if row["event"] == "cluster.watch_failed"]
    assert (said[0], said.count("warning")) == ("warning", 1)
    assert len(said) >= 2
