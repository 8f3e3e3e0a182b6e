"""S16: a secret that was coloured, escaped or split by invisible letters reaches no place where people or machines read."""

import json
import re
import sqlite3
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from agent.adapters.notifier.webhook import WebhookNotifier
from agent.app.redaction import redact
from agent.core.incident.phase import Phase
from agent.entrypoints.cli.commands import classify, incidents
from agent.entrypoints.service import entry_message
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.presentation.slack_card import card

PROBE = "gemma4-26b-l4-startup-probe"
SERVICE = "gemma4-26b-qat-l4"
SECRET = "Zq3Xv9Kd7Rm2Wp8Ht5Lc4N"

LINES = {
    "structlog": f"\x1b[31mRuntimeError\x1b[0m: login failed \x1b[36mdb_password \x1b[0m= \x1b[35m{SECRET}\x1b[0m",
    "rich": f"\x1b[1;31mRuntimeError: \x1b[0mdb_password=\x1b[32m'{SECRET[:8]}\x1b[0m\x1b[1;36m{SECRET[8:]}'\x1b[0m",
    "zero-width": f"RuntimeError: db_pass\u200bword={SECRET[:9]}\u200b{SECRET[9:]}",
    "url": f"RuntimeError: GET https%3A%2F%2Fbot%3A{SECRET}%40hub.example%2F failed",
    "json": 'RuntimeError: body was {\\"db_password\\u0022: \\"' + SECRET + '\\"}',
    "netrc": f"RuntimeError: machine hub.example login bot password {SECRET}",
    "mysqldump": f"RuntimeError: mysqldump -u root -p{SECRET} ended with 2",
}


def left(text):
    """Whether a run of the secret can be read, with colours off, invisible letters out and escapes undone once."""
    shown = re.sub(r"\x1b\[[0-9;]*m|\\u001b\[[0-9;]*m|\\u\{1b\}\[[0-9;]*m|\u200b|\\u200b|\\u\{200b\}", "", text)
    return any(SECRET[at : at + 6] in shown for at in range(len(SECRET) - 5))


def entry(text, number):
    return {
        "insertId": f"disguised-{number}",
        "timestamp": "2026-11-21T02:59:00Z",
        "severity": "ERROR",
        "logName": "projects/p/logs/run.googleapis.com%2Fvarlog%2Fsystem",
        "resource": {
            "type": "cloud_run_revision",
            "labels": {"service_name": SERVICE, "revision_name": f"{SERVICE}-00099-inj"},
        },
        "textPayload": text,
    }


class Kept:
    """A post that keeps what was sent."""

    def __init__(self):
        self.sent = ""

    def send(self, _method, _url, *, headers, body):
        self.sent += body.decode()
        return 200


def tables(folder: Path):
    found = {}
    for path in sorted(folder.rglob("*.sqlite")):
        with sqlite3.connect(path) as database:
            for (table,) in database.execute("select name from sqlite_master where type = 'table'").fetchall():
                found[f"{path.name}:{table}"] = repr(database.execute(f'select * from "{table}"').fetchall())
    return found


def test_no_sink_shows_a_disguised_secret(journey, tmp_path, capsys):
    """Page, Slack, webhook, command line, log and every table, for every disguise at once."""
    from agent.entrypoints.console.app import make_app

    told = journey(PROBE)
    for number, text in enumerate(LINES.values()):
        told.installation.bus.publish(entry_message(entry(text, number)))
    queued = tables(tmp_path)
    told.until(lambda i: i.phase is Phase.ASKED, limit_s=300)
    told.go(30, step=10)
    store = told.installation.store
    client = make_app(told.installation.contexts[Owner.DECIDE], settings=told.installation.settings).test_client()
    seen = {"log": "".join(capsys.readouterr())} | queued | tables(tmp_path)
    found = store.incidents(Query(limit=100))
    assert any("inj" in (i.revision or "") for i in found)
    for incident in found:
        timeline = store.timeline(incident.id)
        seen[f"page {incident.id}"] = client.get(f"/incidents/{incident.id}").get_data(as_text=True)
        seen[f"slack {incident.id}"] = repr(card(incident, timeline, redact=redact, console_url="http://127.0.0.1"))
        incidents._one(incident, as_json=False)
        incidents._one(incident, as_json=True)
        seen[f"command line {incident.id}"] = "".join(capsys.readouterr())
    assert [where for where, text in seen.items() if left(text)] == []


@pytest.mark.parametrize("how", LINES)
def test_what_an_earlier_version_stored_is_redacted_where_it_leaves(journey, capsys, how):
    """Rows from before these rules hold the secret; page, Slack, webhook and command line do not show it."""
    from agent.entrypoints.console.app import make_app

    told = journey(PROBE)
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    rows = tuple(line.with_(line=LINES[how]) for line in asked.diagnosis.evidence)
    assert rows
    old = asked.with_(diagnosis=asked.diagnosis.with_(evidence=rows, root_cause=LINES[how]))
    world = told.installation.contexts[Owner.DECIDE]

    class Old:
        """A store that still has the old row."""

        def __getattr__(self, name):
            return getattr(world.store, name)

        def load(self, _id):
            return old

        def incidents(self, _query):
            return (old,)

    client = make_app(replace(world, store=Old()), settings=told.installation.settings).test_client()
    incidents._one(old, as_json=False)
    incidents._one(old, as_json=True)
    kept = Kept()
    clock = told.installation.clock
    webhook = WebhookNotifier(
        "https://h.example/x",
        secrets=[b"0" * 24],
        client=kept,
        clock=clock,
        redact=redact,
        plan_of=lambda _: old.plan,
        console_url="http://127.0.0.1",
    )
    webhook.tell(old, world.store.timeline(old.id), reference=None)
    sinks = {
        "webhook": kept.sent,
        "page": client.get(f"/incidents/{old.id}").get_data(as_text=True),
        "slack": repr(card(old, (), redact=redact, console_url="http://127.0.0.1")),
        "command line": "".join(capsys.readouterr()),
    }
    assert [name for name, text in sinks.items() if left(text)] == []
    assert all("RuntimeError" in sinks[name] for name in ("page", "command line", "webhook"))


@pytest.mark.parametrize("how", LINES)
@pytest.mark.parametrize("form", ["text", "log entry", "record"])
def test_classify_redacts_like_everything_else(tmp_path, capsys, how, form):
    """Evidence, fields and the words for people, for a plain log, a log entry and a record of a corpus."""
    log = f"INFO 11-22 10:00:00 [core.py:1] starting\ntorch.OutOfMemoryError: CUDA out of memory {LINES[how]}\n"
    body = {"text": log, "log entry": json.dumps(entry(log, 1)), "record": json.dumps({"id": 1, "log": log})}[form]
    source = tmp_path / "in"
    source.write_text(body)
    for as_json in (True, False):
        classify.run(SimpleNamespace(sources=[str(source)], json=as_json))
        said = capsys.readouterr().out
        assert "out of memory" in said
        assert not left(said)
