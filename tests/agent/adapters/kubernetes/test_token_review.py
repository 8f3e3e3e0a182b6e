"""TokenReview at a real API server: tokens of a service account, made for us and for others."""

import base64

import pytest

from agent.adapters.kubernetes.token_review import ClusterTokenReview
from agent.app.stores import machine_clock
from agent.entrypoints.http.kubernetes_token import AUDIENCE, reviewed_token
from agent.errors import DependencyFailed

pytestmark = pytest.mark.xdist_group("kube")


def made_for(cluster, audience, seconds=3600):
    """A token of the namespace's own service account, as ``kubectl create token`` asks for it."""
    path = f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/default/token"
    spec = {"expirationSeconds": seconds} | ({"audiences": [audience]} if audience else {})
    kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    return cluster.api.create(path, kind | {"spec": spec})["status"]["token"]


def test_the_bearer_of_a_token_for_us_is_named(kube_cluster):
    cluster = kube_cluster()
    review, token = ClusterTokenReview(cluster.api), made_for(cluster, AUDIENCE)
    name = f"system:serviceaccount:{cluster.namespace}:default"
    assert review.username(token, audience=AUDIENCE) == name
    assert reviewed_token(token, review=review, now=machine_clock().now()).username == name


def test_no_other_token_names_anybody(kube_cluster):
    """For the API server itself, for somebody else, a user's static one, a service account's secret, changed, none."""
    cluster = kube_cluster()
    review, good = ClusterTokenReview(cluster.api), made_for(cluster, AUDIENCE)
    account = cluster.api.get(f"/api/v1/namespaces/{cluster.namespace}/serviceaccounts/default")
    secret = cluster.api.get(f"/api/v1/namespaces/{cluster.namespace}/secrets/{account['secrets'][0]['name']}")
    others = [
        made_for(cluster, None),
        made_for(cluster, "vault"),
        cluster.plane.tokens["admin"],
        good[:-2],
        "a.b.c",
        base64.b64decode(secret["data"]["token"]).decode(),
    ]
    assert [review.username(token, audience=AUDIENCE) for token in others] == [None] * len(others)


def test_without_the_right_to_ask_nobody_is_recognised(kube_cluster):
    cluster = kube_cluster()
    review = ClusterTokenReview(cluster.open("repairer"))
    with pytest.raises(DependencyFailed, match="tokenreviews"):
        review.username(made_for(cluster, AUDIENCE), audience=AUDIENCE)
