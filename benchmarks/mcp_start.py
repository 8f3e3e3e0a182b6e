"""P15: the MCP server's start to `tools/list` beside an empty server's, and `fit` by tool beside the command.

Run: python benchmarks/mcp_start.py [--pairs 9]

Each pair is run in turns, so that what else the machine does weighs on both. A session is a process of its own, spoken
to over its standard input and output by the SDK's client; the time is from before the process is started until the
answer is there. `fit` is asked three ways: in a session that is open already (the first question, and the later ones),
and as a command, whose time holds its start.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time

from mcp import Client, StdioServerParameters

START_PROMISED = 1.3
FIT_PROMISED = 1.2
EMPTY = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("empty")
@server.tool()
def nothing() -> int:
    return 0
server.run("stdio")
"""
OURS = ["-m", "agent.entrypoints.cli.main", "mcp"]
ASKED = {
    "model": "google/gemma-4-26B-A4B-it-qat-w4a16-ct",
    "accelerator": "nvidia-l4",
    "flags": "--max-model-len 16384",
}
COMMAND = ["fit", "--json", *(word for name, value in ASKED.items() for word in (f"--{name}", value))]


def environment(folder: str) -> dict[str, str]:
    own = {"STORE": f"sqlite:{folder}", "HF_HUB_OFFLINE": "1"}
    return {**os.environ, **own}  # noqa: TID251 - the environment of the children


async def listed(words: list[str], folder: str) -> float:
    """Return the seconds from before the start to the answer of tools/list."""
    began = time.perf_counter()
    server = StdioServerParameters(command=sys.executable, args=words, env=environment(folder))
    async with Client(server) as client:
        assert (await client.list_tools()).tools
        return time.perf_counter() - began


async def fits(folder: str, times: int) -> list[float]:
    """Return the seconds of each of several questions in one session."""
    server = StdioServerParameters(command=sys.executable, args=OURS, env=environment(folder))
    took = []
    async with Client(server) as client:
        await client.list_tools()
        for _ in range(times):
            began = time.perf_counter()
            assert not (await client.call_tool("fit", ASKED)).is_error
            took.append(time.perf_counter() - began)
    return took


def command(folder: str) -> float:
    began = time.perf_counter()
    words = [sys.executable, "-m", "agent.entrypoints.cli.main", *COMMAND]
    ran = subprocess.run(words, env=environment(folder), capture_output=True, check=False)
    assert ran.returncode in {0, 1}, ran.stderr
    return time.perf_counter() - began


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pairs", type=int, default=9)
    pairs = arguments.parse_args().pairs
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(listed(OURS, folder))  # compiled files
        both = [(asyncio.run(listed(OURS, folder)), asyncio.run(listed(["-c", EMPTY], folder))) for _ in range(pairs)]
        asked = [(asyncio.run(fits(folder, 5)), command(folder)) for _ in range(pairs)]
    start = statistics.median(ours / empty for ours, empty in both)
    first = statistics.median(took[0] / whole for took, whole in asked)
    later = statistics.median(statistics.median(took[1:]) / whole for took, whole in asked)
    print(
        f"start to tools/list: {statistics.median(o for o, _ in both):.2f} s, an empty server "
        f"{statistics.median(e for _, e in both):.2f} s: {start:.2f}x (promised {START_PROMISED}x)"
    )
    print(
        f"fit in an open session: {statistics.median(t[0] for t, _ in asked) * 1000:.0f} ms at first, "
        f"{statistics.median(x for t, _ in asked for x in t[1:]) * 1000:.0f} ms then; sre-agent fit --json "
        f"{statistics.median(w for _, w in asked) * 1000:.0f} ms: {first:.2f}x at first, {later:.2f}x then "
        f"(promised {FIT_PROMISED}x)"
    )
    return 0 if start <= START_PROMISED and max(first, later) <= FIT_PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
