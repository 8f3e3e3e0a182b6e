"""The page of the MCP server lists the tools that there are, and what it tells a client to run runs."""

import asyncio
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from tools.mcp_page import page

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ("Antigravity CLI", "Gemini CLI", "Claude Code", "Cursor", "VS Code")


def test_the_committed_page_is_current():
    """A tool that was added, renamed or changed in what it may do is on the page, or this fails."""
    assert (ROOT / "docs" / "mcp.md").read_text() == page(), "run: python -m tools.mcp_page > docs/mcp.md"


def blocks():
    """The settings for each client, by its name at the head of the paragraph before them."""
    found = re.findall(r"^([A-Z][\w ]+), `[^`]+`[^\n]*:\n\n```json\n(.*?)```", page(), re.MULTILINE | re.DOTALL)
    return {name: json.loads(text) for name, text in found}


def servers():
    return [(block.get("mcpServers") or block["servers"])["sre-agent"] for block in blocks().values()]


def test_each_client_has_a_block_of_the_form_that_it_reads():
    """VS Code has ``servers``, the others ``mcpServers``; all of them start the same command."""
    assert tuple(blocks()) == CLIENTS
    assert [list(block) for block in blocks().values()] == [["mcpServers"]] * 4 + [["servers"]]
    assert {json.dumps({k: v for k, v in server.items() if k != "type"}) for server in servers()} == {
        json.dumps({k: v for k, v in servers()[0].items() if k != "type"})
    }
    assert {server.get("type", "stdio") for server in servers()} == {"stdio"}


@pytest.mark.slow
def test_the_command_of_the_blocks_starts_and_answers(tmp_path):
    """Started as a client does it: by its name on the PATH, with the block's own environment."""
    block = servers()[0]
    where = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = shutil.which(block["command"], path=where)
    if command is None:
        pytest.fail("sre-agent is not installed beside this Python")
    env = block["env"] | {"STORE": f"sqlite:{tmp_path}", "PATH": where, "HOME": str(tmp_path)}
    assert block["env"]["STORE"].startswith("sqlite:/")

    async def ask():
        async with Client(StdioServerParameters(command=command, args=block["args"], env=env, cwd=tmp_path)) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    assert "propose_change" in asyncio.run(ask())


def test_the_line_for_claude_code_says_what_its_block_says():
    (line,) = re.findall(r"`claude mcp add ([^`]+)`", page())
    name, _, command = line.partition(" --env ")
    setting, _, words = command.partition(" -- ")
    block = servers()[0]
    assert (name, words) == ("sre-agent", f"{block['command']} {' '.join(block['args'])}")
    assert setting == f"STORE={block['env']['STORE']}"
