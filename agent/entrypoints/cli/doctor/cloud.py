"""What Google Cloud says: services, rights, sink, subscriptions, lag, dead letters, databases, quota."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from agent.app.http_clients import ask
from agent.catalogue.load_bundled import load_healthy
from agent.catalogue.load_failures import load_failures
from agent.core.intake.sink_filter import sink_filters
from agent.core.planning.runbook_commands import GPU_QUOTAS
from agent.core.service.services import Service, Services
from agent.entrypoints.cli.doctor.external_services import Clocks
from agent.entrypoints.cli.doctor.finding import Finding, bad, good, run_check, unknown
from agent.ports.bus import Topic
from agent.ports.json_probe import ProbeReply

DEADLINE_S = 600
LAG_S = 300.0
PUSHED = (Topic.LOG_EVENTS, Topic.ALERTS, Topic.INCIDENTS, Topic.DECISIONS)
DATABASES = ("sre-state", "sre-control")
EXECUTOR = "sre-on-decision@"
UPDATER = "sreServiceUpdater"

Base = Callable[[str], str]
Token = Callable[[], str]


def google(service: str) -> str:
    """Return the address of one of Google's interfaces."""
    return f"https://{service}.googleapis.com"


class Cloud:
    """The installation of one project, as the operator sees it.

    Args:
        token: Returns an access token of the operator.
        now: This machine's time.
        base: Address of an interface by its name.
    """

    def __init__(self, project: str, token: Token, clocks: Clocks, *, now: datetime, base: Base = google) -> None:
        self._project = project
        self._token = token
        self._clocks = clocks
        self._now = now
        self._base = base

    def findings(self, services: Services) -> Iterator[Finding]:
        """Look at everything; what cannot be looked at does not hide the rest."""
        for service in services.services:
            if service.platform == "cloud_run":
                yield from run_check(f"service:{service.name}", lambda s=service: self._service(s))  # type: ignore[misc]
        for topic in PUSHED:
            yield from run_check(f"subscription:{topic}", lambda t=topic: self._subscription(t))  # type: ignore[misc]
        yield from run_check("sink", lambda: self._sinks(services))
        yield from run_check("sink-lag", self._lag)
        yield from run_check("dead-letters", self._dead_letters)
        for name in DATABASES:
            yield from run_check(f"database:{name}", lambda n=name: self._database(n))  # type: ignore[misc]

    def _get(self, service: str, path: str, data: dict[str, Any] | None = None) -> ProbeReply:
        headers = {"Authorization": f"Bearer {self._token()}"}
        return self._clocks.note_time("Google", ask(f"{self._base(service)}/{path}", headers=headers, data=data))

    def _service(self, service: Service) -> Iterator[Finding]:
        check = f"service:{service.name}"
        path = f"v2/projects/{service.project}/locations/{service.location}/services/{service.name}"
        reply = self._get("run", path)
        if reply.status != 200:
            yield _refused(check, reply, "is it named right in services.toml, with project and location?")
            return
        yield good(check, f"is there, in {service.location}")
        policy = self._get("run", f"{path}:getIamPolicy")
        if policy.status != 200:
            yield _refused(f"permission:{service.name}", policy, "you need run.services.getIamPolicy to look")
        elif _may_update(policy.body):
            yield good(f"permission:{service.name}", "on_decision may update it")
        else:
            says = "on_decision may not update it: an approved plan would be refused"
            yield bad(f"permission:{service.name}", says, "run ./deploy.sh apply")
        yield from self._quota(service)

    def _quota(self, service: Service) -> Iterator[Finding]:
        name = GPU_QUOTAS.get(service.accelerator)
        if name is None:
            return
        check = f"quota:{service.name}"
        path = f"v1/projects/{service.project}/locations/global/services/run.googleapis.com/quotaInfos/{name}"
        reply = self._get("cloudquotas", path)
        if reply.status != 200:
            yield _unseen(check, reply, "look at IAM & Admin, Quotas")
            return
        allowed = _allowed(reply.body, service.location or "")
        if "RtxPro6000" in name and allowed is not None:
            allowed /= 1000  # this quota counts thousandths of a GPU, platform facts 4.5
        need = 2 * service.accelerator_count
        if allowed is None:
            yield unknown(check, f"{name} says nothing of {service.location}", "look at IAM & Admin, Quotas")
        elif allowed < need:
            says = f"{allowed:g} GPUs in {service.location}; a new revision beside the old one needs {need}"
            yield bad(check, says, f"ask for more of {name}, or keep min instances at 0")
        else:
            yield good(check, f"{allowed:g} GPUs in {service.location}")

    def _subscription(self, topic: Topic) -> Iterator[Finding]:
        name = f"{topic}-push"
        check = f"subscription:{name}"
        reply = self._get("pubsub", f"v1/projects/{self._project}/subscriptions/{name}")
        if reply.status != 200:
            yield _refused(check, reply, "run ./deploy.sh apply")
            return
        wrong = []
        if reply.body.get("ackDeadlineSeconds") != DEADLINE_S:
            wrong.append(f"deadline {reply.body.get('ackDeadlineSeconds')} s, want {DEADLINE_S}")
        if not reply.body.get("deadLetterPolicy"):
            wrong.append("no dead letters")
        if not reply.body.get("pushConfig", {}).get("oidcToken"):
            wrong.append("it pushes without a token")
        if wrong:
            yield bad(check, "; ".join(wrong), "run ./deploy.sh apply")
        else:
            yield good(check, "pushes with a token, 600 s, dead letters kept")

    def _sinks(self, services: Services) -> Iterator[Finding]:
        wanted = sink_filters(services, load_failures().signatures, load_healthy())
        for project in sorted({s.project for s in services.services if s.project}):
            for name, query in wanted.items():
                check = f"sink:{project}/{name}"
                reply = self._get("logging", f"v2/projects/{project}/sinks/sre-log-events-{name}")
                if reply.status != 200:
                    yield _refused(check, reply, "run ./deploy.sh apply: without it no log entry arrives")
                elif reply.body.get("disabled"):
                    yield bad(check, "it is disabled", "enable it: without it no log entry arrives")
                elif str(reply.body.get("filter", "")).strip() != query.strip():
                    says = "its filter is not that of this services.toml and catalogue"
                    yield bad(check, says, "run ./deploy.sh apply")
                else:
                    yield good(check, "passes what this version needs")

    def _lag(self) -> Iterator[Finding]:
        metric = "pubsub.googleapis.com/subscription/oldest_unacked_message_age"
        age = self._newest(metric, f"{Topic.LOG_EVENTS}-push")
        if age is None:
            yield good("sink-lag", "nothing waits")
        elif age > LAG_S:
            yield bad("sink-lag", f"the oldest log entry has waited {age:.0f} s", "read the log of sre-on-log-event")
        else:
            yield good("sink-lag", f"the oldest log entry has waited {age:.0f} s")

    def _dead_letters(self) -> Iterator[Finding]:
        metric = "pubsub.googleapis.com/subscription/num_undelivered_messages"
        count = self._newest(metric, f"{Topic.DEAD_LETTER}-pull") or 0
        if count:
            hint = f"gcloud pubsub subscriptions pull {Topic.DEAD_LETTER}-pull --limit=10, then docs/operate.md"
            yield bad("dead-letters", f"{count:.0f} messages were given up", hint)
        else:
            yield good("dead-letters", "none")

    def _newest(self, metric: str, subscription: str) -> float | None:
        words = {
            "filter": f'metric.type="{metric}" AND resource.labels.subscription_id="{subscription}"',
            "interval.startTime": (self._now - timedelta(minutes=10)).isoformat(),
            "interval.endTime": self._now.isoformat(),
        }
        reply = self._get("monitoring", f"v3/projects/{self._project}/timeSeries?{urlencode(words)}")
        points = [point for series in _rows(reply.body.get("timeSeries")) for point in _rows(series.get("points"))[:1]]
        values = [value for point in points for value in point.get("value", {}).values()]
        return max(map(float, values), default=None)

    def _database(self, name: str) -> Iterator[Finding]:
        reply = self._get("firestore", f"v1/projects/{self._project}/databases/{quote(name)}")
        if reply.status != 200:
            yield _refused(f"database:{name}", reply, "run ./deploy.sh apply")
        else:
            yield good(f"database:{name}", f"is there, in {reply.body.get('locationId', '?')}")


def _refused(check: str, reply: ProbeReply, hint: str) -> Finding:
    if reply.status in {401, 403}:
        return _unseen(check, reply, "log in, or ask for the right to look: gcloud auth application-default login")
    said = reply.body.get("error", {})
    return bad(check, f"{reply.status} {said.get('message', '') if isinstance(said, dict) else ''}".strip(), hint)


def _unseen(check: str, reply: ProbeReply, hint: str) -> Finding:
    return unknown(check, f"could not be looked at: {reply.status}", hint)


def _may_update(policy: dict[str, Any]) -> bool:
    return any(
        str(binding.get("role", "")).endswith(f"/{UPDATER}")
        and any(str(member).startswith(f"serviceAccount:{EXECUTOR}") for member in binding.get("members", []))
        for binding in _rows(policy.get("bindings"))
    )


def _allowed(body: dict[str, Any], location: str) -> float | None:
    rows = _rows(body.get("dimensionsInfos"))
    here = [r for r in rows if location in r.get("applicableLocations", []) or not r.get("applicableLocations")]
    values = [r.get("details", {}).get("value") for r in here]
    found = [float(value) for value in values if value is not None]
    return max(found) if found else None


def _rows(value: object) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
