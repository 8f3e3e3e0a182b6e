"""A whole project on this machine: the real functions, Google's emulators, and everything else on its own wire.

    region = parts.Region("p")                                # Cloud Run, its logs, its metadata server, and a vLLM
    region.put("gemma", serving="gemma-00004-h7x")
    project = Project(pubsub, firestore, region, folder, free_port, ("gemma",))
    project.sink(region.failed_start("gemma"))
    asked = project.asked("gemma")
    project.close(), region.close()

Time is the real one; the service's waits are set to seconds.
"""

import json
import time
from pathlib import Path

from agent.adapters.bus.pubsub import PubSubBus
from agent.adapters.bus.quarantine.firestore import FirestoreQuarantine
from agent.adapters.clock import SystemClock
from agent.adapters.store.firestore.control import FirestoreControlStore
from agent.adapters.store.firestore.documents import Documents
from agent.adapters.store.firestore.store import FirestoreStore
from agent.app.stores import CONTROL_DATABASE, STATE_DATABASE
from agent.core.decision.signed_request import standard_headers, webhook_secret
from agent.core.incident.phase import Phase
from agent.entrypoints.service import entry_message
from agent.ports.bus import Message, Topic
from agent.ports.store import Query
from tests.journeys import deployed as processes
from tests.journeys import fake_slack as slack
from tests.journeys import region as parts
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
SLACK_SECRET = b"8f742231b10e8888abcd99yyyzzz85a5"
HOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
WAITS = {"QUIET_S": "0.2", "SETTLE_S": "1", "VERIFY_WINDOW_S": "3", "POLL_S": "0.2"}
POLICY = """
change_window_s = 1
[[approvers]]
name = "Ada"
slack = "U0ADA"
webhook = "pager"
services = ["gemma4-*"]
"""


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
                processes.clean_environ(**(common | self._settings(name))),
                folder / f"{name}.log",
            )
            for name in self.FUNCTIONS
        }
        try:
            self._open(pubsub, firestore)
        except BaseException:
            self.close()
            raise

    def _open(self, pubsub, firestore):
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
        # One instance of `decide` is kept warm; a cold one on a busy machine says 503, and to send it again.
        until(lambda: self.answer_by_webhook("p-none-1", "0" * 64, "approve")[0] == 404, limit_s=150)

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
        """Ada presses a button of the newest message; again where she is told that nothing was recorded."""
        url = self.functions["decide"].url + "/slack/actions"
        return heard(lambda: self.slack.press(url, action, user="U0ADA", now=parts.now(), times=times))

    def answer_by_webhook(self, plan, digest, answer):
        """The pager answers for Ada; what it was told."""
        data = {"plan": plan, "plan_digest": digest, "answer": answer}
        body = json.dumps({"type": "plan.answered", "timestamp": parts.now().isoformat(), "data": data}).encode()

        def send():
            signed = standard_headers(f"msg-{plan}", body, secrets=(webhook_secret(HOOK_SECRET),), at=parts.now())
            return [self.functions["decide"].post(body, "/webhooks/pager", signed)]

        return heard(send)[0]

    def minute(self):
        """One beat of the scheduler, and what the sink let through meanwhile."""
        self.sink(self.region.news())
        status, said = self.functions["on_tick"].post(b"{}")
        assert status in {200, 503}, said  # rivals wrote first: the next tick goes on

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


def heard(send, *, limit_s=20):
    """Send again while the answer is that nothing was recorded: status and body of each answer."""
    ends = time.monotonic() + limit_s
    while True:
        answers = [(status, body) for status, body, *_ in send()]
        if time.monotonic() > ends or all(status != 503 for status, _ in answers):
            return answers


def watched(project, services):
    """services.toml with the example's service under each of the names."""
    text = (parts.EXAMPLE / "services.toml").read_text().replace("example-project", project)
    head, _, row = text.partition("[[service]]")
    row = "\n".join(line for line in row.splitlines() if not line.startswith("scenario"))
    return head + "\n".join(f"[[service]]{row.replace('gemma4-26b-qat-l4', name)}\n" for name in services)
