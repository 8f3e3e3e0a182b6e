"""The Slack app asks for what the code needs, and for nothing else."""

import re
from pathlib import Path

from agent.entrypoints.http.decide import SLACK_PATH

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = (ROOT / "infra" / "slack-manifest.yaml").read_text()
SCOPE_OF = {"chat.postMessage": "chat:write", "chat.update": "chat:write"}
"""https://docs.slack.dev/reference/methods, read 2026-11-21."""


def test_the_scopes_are_those_of_the_methods_we_call():
    called = set()
    for path in (ROOT / "agent" / "adapters" / "notifier").rglob("*.py"):
        called |= set(
            re.findall(r'"((?:chat|views|users|conversations|files|reactions)\.[A-Za-z.]+)"', path.read_text())
        )
    assert called == set(SCOPE_OF)
    asked = re.search(r"scopes:\n\s+bot:\n((?:\s+- \S+\n)+)", MANIFEST)
    assert {line.strip("- \n") for line in asked.group(1).splitlines()} == set(SCOPE_OF.values())
    assert not re.search(r"(?m)^\s+user:", MANIFEST)


def test_presses_go_to_the_path_that_answers_them():
    [url] = re.findall(r"request_url: (\S+)", MANIFEST)
    assert url == f"https://DECIDE_URL{SLACK_PATH}"
    assert "is_enabled: true" in MANIFEST
    assert "socket_mode_enabled: false" in MANIFEST


def test_the_page_names_what_the_manifest_asks_for():
    page = (ROOT / "docs" / "slack.md").read_text()
    assert all(f"`{scope}`" in page for scope in SCOPE_OF.values())
    assert "DECIDE_URL" in page
