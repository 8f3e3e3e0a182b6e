"""What the whole service in one process shows of itself."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from werkzeug.test import Client

from agent.bootstrap import in_memory
from agent.entrypoints.analysis import SteppedClock
from agent.entrypoints.commands.up import _server
from agent.ports.bus import Message, Topic
from agent.settings import read_settings

ROOT = Path(__file__).resolve().parents[4]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"


@pytest.mark.parametrize("waits_s", [0, 42])
def test_its_console_says_how_old_its_queue_is(tmp_path: Path, waits_s: int) -> None:
    clock = SteppedClock(datetime(2026, 11, 21, 3, 0, tzinfo=UTC))
    settings = read_settings({}, platform=f"rehearsal:{EXAMPLE}")
    installation = in_memory(settings, clock=clock, state=tmp_path)
    if waits_s:
        installation.bus.publish(Message(id="m", topic=Topic.INCIDENTS, data="{}"))
        clock.step(waits_s)
    server = _server(installation, 0)
    here = {"base_url": settings.public_url, "environ_overrides": {"REMOTE_ADDR": "127.0.0.1"}}
    with closing(server.socket):
        said = Client(server.app).get("/metrics", **here).get_data(as_text=True)
    assert f"sre_queue_age_seconds {waits_s}.000\n" in said
