"""One API server by the official client: against the real one, and against one that breaks off."""

import json
import threading
import time
from contextlib import contextmanager

import pytest

from agent.adapters.kubernetes import client
from agent.adapters.kubernetes.client import FIELD_MANAGER, KubernetesApi, connect
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SettingsRejected, StateConflict
from tests.loopback import Loopback

KUBE = pytest.mark.xdist_group("kube")


@KUBE
def test_objects_go_in_and_out_unchanged(kube_cluster):
    """Create, get, list, patch by our own field manager, delete under the uid."""
    cluster = kube_cluster()
    made = cluster.deploy("gemma", ["serve", "m"], replicas=0)
    path = cluster.path("deployments", "gemma")
    assert cluster.api.get(path)["spec"] == made["spec"]
    assert [d["metadata"]["name"] for d in cluster.api.items(cluster.path("deployments"))] == ["gemma"]
    test = {"op": "test", "path": "/metadata/generation", "value": 1}
    steps = [test, {"op": "add", "path": "/spec/minReadySeconds", "value": 1}]
    assert cluster.api.patch(path, steps, dry_run=True)["metadata"]["generation"] == 2
    assert cluster.api.get(path)["metadata"]["generation"] == 1
    assert cluster.api.patch(path, steps)["spec"]["minReadySeconds"] == 1
    managers = {e["manager"] for e in cluster.api.get(path)["metadata"]["managedFields"]}
    assert FIELD_MANAGER in managers
    with pytest.raises(StateConflict, match="/metadata/generation 1"):
        cluster.api.patch(path, steps)
    with pytest.raises(StateConflict):
        cluster.api.delete(path, uid="another")
    cluster.api.delete(path, uid=made["metadata"]["uid"])
    cluster.until(lambda: cluster.api.find(path) is None)


@KUBE
def test_the_words_of_the_server_are_told(kube_cluster):
    """Missing, invalid, forbidden: each a typed error in the API server's words."""
    cluster = kube_cluster()
    cluster.deploy("gemma", ["serve", "m"], replicas=0)
    path = cluster.path("deployments", "gemma")
    with pytest.raises(InputRejected, match='"nope" not found'):
        cluster.api.get(cluster.path("deployments", "nope"))
    assert cluster.api.find(cluster.path("deployments", "nope")) is None
    assert cluster.api.find("/apis/example.com/v1/namespaces/x/nothing/y") is None
    bad = [{"op": "replace", "path": "/spec/replicas", "value": -1}]
    with pytest.raises(InputRejected, match="must be greater than or equal to 0"):
        cluster.api.patch(path, bad, dry_run=True)
    with pytest.raises(PolicyRefused, match='User "repairer" cannot get resource "deployments"'):
        cluster.open("repairer").get(path)


def broken(said=b'{"kind":"Status","message":"etcdserver: request timed out"}', *, status=500, more=0):
    """Says that more will come, and breaks off."""
    return lambda _: (status, said, {"Content-Length": str(len(said) + more)})


@contextmanager
def server(answer, folder):
    with Loopback(answer, methods=["GET", "PATCH"]) as running:
        yield KubernetesApi(lambda: connect(kubeconfig=str(kubeconfig(folder, running.port))))


def kubeconfig(folder, port):
    path = folder / "config"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "here", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    whole = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "here"}
    path.write_text(json.dumps(whole))
    return path


def test_a_server_in_trouble_may_be_asked_again(tmp_path):
    """Its own 500, an answer that breaks off, an answer that is no JSON, and nobody there."""
    with server(broken(), tmp_path) as api, pytest.raises(DependencyFailed, match="request timed out"):
        api.get("/api")
    with server(broken(status=200, more=10), tmp_path) as api, pytest.raises(DependencyFailed, match="broke off"):
        api.get("/api")
    with server(broken(b"<html>", status=200), tmp_path) as api, pytest.raises(DependencyFailed, match="was not read"):
        api.get("/api")
    with pytest.raises(DependencyFailed):
        api.get("/api")


def test_a_change_waits_no_longer_for_its_answer_than_it_may(tmp_path):
    ends = threading.Event()

    def silent(_):
        ends.wait(30)

    with server(silent, tmp_path) as api:
        began = time.monotonic()
        with pytest.raises(DependencyFailed, match="timed out"):
            api.patch("/api/x", [], within_s=0.2)
        assert time.monotonic() - began < 10
        ends.set()


def test_nothing_that_leads_to_a_cluster_is_a_mistake_of_the_settings(tmp_path, monkeypatch):
    """No file, no such context, and (without the extra) no client."""
    with pytest.raises(SettingsRejected, match="no Kubernetes cluster can be reached"):
        connect(kubeconfig=str(tmp_path / "absent"))
    with pytest.raises(SettingsRejected, match="there"):
        connect("there", kubeconfig=str(kubeconfig(tmp_path, 1)))
    monkeypatch.setitem(__import__("sys").modules, "kubernetes", None)
    with pytest.raises(SettingsRejected, match=r"install the extra.*\[kubernetes\]"):
        connect()


def test_a_pod_is_in_its_cluster_unless_it_has_a_kubeconfig(tmp_path, monkeypatch):
    """A mounted token says so; a kubeconfig that somebody gave it says otherwise."""
    token = tmp_path / "token"
    monkeypatch.setattr(client, "IN_CLUSTER_TOKEN", token)
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config"))
    assert not client.in_cluster()
    token.write_text("t")
    assert client.in_cluster()
    kubeconfig(tmp_path, 1)
    assert not client.in_cluster()
