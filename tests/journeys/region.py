"""What stands around the functions in a region: Cloud Run, its logs, its metadata server, and the vLLM that answers.

    region = Region("p")
    region.put("gemma", serving="gemma-00004-h7x")
    region.environ                    # tells a function where all of it is
    region.failed_start("gemma")      # the entries of the rollout that failed, as the sink lets them through
    region.close()

Time is the real one; what a start takes is divided by ``SPEED``.
"""

import base64
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from agent.adapters.platform.rehearsal.scenario import load_scenario, moment
from agent.core.value import digest
from tests.contracts import cloud_logging_server as logging_server
from tests.contracts import cloud_run_world as worlds
from tests.loopback import Loopback

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
SPEED = 600  # the recorded start of 787 s takes 1.3 s


class Metadata:
    """The metadata server as Google's library asks it: an ID token of this identity for an audience."""

    def __init__(self):
        self._server = Loopback(self._answer, methods=["GET"])
        self.close = self._server.close
        address = f"127.0.0.1:{self._server.port}"
        self.environ = {"GCE_METADATA_HOST": address, "GCE_METADATA_IP": address}

    def _answer(self, request):
        url, flavor = urlsplit(request.path), {"Metadata-Flavor": "Google"}
        if url.path.endswith("/identity"):
            return 200, id_token(parse_qs(url.query)["audience"][0]).encode(), flavor | {"Content-Type": "text/html"}
        if url.path.endswith("/service-accounts/default/"):
            return 200, {"email": "sre-tick@example.com", "scopes": [], "aliases": ["default"]}, flavor
        return 200, b"computeMetadata/\n", flavor | {"Content-Type": "text/html"}


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
