"""A whole project on this machine: the real functions, Google's emulators, and everything else on its own wire.

    region = Region("p")                                # Cloud Run, its logs, its metadata server, and a vLLM
    region.put("gemma", serving="gemma-00004-h7x")
    project = Project(pubsub, firestore, region, folder, free_port, ("gemma",))
    project.sink(region.failed_start("gemma"))
    asked = project.asked("gemma")
    project.close(), region.close()

Time is the real one; what a start takes is divided by ``SPEED``, and the service's waits are set to seconds.
"""

import base64
import http.server
import importlib.util
import json
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from agent.adapters.bus.pubsub import PubSubBus
from agent.adapters.bus.quarantine_firestore import FirestoreQuarantine
from agent.adapters.clock import SystemClock
from agent.adapters.platform.rehearsal_scenario import load_scenario, moment
from agent.adapters.store.firestore import FirestoreStore
from agent.adapters.store.firestore_control import FirestoreControlStore
from agent.adapters.store.firestore_documents import Documents
from agent.bootstrap.shelves import CONTROL_DATABASE, STATE_DATABASE
from agent.core.phase import Phase
from agent.core.signed_request import standard_headers, webhook_secret
from agent.core.value import digest
from agent.entrypoints.service import entry_message
from agent.ports.bus import Message, Topic
from agent.ports.store import Query

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
SPEED = 600  # the recorded start of 787 s takes 1.3 s
SLACK_SECRET = b"8f742231b10e8888abcd99yyyzzz85a5"
HOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
WAITS = {"QUIET_S": "0.2", "SETTLE_S": "1", "VERIFY_WINDOW_S": "1.5", "POLL_S": "0.2"}
POLICY = """
change_window_s = 1
[[approvers]]
name = "Ada"
slack = "U0ADA"
webhook = "pager"
services = ["gemma4-*"]
"""


def beside(name, folder=Path(__file__).parent):
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


worlds = beside("cloud_run_world", ROOT / "tests" / "contracts")
logging_server = beside("cloud_logging_server", ROOT / "tests" / "contracts")
processes = beside("deployed")
slack = beside("fake_slack")


