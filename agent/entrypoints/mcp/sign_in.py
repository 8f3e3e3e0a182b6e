"""Who calls over HTTP: the bearer of a Google ID token, the same that opens `decide`."""

import asyncio
from typing import Final

from mcp.server.auth.provider import AccessToken, TokenVerifier

from agent.entrypoints.http.authenticator import TOKEN_HEADER, Authenticator
from agent.errors import SreError

SCOPE: Final = "operator"


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
