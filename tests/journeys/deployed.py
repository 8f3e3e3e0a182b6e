"""The functions as they are deployed: each in a process of its own, pushed to by Google's emulator."""

import contextlib
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from agent.adapters.bus.pubsub import PubSubBus
from agent.app import Role, build_app
from agent.core.decision.decision import Channel, Choice, Person
from agent.entrypoints.service import entry_message, feed
from agent.ports.bus import Topic
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.settings import read_settings
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision

ROOT = Path(__file__).resolve().parents[2]
FUNCTION_OF = {
    Topic.LOG_EVENTS: "on_log_event",
    Topic.ALERTS: "on_alert",
    Topic.INCIDENTS: "on_incident",
    Topic.DECISIONS: "on_decision",
}
ALL = (*FUNCTION_OF.values(), "on_tick", "ingest", "console")


class Function:
    """One function under functions-framework; its log is what Cloud Logging would read."""

    def __init__(self, name, port, environ, log, *, source=None, python=sys.executable, cwd=ROOT):
        self.name = name
        self.url = f"http://127.0.0.1:{port}"
        self.log = log
        command = [python, "-m", "functions_framework", "--target", name, "--host", "127.0.0.1", "--port", str(port)]
        command += ["--source", str(source or ROOT / "functions" / f"{name}.py")]
        self.home = tempfile.mkdtemp(
            prefix="home-"
        )  # short and its own, as in a container: gunicorn puts a socket there
        with log.open("ab") as out:
            self.process = subprocess.Popen(command, env=environ | {"HOME": self.home}, cwd=cwd, stdout=out, stderr=out)

    def answers(self, limit_s=60):
        """Wait until it listens; it says 405 to a GET without doing anything."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            assert self.process.poll() is None, f"{self.name} ended: {self.log.read_text()[-2000:]}"
            with contextlib.suppress(OSError):
                return self.get()
            time.sleep(0.02)
        raise AssertionError(f"{self.name} did not listen within {limit_s} s: {self.log.read_text()[-2000:]}")

    def get(self, path="/"):
        return self._ask(urllib.request.Request(self.url + path))

    def post(self, body, path="/", headers=None):
        return self._ask(urllib.request.Request(self.url + path, data=body, headers=headers or {}, method="POST"))

    def post_head(self, length, path="/", headers=None):
        """Say that so many bytes come, send none, and return the status: who refuses them may not wait for them."""
        with contextlib.closing(http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=60)) as connection:
            connection.putrequest("POST", path)
            for name, value in {"Content-Length": str(length), **(headers or {})}.items():
                connection.putheader(name, value)
            connection.endheaders()
            return connection.getresponse().status

    def told(self):
        """Return its log's lines that are JSON, and those that are not."""
        lines = [line for line in self.log.read_text().splitlines() if line.strip()]
        return [json.loads(line) for line in lines if line.startswith("{")], [n for n in lines if not n.startswith("{")]

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        shutil.rmtree(self.home, ignore_errors=True)

    @staticmethod
    def _ask(request):
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def clean_environ(**more):
    """Return an environment in which only what is named here is set."""
    kept = {key: value for key, value in os.environ.items() if key in {"PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV"}}
    return kept | {"PYTHONPATH": str(ROOT), "THREADS": "4", "PYTHONDONTWRITEBYTECODE": "1"} | more


class Deployed:
    """All functions of one project, the sink and the scheduler in front of them, and a person behind."""

    def __init__(self, emulator, project, folder, example, free_port, functions=ALL, source=None, **environ):
        self.emulator, self.project = emulator, project
        self.words = {
            "STORE": f"sqlite:{folder / 'state'}",
            "BUS": f"pubsub:{project}",
            "PUBSUB_EMULATOR_HOST": emulator.host,
            "PLATFORM": f"rehearsal:{ROOT / 'examples' / example}",
            **environ,
        }
        self.functions = {
            name: Function(
                name,
                free_port(),
                clean_environ(**self.words, CRASH_FUNCTION=name),
                folder / f"{name}.log",
                source=source,
            )
            for name in functions
        }
        for topic in Topic:
            path = emulator.topic(topic, project)
            name = FUNCTION_OF.get(topic)
            if name in self.functions:
                emulator.push(f"{topic}-push", path, self.functions[name].url + "/", project)
        self.bus = PubSubBus(project, emulator=emulator.host)
        settings = read_settings(self.words)
        self.decider = build_app(settings, Role.DECIDE)
        self.outside = build_app(settings, Role.TICK)  # the stand-in platform, seen from outside
        self._since = None
        for function in self.functions.values():
            function.answers()

    def stop(self):
        for function in self.functions.values():
            function.process.terminate()
        for function in self.functions.values():
            function.stop()

    close = stop

    def sink(self, entry):
        """Publish an entry as a log sink does: without any attribute of ours."""
        self.bus.publish(entry_message(entry).with_(attributes={}))

    def minute(self):
        """One beat of the scheduler, and of the rehearsal's own sink."""
        self._since = feed(self.outside, self._since)
        with contextlib.suppress(OSError, http.client.HTTPException):  # it may be killed in the middle
            self.functions["on_tick"].post(b"{}")

    def incidents(self):
        return sorted(self.outside.store.incidents(Query(limit=1000)), key=lambda i: (i.opened_at, i.id))

    def until(self, reached, *, limit_s=60, ticks=True):
        """Let the scheduler tick until the first incident is as wanted; without ticks messages alone must do it."""
        until = time.monotonic() + limit_s
        while time.monotonic() < until:
            if ticks:
                self.minute()
            found = self.incidents()
            if found and reached(found[0]):
                return found[0]
            time.sleep(0.1)
        logs = "\n".join(f.log.read_text()[-1500:] for f in self.functions.values())
        raise AssertionError(
            f"not reached in {limit_s} s: {[(i.phase, i.ended_why) for i in self.incidents()]}\n{logs}"
        )

    def approve(self, plan):
        word = DecisionRequest(
            plan=plan, answer=Choice.APPROVE, by=Person(who="ada", channel=Channel.COMMAND_LINE, verified=False)
        )
        return plan_to_decision(self.decider.contexts[Owner.DECIDE], word)
