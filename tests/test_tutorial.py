"""The tutorial's commands in its order, beside the service that it starts."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agent.adapters.store.sqlite.database import SqliteDatabase
from agent.adapters.store.sqlite.schema import Kind
from agent.adapters.store.sqlite.store import SqliteStore
from agent.core.incident.phase import Phase
from agent.ports.store import Query
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(r"<!-- run by tests/test_tutorial.py -->\n```\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.strip().splitlines()]
ENDS = {"fit": 1, "advise": 0}
AGENT = [sys.executable, "-m", "agent.entrypoints.cli.main"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An empty folder in which the tutorial's first command has come as far as asking."""
    place = tmp_path_factory.mktemp("tutorial")
    (first,) = re.findall(r"^sre-agent (up .*)$", PAGE, re.MULTILINE)
    with (place / "up.log").open("wb") as log:
        service = subprocess.Popen(
            [*AGENT, *shlex.split(first), "--port", "0"],
            cwd=place, env=environ(place), stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        until((place / "state" / "sre.sqlite").exists, limit_s=90)
        with closing(SqliteDatabase(place / "state" / "sre.sqlite", Kind.STATE)) as database:
            store = SqliteStore(database)
            until(lambda: any(i.phase is Phase.ASKED for i in store.incidents(Query())), limit_s=90)
        yield place
    finally:
        service.send_signal(signal.SIGTERM)
        assert service.wait(timeout=60) == 0


def environ(place):
    return {**os.environ, "STORE": f"sqlite:{place / 'state'}", "PYTHONPATH": str(ROOT)}


def run(place, command):
    return subprocess.run(
        [*AGENT, *shlex.split(command)],
        cwd=place, env=environ(place), capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip


@pytest.mark.guide
def test_the_commands_of_the_tutorial_do_what_it_says(folder):
    """In order; each ends as the contract says, prints something, and shows no traceback."""
    assert len(COMMANDS) >= 8
    for command in COMMANDS:
        program, _, words = command.partition(" ")
        assert program == "sre-agent"
        done = run(folder, words)
        assert done.returncode == ENDS.get(words.split()[0], 0), (command, done.stderr, done.stdout[-400:])
        assert done.stdout.strip(), command
        assert "Traceback" not in done.stderr
    rows = [json.loads(row) for row in run(folder, "incidents list --json").stdout.splitlines()]
    assert {row["phase"] for row in rows} <= {"APPROVED", "APPLYING", "VERIFYING", "RESOLVED"}