class Metadata:
    """The metadata server as Google's library asks it: an ID token of this identity for an audience."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                url = urlsplit(self.path)
                body = b"computeMetadata/\n"
                if url.path.endswith("/identity"):
                    body = id_token(parse_qs(url.query)["audience"][0]).encode()
                elif url.path.endswith("/service-accounts/default/"):
                    body = json.dumps({"email": "sre-tick@example.com", "scopes": [], "aliases": ["default"]}).encode()
                self.send_response(200)
                self.send_header("Metadata-Flavor", "Google")
                self.send_header("Content-Type", "application/json" if body.startswith(b"{") else "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        address = f"127.0.0.1:{self._server.server_port}"
        self.environ = {"GCE_METADATA_HOST": address, "GCE_METADATA_IP": address}

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def id_token(audience):
    """A token that names its audience and lasts an hour; nobody here checks its signature."""
    claims = {"aud": audience, "iss": "https://accounts.google.com", "exp": int(time.time()) + 3600}
    parts = ({"alg": "RS256", "typ": "JWT"}, claims)
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return f"{head}.{body}.c2lnbmVk"


def audience_of(bearer):
    """Whom a token was made for, None where it is no token of this metadata server."""
    if not bearer.startswith("Bearer "):
        return None
    body = bearer.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["aud"]


@dataclass
class Start:
    """One start of an instance that the region made."""

    service: str
    revision: str
    began_at: datetime
    fails_at: datetime | None
    told: bool = False


@dataclass
class Region:
    """Cloud Run with its logs: services that start as it was recorded, by the length of their startup probe.

    Attributes:
        doomed: Nothing that is started from now on becomes ready, however long it is waited for.
    """

    project: str
    doomed: bool = False
    starts: list[Start] = field(default_factory=list)

    def __post_init__(self):
        self.scenario = load_scenario(EXAMPLE / "scenario.toml")
        self.came_up = next(o for o in self.scenario.outcome if o.name == "the startup probe of 1740 s")
        self.vllm = worlds.vllm.VllmHttp()
        self.vllm.script.words = ["one", *(f", {n}" for n in range(2, 12))]
        self.vllm.script.pause_s = 1 / self.scenario.outcome[1].measured[2].value  # tokens/s as recorded
        self.logs = logging_server.LoggingStandIn()
        self.logs.start()
        self.api = worlds.server.StandIn(now=now, fate=self._fate, gpus_allowed=1)
        self.api.start()
        self.metadata = Metadata()
        self.environ = {
            "CLOUD_RUN_EMULATOR_HOST": f"127.0.0.1:{self.api.port}",
            "CLOUD_LOGGING_EMULATOR_HOST": f"127.0.0.1:{self.logs.port}",
            **self.metadata.environ,
        }

    def close(self):
        self.api.stop()
        self.logs.stop()
        self.vllm.stop()
        self.metadata.close()

    def put(self, service, *, serving=None):
        """A service whose newest revision did not come up; ``serving`` is the one before, which has the traffic."""
        body = json.dumps(worlds.body_of(service, self.scenario.live.config, ready=False))
        body = json.loads(body.replace("example-project", self.project).replace("us-central1", "us-east4"))
        revisions = f"{body['name']}/revisions/"
        newest = f"{service}-00005-k2f"
        body |= {"uri": self.vllm.url, "generation": "5", "observedGeneration": "4"}
        body["latestCreatedRevision"] = revisions + newest
        body["latestReadyRevision"] = revisions + serving if serving else ""
        body["terminalCondition"]["message"] = self.scenario.live.message
        self.api.put(body)
        failed = self.scenario.live.recording
        last = max(moment(e) for e in self.scenario.events(failed))
        self._start(service, newest, now() - (last - failed.began_at), speed=1, up=False)
        self.starts[-1].told = True  # its entries are the test's to publish

    def service(self, service):
        """The ``Service`` message as it stands."""
        return self.api._kept[f"projects/{self.project}/locations/us-east4/services/{service}"].pb

    def updates(self, service):
        return [u for u in self.api.updates if u.service.name.endswith(f"/{service}")]

    def failed_start(self, service):
        """What the sink lets through of the newest revision's start, which failed."""
        start = next(s for s in self.starts if s.service == service)
        return self._entries(start, speed=1)

    def news(self):
        """What the sink lets through of starts that failed since it was last asked."""
        over = [s for s in self.starts if not s.told and s.fails_at is not None and now() >= s.fails_at]
        for start in over:
            start.told = True
        return [entry for start in over for entry in self._entries(start, speed=SPEED)]

    def _fate(self, template):
        probe = template.containers[0].startup_probe
        budget_s = probe.initial_delay_seconds + probe.period_seconds * probe.failure_threshold
        up = budget_s > self.came_up.after_s and not self.doomed
        after_s = (self.came_up.after_s if up else budget_s) / SPEED
        service = template.revision.rsplit("-sre-", 1)[0]
        self._start(service, template.revision, now(), speed=SPEED, up=up, ends_s=after_s)
        return worlds.server.Fate(up=up, after_s=after_s)

    def _start(self, service, revision, began_at, *, speed, up, ends_s=0):
        fails_at = None if up else began_at + timedelta(seconds=ends_s)
        self.starts.append(Start(service, revision, began_at, fails_at))
        recording = (self.came_up if up else self.scenario.live).recording
        for line in self.scenario.lines(recording):
            at = began_at + (line.at - recording.began_at) / speed
            names = {"service": service, "revision": revision, "instance": instance_of(revision)}
            self.logs.entries.append(logging_server.entry(line.text, at, **names, log="stderr"))

    def _entries(self, start, *, speed):
        recording = self.scenario.live.recording
        for number, entry in enumerate(self.scenario.events(recording)):
            at = start.began_at + (moment(entry) - recording.began_at) / speed
            text = json.dumps(entry).replace(recording.revision, "THE_REVISION")
            text = text.replace(self.scenario.service, start.service).replace("THE_REVISION", start.revision)
            told = json.loads(text.replace("example-project", self.project))
            stamp = at.isoformat(timespec="microseconds").replace("+00:00", "Z")
            told |= {"timestamp": stamp, "receiveTimestamp": stamp, "insertId": digest([start.revision, number])[:20]}
            if "instanceId" in told.get("labels", {}):
                told["labels"]["instanceId"] = instance_of(start.revision)
            yield told


def instance_of(revision):
    return digest(["instance", revision]) * 2


def now():
    return datetime.now(UTC)


