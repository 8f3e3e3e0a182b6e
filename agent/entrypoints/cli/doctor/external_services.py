"""What other services say: the model's endpoints, Slack, `decide`, and everybody's clock."""

from collections.abc import Iterator
from datetime import UTC, datetime

from agent.app.channels import missing_extra, operator_token
from agent.app.http_clients import ask, decide_client
from agent.entrypoints.cli.doctor.finding import Finding, bad, good, off, unknown
from agent.entrypoints.http.authenticator import TOKEN_HEADER
from agent.errors import DependencyFailed, SreError
from agent.ports.json_probe import LIMIT_S, ProbeReply
from agent.settings import Settings

SLACK = "https://slack.com/api"
SCOPES = frozenset({"chat:write"})  # chat.postMessage and chat.update, facts of docs.slack.dev read 2026-11-21
SKEW_S = 60.0  # Slack and webhooks refuse at 300 s; a minute is a warning in time


class Clocks:
    """Collects what others believe the time is."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._worst = 0.0
        self._source: str | None = None

    def note_time(self, name: str, reply: ProbeReply) -> ProbeReply:
        """Take the time of a reply."""
        if reply.at is not None:
            skew = (self._now - reply.at.astimezone(UTC)).total_seconds()
            if self._source is None or abs(skew) > abs(self._worst):
                self._worst, self._source = skew, name
        return reply

    def findings(self) -> Iterator[Finding]:
        """Say how far this machine's clock is off."""
        if self._source is None:
            yield unknown(
                "clock",
                "no other clock to compare with",
                "set up Slack, a model endpoint or the cloud; or trust NTP",
            )
        elif abs(self._worst) > SKEW_S:
            way = "ahead of" if self._worst > 0 else "behind"
            says = f"{abs(self._worst):.0f} s {way} {self._source}"
            yield bad("clock", says, "set the clock (NTP): signatures older than 300 s are refused")
        else:
            yield good("clock", f"within {abs(self._worst):.0f} s of {self._source}")


def model_endpoints(settings: Settings, clocks: Clocks) -> Iterator[Finding]:
    """Look whether an endpoint answers and serves the model; none is woken for that, only ``/models`` is read."""
    if not settings.model_endpoints:
        yield off("model", "no endpoint: diagnoses are made by rules alone")
    for url in settings.model_endpoints:
        yield _endpoint(settings, url.rstrip("/"), clocks)


def _endpoint(settings: Settings, url: str, clocks: Clocks) -> Finding:
    check = f"model:{url}"
    key = settings.model_api_key
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    try:
        reply = clocks.note_time(url, ask(f"{url}/models", headers=headers))
    except DependencyFailed as error:
        return bad(check, error.why, "start it, or correct MODEL_ENDPOINTS; until then rules diagnose alone")
    if reply.status in {401, 403}:
        return bad(check, f"it answers {reply.status}", "set MODEL_API_KEY, or let this account call the service")
    if reply.status != 200:
        return bad(check, f"it answers {reply.status} to /models", "does the address end in /v1?")
    if settings.model_name and settings.model_name not in reply.models:
        return bad(check, f"it serves {reply.models}, not {settings.model_name!r}", "correct MODEL_NAME")
    return good(check, f"serves {', '.join(reply.models) or 'a model'}")


def slack(settings: Settings, clocks: Clocks, *, base: str = SLACK) -> Iterator[Finding]:
    """Look at the token and what it may do."""
    if settings.slack_token is None:
        yield off("slack", "no token: nobody is asked in Slack")
        return
    if settings.slack_signing_secret is None and settings.embedded:
        says = "SLACK_SIGNING_SECRET is unset: presses of buttons are refused"
        yield bad("slack-signing", says, "take it from the app's page, Basic Information")
    token = settings.slack_token.get_secret_value()
    reply = clocks.note_time("slack", ask(f"{base}/auth.test", headers={"Authorization": f"Bearer {token}"}, data={}))
    if not reply.body.get("ok"):
        yield bad("slack", f"it refuses the token: {reply.body.get('error', reply.status)}", "set SLACK_TOKEN anew")
        return
    scopes = {word.strip() for word in reply.headers.get("x-oauth-scopes", "").split(",")}
    lacking = sorted(SCOPES - scopes)
    if lacking:
        yield bad("slack", f"the token lacks {', '.join(lacking)}", "add the scope in the app and install it again")
    else:
        yield good("slack", f"team {reply.body.get('team', '?')}, may write")


def pagerduty(settings: Settings, clocks: Clocks) -> Iterator[Finding]:
    """Look whether PagerDuty can be reached; whether it takes the key is only known from an event, and none is sent.

    Raises:
        DependencyFailed: It does not answer.
    """
    if settings.pagerduty_routing_key is None:
        yield off("pagerduty", "PAGERDUTY_ROUTING_KEY is unset: it pages nobody")
        return
    clocks.note_time("pagerduty", ask(settings.pagerduty_url))
    yield good("pagerduty", f"{settings.pagerduty_url} answers; the key is not tried: no event is sent")


def notify_targets(settings: Settings) -> Iterator[Finding]:
    """Look whether what tells the targets is installed; nothing is sent."""
    names = ", ".join(target.name for target in settings.notify_targets)
    if not names:
        yield off("notify", "NOTIFY_TARGETS is unset: no further target is told")
    elif hint := missing_extra():
        yield bad("notify", "apprise is not installed: the targets are not notified", hint)
    else:
        yield good("notify", f"{names}; try one: sre-agent notify test NAME")


KILL_SWITCH_PATH = "/kill-switch"  # the smallest thing that only approvers may read


def decide_function(settings: Settings) -> Iterator[Finding]:
    """Ask how the kill switch stands: first as nobody, then as the operator; nothing is changed.

    Raises:
        DependencyFailed: `decide` does not answer.
    """
    if settings.decide_url is None:
        if settings.embedded:
            yield off("decide", "decisions are recorded by the files of this machine")
        else:
            says = "DECIDE_URL is unset: approve, reject, stop, incidents and audit have nowhere to go"
            yield unknown("decide", says, "set it to the output decide_url of infra/")
        return
    status = ask(f"{settings.decide_url}{KILL_SWITCH_PATH}").status
    if status == 401:
        yield good("decide", "answers, and wants to know who asks")
    else:
        yield bad("decide", f"said {status} to nobody, want 401", "is DECIDE_URL the address of `decide`?")
        return
    try:
        token = operator_token(settings)
    except DependencyFailed as error:
        yield unknown("decide-as-you", error.why, error.hint)
        return
    try:
        decide_client(settings.decide_url, timeout_s=LIMIT_S).get(KILL_SWITCH_PATH, headers={TOKEN_HEADER: token})
    except SreError as error:
        yield bad("decide-as-you", error.why, error.hint)
    else:
        yield good("decide-as-you", "takes your word: you are an approver")
