"""sre-agent mcp: operator tools for AI clients, over standard input and output or over HTTP on this machine."""

from __future__ import annotations

import argparse
import sys

from agent.errors import DISTRIBUTION, ExtraMissing, SettingsRejected

USAGE = """examples:
  sre-agent mcp                 the client starts this process and talks to it over stdin and stdout
  sre-agent mcp --http 8931     the client connects to http://127.0.0.1:8931/mcp

No tool approves anything: a person approves a proposal in the console, in Slack, by a signed webhook or with
sre-agent approve. docs/mcp.md has a block of settings for each client."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Name the arguments of the contract."""
    parser.epilog, parser.formatter_class = USAGE, argparse.RawDescriptionHelpFormatter
    parser.add_argument("--http", type=int, metavar="PORT", help="serve streamable HTTP on 127.0.0.1 instead")


def run(args: argparse.Namespace) -> int:
    """Serve until the client leaves, or Ctrl-C.

    Raises:
        SettingsRejected: The extra `mcp` is not installed, or the port is none.
    """
    if args.http is not None and not 1 <= args.http <= 65_535:
        raise SettingsRejected(f"--http {args.http} was refused", why="it is no port", hint="give 1 to 65535")
    try:
        import mcp  # noqa: F401 - whether the extra is there
    except ImportError as error:
        raise ExtraMissing("the MCP server was not started", extra="mcp", package="mcp") from error
    from importlib.metadata import version

    from agent.entrypoints.mcp.open_tools import open_tools
    from agent.entrypoints.mcp.server import build_server

    tools, release = open_tools(), version(DISTRIBUTION)
    if args.http is None:
        build_server(tools, version=release).run("stdio")
        return 0
    from agent.entrypoints.mcp.serve import serve_http
    from agent.entrypoints.telemetry import configure_log

    configure_log(as_json=True, quiet=True)
    print(f"MCP: http://127.0.0.1:{args.http}/mcp   (Ctrl-C stops)", file=sys.stderr)
    serve_http(tools, port=args.http, version=release)
    return 0
