"""Token review: who the bearer of a cluster's token is, asked of the cluster itself."""

from typing import Protocol


class TokenReview(Protocol):
    """Asks the API server about a token."""

    def username(self, token: str, *, audience: str) -> str | None:
        """Return the name under which the API server knows the bearer, or None where the token is not valid.

        Args:
            token: The token as it was sent; kept nowhere.
            audience: For whom it must have been made.

        Raises:
            DependencyFailed: The API server did not answer, or does not let us ask; nobody was recognised.
        """
        ...
