"""GKE without a kubeconfig: a stand-in that speaks the container API's wire, and a real API server behind TLS."""

import base64

import pytest
from kubernetes.client import ApiClient, Configuration

from agent.adapters.kubernetes import client
from agent.adapters.kubernetes.client import KubernetesApi, connect
from agent.adapters.kubernetes.gke import GoogleTokens, gke_configuration
from agent.errors import DependencyFailed, PolicyRefused, SettingsRejected
from tests.certificates import own_certificate
from tests.loopback import Loopback

KUBE = pytest.mark.xdist_group("kube")
NAME = "gke:my-project/us-central1/llm"
PATH = "/v1/projects/my-project/locations/us-central1/clusters/llm"


class ContainerApi(Loopback):
    """``projects.locations.clusters.get``, as https://cloud.google.com/kubernetes-engine/docs/reference/rest shows it."""

    def __init__(self):
        self.asked, self.status, self.body = [], 200, {}
        super().__init__(self._answer, methods=["GET"])

    def _answer(self, request):
        self.asked.append((request.path, request.headers["Authorization"]))
        return self.status, self.body


@pytest.fixture
def api():
    made = ContainerApi()
    yield made
    made.close()


def cluster(plane):
    """What the container API says of a cluster, as far as it matters."""
    authority = base64.b64encode(plane.certificate.read_bytes()).decode()
    endpoint = f"127.0.0.1:{plane.ports['kube-apiserver']}"
    return {"name": "llm", "status": "RUNNING", "endpoint": endpoint, "masterAuth": {"clusterCaCertificate": authority},
            "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": "gke-x.us-central1.gke.goog"}}}  # fmt: skip


@KUBE
def test_the_cluster_is_reached_with_its_certificate_and_a_fresh_token(kube_plane, api):
    """Each request carries the token of now; the container API is asked once."""
    api.body, tokens = cluster(kube_plane), ["expired"]
    configuration = gke_configuration(NAME, token=lambda: tokens[-1], container_api=api.url)
    kube = KubernetesApi(lambda: ApiClient(configuration))
    with pytest.raises(PolicyRefused, match="Unauthorized"):
        kube.get("/api/v1/namespaces")
    tokens.append(kube_plane.tokens["admin"])
    assert kube.get("/api/v1/namespaces/default")["metadata"]["name"] == "default"
    assert api.asked == [(PATH, "Bearer expired")]


@KUBE
def test_another_certificate_is_not_trusted(kube_plane, api):
    body, (stranger, _) = cluster(kube_plane), own_certificate("x")
    body["masterAuth"]["clusterCaCertificate"] = base64.b64encode(stranger.encode()).decode()
    api.body = body
    configuration = gke_configuration(NAME, token=lambda: kube_plane.tokens["admin"], container_api=api.url)
    with pytest.raises(DependencyFailed, match="certificate verify failed"):
        KubernetesApi(lambda: ApiClient(configuration)).get("/api/v1/namespaces/default")


def test_a_context_of_that_form_needs_no_kubeconfig(monkeypatch):
    asked = []
    monkeypatch.setattr(
        client, "gke_configuration", lambda context: asked.append(context) or Configuration(host="https://h")
    )
    assert connect(NAME).configuration.host == "https://h"
    assert asked == [NAME]


def test_the_dns_endpoint_is_taken_where_it_lets_traffic_in(api):
    """Its certificate is a public one, so that no authority of the cluster's is needed."""
    dns = {"endpoint": "gke-x.us-central1.gke.goog", "allowExternalTraffic": True}
    api.body = {"controlPlaneEndpointsConfig": {"dnsEndpointConfig": dns}, "endpoint": "10.0.0.2"}
    found = gke_configuration(NAME, token=lambda: "t", container_api=api.url)
    assert (found.host, found.ssl_ca_cert) == ("https://gke-x.us-central1.gke.goog", None)


def said(code, message):
    return {"error": {"code": code, "message": message, "status": "X"}}


ANSWERS = {
    "not allowed": (403, said(403, 'Required "container.clusters.get"'), PolicyRefused, "container.clusterViewer"),
    "not signed in": (401, said(401, "Request had invalid authentication credentials"), PolicyRefused, "invalid"),
    "no such cluster": (404, said(404, "Not found: projects/p"), SettingsRejected, "gcloud container clusters list"),
    "its own trouble": (503, said(503, "unavailable"), DependencyFailed, "unavailable"),
    "trouble without words": (500, {}, DependencyFailed, "HTTP 500"),
    "no JSON": (200, b"<html>", DependencyFailed, "Hint"),
    "being made": (200, {"status": "PROVISIONING"}, DependencyFailed, "no endpoint"),
    "no certificate": (200, {"endpoint": "10.0.0.2", "masterAuth": {}}, DependencyFailed, "no certificate"),
    "a broken certificate": (
        200, {"endpoint": "10.0.0.2", "masterAuth": {"clusterCaCertificate": "ä"}}, DependencyFailed, "base64",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("status", "body", "error", "says"), ANSWERS.values(), ids=ANSWERS)
def test_what_stands_in_the_way_is_said(api, status, body, error, says):
    api.status, api.body = status, body
    with pytest.raises(error, match=says):
        gke_configuration(NAME, token=lambda: "t", container_api=api.url)


@pytest.mark.parametrize("name", ["gke:", "gke:llm", "gke:p/l/c/d", "gke:project/../clusters", "gke:my-project/l/C?x"])
def test_what_names_no_cluster_asks_nobody(api, name):
    with pytest.raises(SettingsRejected, match="gke:PROJECT/LOCATION/CLUSTER"):
        gke_configuration(name, token=lambda: "t", container_api=api.url)
    assert api.asked == []


def test_without_an_identity_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "absent.json"))
    with pytest.raises(DependencyFailed, match="no access token was made"):
        GoogleTokens().token()
