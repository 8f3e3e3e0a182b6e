"""TokenReview: the API server says whose a token is, and whether it was made for us."""

from agent.adapters.kubernetes.client import KubernetesApi
from agent.errors import DependencyFailed, SreError

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"


class ClusterTokenReview:
    """Asks the API server about tokens; needs the right to create token reviews."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api

    def username(self, token: str, *, audience: str) -> str | None:
        """Return the bearer's username; see the port."""
        kind = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
        try:
            answer = self._api.create(PATH, kind | {"spec": {"token": token, "audiences": [audience]}})
        except SreError as error:
            raise DependencyFailed(
                "the token was not checked", why=error.why, hint="look at the rights with: sre-agent doctor"
            ) from error
        status = answer.get("status")
        if not isinstance(status, dict) or status.get("authenticated") is not True:
            return None
        user, audiences = status.get("user"), status.get("audiences")
        # a server that does not know audiences leaves them out: then nothing says that the token is for us
        if not isinstance(audiences, list) or audience not in audiences or not isinstance(user, dict):
            return None
        name = user.get("username")
        return name if isinstance(name, str) and name else None