class Project:
    """The functions behind push subscriptions, each with the settings that Terraform gives it, and a person in front."""

    FUNCTIONS = ("on_log_event", "on_alert", "on_incident", "decide", "on_decision", "on_tick")
    DEAD = "sre-dead-letter"

    def __init__(self, pubsub, firestore, region, folder, free_port, services):
        self.pubsub, self.region, self.name = pubsub, region, region.project
        self.slack = slack.FakeSlack(SLACK_SECRET)
        (folder / "policy.toml").write_text(POLICY)
        (folder / "services.toml").write_text(watched(region.project, services))
        common = {
            "STORE": f"firestore:{self.name}",
            "BUS": f"pubsub:{self.name}",
            "PLATFORM": f"cloud_run:{self.name}",
            "SERVICES": str(folder / "services.toml"),
            "POLICY": str(folder / "policy.toml"),
            "PUBSUB_EMULATOR_HOST": pubsub.host,
            "FIRESTORE_EMULATOR_HOST": firestore.host,
            "CLOUDSDK_CONFIG": str(folder),  # no identity of whoever runs the test is found
            **WAITS,
        }
        self.functions = {
            name: processes.Function(
                name,
                free_port(),
                processes.clean_environ(**common, **self._settings(name)),
                folder / f"{name}.log",
            )
            for name in self.FUNCTIONS
        }
        self._subscribe()
        self.bus = PubSubBus(self.name, emulator=pubsub.host)
        documents = [
            Documents(self.name, database, client=firestore.client(self.name, database))
            for database in (STATE_DATABASE, CONTROL_DATABASE)
        ]
        self.store = FirestoreStore(documents[0], SystemClock())
        self.control = FirestoreControlStore(documents[1])
        self.quarantine = FirestoreQuarantine(documents[0], SystemClock(), redact=str)
        for function in self.functions.values():
            function.answers()

    def close(self):
        for function in self.functions.values():
            function.process.terminate()
        for function in self.functions.values():
            function.stop()
        self.slack.close()

    def _settings(self, function):
        key = {"RECEIPT_KEY": "k" * 40}
        return {
            "on_incident": {
                "SLACK_TOKEN": slack.TOKEN,
                "SLACK_CHANNEL": "C0SRE",
                "SLACK_API_URL": self.slack.url,
                **self.region.environ,
            },
            "decide": {
                "SLACK_SIGNING_SECRET": SLACK_SECRET.decode(),
                "WEBHOOK_DECIDERS": f"pager={HOOK_SECRET}",
                **key,
            },
            "on_decision": key | self.region.environ,
            "on_tick": self.region.environ,
        }.get(function, {})

    def _subscribe(self):
        self.dead = self.pubsub.topic(self.DEAD, self.name)
        self.dead_pull = self.pubsub.subscribe(f"{self.DEAD}-pull", self.dead, self.name)
        self.topics = {topic: self.pubsub.topic(topic, self.name) for topic in processes.FUNCTION_OF}
        self.push("push")

    def push(self, suffix):
        """Subscribe every function once more to its topic; two subscriptions deliver each message twice."""
        for topic, path in self.topics.items():
            self.pubsub.subscribe(
                f"{topic}-{suffix}",
                path,
                self.name,
                push_config={"push_endpoint": self.functions[processes.FUNCTION_OF[topic]].url + "/"},
                retry_policy={"minimum_backoff": {"seconds": 1}, "maximum_backoff": {"seconds": 2}},
                dead_letter_policy={"dead_letter_topic": self.dead, "max_delivery_attempts": 20},
            )

    def sink(self, entries):
        """Publish entries as a log sink does: without any attribute of ours."""
        for entry in entries:
            self.bus.publish(entry_message(entry).with_(attributes={}))

    def alert(self, sample, service):
        """Publish a recorded alert as Cloud Monitoring does, about the revision that failed."""
        body = (ROOT / "tests" / "data" / "samples" / sample).read_text()
        names = {"gemma4-vllm-00007-abc": f"{service}-00005-k2f", "gemma4-vllm": service}
        for name, ours in {**names, "example-project": self.name, "us-central1": "us-east4"}.items():
            body = body.replace(name, ours)
        self.bus.publish(Message(id="alert", topic=Topic.ALERTS, data=body))

    def asked(self, service):
        """Go on until people can see the buttons of the service's plan."""
        return self.until(service, lambda i: i.phase is Phase.ASKED and i.plan.id in self._offered())

    def _offered(self):
        return {json.loads(b["value"])["plan"] for b in self.slack.buttons().values() if "value" in b}

    def press(self, action, *, times=1):
        """Ada presses a button of the newest message."""
        url = self.functions["decide"].url + "/slack/actions"
        return [
            (status, body) for status, body, _ in self.slack.press(url, action, user="U0ADA", now=now(), times=times)
        ]

    def answer_by_webhook(self, plan, answer):
        data = {"plan": plan.id, "plan_digest": plan.digest, "answer": answer}
        body = json.dumps({"type": "plan.answered", "timestamp": now().isoformat(), "data": data}).encode()
        signed = standard_headers(f"msg-{plan.id}", body, secrets=(webhook_secret(HOOK_SECRET),), at=now())
        return self.functions["decide"].post(body, "/webhooks/pager", signed)

    def minute(self):
        """One beat of the scheduler, and what the sink let through meanwhile."""
        self.sink(self.region.news())
        status, said = self.functions["on_tick"].post(b"{}")
        assert status == 200, said

    def incidents(self, service):
        found = self.store.incidents(Query(limit=100))
        return sorted((i for i in found if i.service == service), key=lambda i: (i.opened_at, i.id))

    def until(self, service, reached, *, limit_s=40):
        """Let the scheduler tick until the service's incident is as wanted."""
        ends = time.monotonic() + limit_s
        while time.monotonic() < ends:
            self.minute()
            found = self.incidents(service)
            if found and reached(found[-1]):
                return found[-1]
            time.sleep(0.05)
        logs = "\n".join(f"== {n}\n{f.log.read_text()[-3000:]}" for n, f in self.functions.items())
        stood = [(i.phase, i.ended_why) for i in self.incidents(service)]
        raise AssertionError(f"not reached in {limit_s} s: {stood}\n{logs}")


def watched(project, services):
    """services.toml with the example's service under each of the names."""
    text = (EXAMPLE / "services.toml").read_text().replace("example-project", project)
    head, _, row = text.partition("[[service]]")
    row = "\n".join(line for line in row.splitlines() if not line.startswith("scenario"))
    return head + "\n".join(f"[[service]]{row.replace('gemma4-26b-qat-l4', name)}\n" for name in services)
