"""Who calls over HTTP: the bearer of a Google ID token, the same that opens `decide`."""

import asyncio
from typing import Final

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier

from agent.entrypoints.http.authenticator import TOKEN_HEADER, Authenticator
from agent.errors import SreError

SCOPE: Final = "operator"


def bearer_token() -> str | None:
    """Return the ID token of whoever makes the present call; None over standard input, or where nobody signs in."""
    shown = get_access_token()
    return shown.token if shown is not None else None


def bearer() -> str | None:
    """Return who makes the present call, as their token proves it; None where nobody signs in."""
    shown = get_access_token()
    return shown.subject if shown is not None else None


class IdTokenVerifier(TokenVerifier):
    """Accepts a token that our own authenticator accepts; any doubt refuses.

    Args:
        authenticator: Checks key, audience, issuer, times and address.
    """

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whose token it is, or None."""
        try:
            person = await asyncio.to_thread(self._authenticator.operator, {TOKEN_HEADER: token})
        except SreError:
            return None
        until = int(person.until.timestamp())
        return AccessToken(token=token, client_id=person.who, subject=person.who, scopes=[SCOPE], expires_at=until)
