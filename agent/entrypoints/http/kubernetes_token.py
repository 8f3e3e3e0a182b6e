"""Kubernetes tokens: issued for this agent, short-lived, and checked by the API server (TokenReview)."""

from datetime import UTC, datetime
from typing import Final

from agent.core.value import Value
from agent.entrypoints.http.signed_token import Kind, lifetime, read_claims
from agent.errors import InputRejected
from agent.ports.token_review import TokenReview

AUDIENCE: Final = "sre-agent"
LONGEST_S: Final = 24 * 3600
CLUSTER_TOKEN: Final = Kind(
    name="the Kubernetes token",
    algorithm="RS256",
    holder="the cluster",
    longest_s=LONGEST_S,
    refused="the Kubernetes token was refused",
    hint=f"get a fresh one: kubectl create token NAME --namespace NAMESPACE --audience {AUDIENCE}",
)
"""https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/token-review-v1/ (2026-11-22)"""


class ClusterToken(Value):
    """Who somebody is, in the cluster's word.

    Attributes:
        username: Such as ``system:serviceaccount:NAMESPACE:NAME``.
        expires_at: When the token ends, as the token says that the API server took for valid.
    """

    username: str
    expires_at: datetime


def reviewed_token(raw: str, *, review: TokenReview, now: datetime) -> ClusterToken:
    """Return what the cluster says about a token.

    What the token claims is looked at for its form and its end alone, and a token that lives for longer than a day is
    refused before anybody is asked: the secret of a service account would be one.

    Args:
        raw: The token as it was sent.
        review: Asks the API server.
        now: The time, UTC.

    Raises:
        InputRejected: Any doubt; ``why`` says which.
        DependencyFailed: The API server could not be asked.
    """
    _, expires = lifetime(read_claims(raw, CLUSTER_TOKEN), CLUSTER_TOKEN, now)
    username = review.username(raw, audience=AUDIENCE)
    if not username:
        raise InputRejected(
            CLUSTER_TOKEN.refused,
            why=f"the API server does not take it for a valid token with the audience {AUDIENCE!r}",
            hint=CLUSTER_TOKEN.hint,
        )
    return ClusterToken(username=username, expires_at=datetime.fromtimestamp(expires, UTC))
