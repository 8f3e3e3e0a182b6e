"""The MCP server over HTTP on this machine, with sign-in where the installation accepts ID tokens."""

import socket
from typing import Final

from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl

from agent.entrypoints.http.decide_service import make_authenticator
from agent.entrypoints.mcp.server import OperatorServer, OperatorTools, build_server
from agent.entrypoints.mcp.sign_in import SCOPE, IdTokenVerifier
from agent.errors import SettingsRejected
from agent.settings import Settings, read_settings

HOST: Final = "127.0.0.1"


def http_server(tools: OperatorTools, settings: Settings, *, port: int, version: str) -> OperatorServer:
    """Return the server for HTTP: open to this machine alone, or to bearers of ID tokens where audiences are set."""
    if not settings.id_token_audiences:
        return build_server(tools, version=version)
    authenticator = make_authenticator(settings)
    auth = AuthSettings(
        issuer_url=AnyHttpUrl("https://accounts.google.com"),
        resource_server_url=AnyHttpUrl(f"http://127.0.0.1:{port}/mcp"),
        required_scopes=[SCOPE],
        validate_token_resource=False,  # our own authenticator compares the audience
    )
    return build_server(tools, version=version, auth=auth, verifier=IdTokenVerifier(authenticator))


def serve_http(tools: OperatorTools, *, port: int, version: str) -> None:
    """Serve until Ctrl-C; the guard against DNS rebinding is on, because the address is loopback."""
    import uvicorn

    server = http_server(tools, read_settings(), port=port, version=version)
    web = server.streamable_http_app(stateless_http=True)  # answers as streams of events, which carry progress too
    try:
        listening = socket.create_server((HOST, port))
    except OSError as error:
        raise SettingsRejected(
            f"--http {port} was refused", why=error.strerror or str(error), hint="give another port"
        ) from error
    with listening:
        uvicorn.Server(uvicorn.Config(web, log_level="warning")).run(sockets=[listening])
