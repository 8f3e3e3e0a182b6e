"""Outgoing events: signed with every secret, in order, sent until taken, with one id for ever."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from agent.adapters.notifier.webhook import GONE, DeliveryRefused, WebhookNotifier
from agent.core.change.request import ChangeRequest
from agent.core.decision.approvals import Approval, Approvals
from agent.core.decision.decision import Channel, Choice, Decision
from agent.core.decision.signed_request import webhook_secret
from agent.core.incident.incident import Event, Incident
from agent.core.incident.phase import EventKind, Phase
from agent.core.plan.action import Difference, Restart
from agent.core.plan.plan import FitSummary, Plan, Risk, Rollout
from agent.core.plan.proof import Proof
from agent.core.service.serving import Target
from agent.errors import DependencyFailed, PolicyRefused
from agent.presentation.event_types import REQUEST_TYPE_OF, TYPE_OF
from tests.published_event import require_published

OLD, NEW = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
NOW = datetime.now(UTC)


class Clock:
    """The machine's: the published library asks it too, and refuses a signature that is minutes old."""

    def now(self):
        return datetime.now(UTC)


class Post:
    """Takes what it is told to take, and notes what came."""

    def __init__(self, *answers):
        self.answers, self.got = list(answers), []

    def send(self, method, url, *, headers, body):
        self.got.append((url, body, headers))
        require_published(body)
        answer = self.answers.pop(0) if self.answers else 200
        if isinstance(answer, Exception):
            raise answer
        return answer

    def types(self):
        return [json.loads(body)["type"] for _, body, _ in self.got]


def notifier(post, redact=str, plans=()):
    secrets = [webhook_secret(OLD), webhook_secret(NEW)]
    made = {p.id: p for p in plans}
    url = "https://hooks.example.com/x"
    return WebhookNotifier(
        url, secrets=secrets, client=post, clock=Clock(), redact=redact, plan_of=made.get,
        console_url="https://sre.example.com/", owner_of={"gemma": "slack:#llm"}.get,
        routing_key_of={"gemma": "team-llm"}.get,
    )  # fmt: skip


def incident(what="a"):
    return Incident(
        id="inc-a", service="gemma", platform="cloud_run", opened_at=NOW, phase_at=NOW, quiet_since=NOW, ended_why=what
    )


def timeline(*phases, what="what"):
    return tuple(Event(at=NOW + timedelta(seconds=n), phase=p, what=what) for n, p in enumerate(phases))


WHOLE = (
    Phase.OPEN,
    Phase.DIAGNOSED,
    Phase.DIAGNOSED,
    Phase.PLANNED,
    Phase.ASKED,
    Phase.APPROVED,
    Phase.APPLYING,
    Phase.APPLYING,
    Phase.VERIFYING,
    Phase.RESOLVED,
)
TYPES = ["incident.opened", "plan.proposed", "plan.decided", "plan.applied", "incident.resolved"]


def test_each_step_is_one_event_in_order():
    post = Post()
    assert notifier(post).tell(incident(), timeline(*WHOLE), reference=None) == str(len(WHOLE))
    assert post.types() == TYPES


def test_only_what_is_new_is_sent():
    post = Post()
    reference = notifier(post).tell(incident(), timeline(*WHOLE[:5]), reference=None)
    notifier(post).tell(incident(), timeline(*WHOLE), reference=reference)
    assert post.types() == TYPES


def test_both_secrets_of_a_rotation_verify_with_the_published_library():
    post = Post()
    notifier(post).tell(incident(), timeline(*WHOLE), reference=None)
    for _, body, headers in post.got:
        for secret in (OLD, NEW):
            assert Webhook(secret).verify(body, dict(headers))["data"]["incident"] == "inc-a"


@pytest.mark.parametrize("status", [301, 400, 401, 404, 429, 500, 503])
def test_what_was_not_taken_is_sent_again_with_the_same_id_before_anything_later(status):
    post = Post(200, status)
    with pytest.raises(DeliveryRefused) as caught:
        notifier(post).tell(incident(), timeline(*WHOLE), reference=None)
    assert caught.value.code == status
    notifier(post).tell(incident(), timeline(*WHOLE), reference=None)
    ids = [headers["webhook-id"] for _, _, headers in post.got]
    assert ids[:2] == ids[2:4]
    assert len(set(ids)) == len(TYPES)


def test_gone_ends_it():
    post = Post(410)
    assert notifier(post).tell(incident(), timeline(*WHOLE), reference=None) == GONE
    assert notifier(post).tell(incident(), timeline(*WHOLE), reference=GONE) == GONE
    assert len(post.got) == 1


@pytest.mark.parametrize("error", [PolicyRefused, DependencyFailed])
def test_an_address_that_may_not_be_reached_is_a_failure_of_telling(error):
    with pytest.raises(DependencyFailed):
        notifier(Post(error("no", why="private", hint="x"))).tell(incident(), timeline(*WHOLE), reference=None)


def test_secrets_and_escapes_do_not_leave():
    post = Post()
    hostile = "key hf_secret \x1b[31m \u202e https://evil.example"
    told = tuple(event.with_(by=hostile) for event in timeline(*WHOLE[:-1], Phase.ESCALATED, what=hostile))
    ended = incident(hostile).with_(phase=Phase.ESCALATED)
    notifier(post, redact=lambda t: t.replace("hf_secret", "[secret]")).tell(ended, told, reference=None)
    assert (
        sum("[secret]" in json.loads(body)["data"]["what"] for _, body, _ in post.got) == 2
    )  # who answered, and why it ended
    for _, body, _ in post.got:
        text = body.decode()
        assert "hf_secret" not in text
        assert "\\u001b" not in text
        assert "\u202e" not in text
        assert "https://evil" not in text
        assert len(body) < 20_000


def plan(number, text):
    return Plan(
        id=f"p-a-{number}", incident="inc-a", run="live", ordinal=number, cause="engine_dead", why=text,
        actions=(Restart(),), difference=(Difference(path="flag --x", before=None, after=text),),
        target=Target(service="gemma", uid="u", generation=1, digest="d"), rollout=Rollout.IN_PLACE,
        fit_before=FitSummary(fits=None, sentence="-"), fit_after=FitSummary(fits=True, sentence="-"),
        cost_before_usd_per_h=None, cost_after_usd_per_h=float(number), risk=Risk.LOW, undo=text, if_unanswered="-",
        proof=Proof.NOT_NEEDED, made_at=NOW, expires_at=NOW + timedelta(minutes=number),
    )  # fmt: skip


def about(phase, of, seconds, cause="engine_dead"):
    told = {} if of is None else {"plan": of.id, "plan_digest": of.digest}
    return Event(at=NOW + timedelta(seconds=seconds), phase=phase, what=phase.lower(), by="Ada", cause=cause, **told)


def answered(of, answer):
    return Decision(
        plan=of.id, plan_digest=of.digest, incident="inc-a", answer=answer, who="U0ADA", name="Ada", verified=True,
        channel=Channel.SLACK, at=NOW, expires_at=of.expires_at, target=of.target, policy="", prior_template="",
    )  # fmt: skip


def test_an_event_that_is_sent_late_tells_of_the_plan_of_its_own_moment():
    """A receiver that was down meanwhile can tell which plan each event was about, and what stands now."""
    first, second = plan(1, "more memory"), plan(2, "less context")
    history = (
        about(Phase.DIAGNOSED, None, 0, cause="unknown"),
        about(Phase.ASKED, first, 1),
        about(Phase.REJECTED, first, 2),
        about(Phase.PLANNED, second, 3, cause="oom_load"),
        about(Phase.ASKED, second, 4, cause="oom_load"),
        about(Phase.APPROVED, second, 5, cause="oom_load"),
    )
    now = incident().with_(phase=Phase.APPROVED, plan=second, decision=answered(second, Choice.APPROVE))
    post = Post()
    notifier(post, plans=(first, second)).tell(now, history, reference=None)
    told = [json.loads(body) for _, body, _ in post.got]
    assert [(t["type"], t["data"]["phase"], t["data"]["plan"]) for t in told] == [
        ("incident.opened", "DIAGNOSED", None),
        ("plan.proposed", "ASKED", "p-a-1"),
        ("plan.decided", "REJECTED", "p-a-1"),
        ("plan.proposed", "ASKED", "p-a-2"),
        ("plan.decided", "APPROVED", "p-a-2"),
    ]
    digests = [t["data"]["plan_digest"] for t in told]
    assert digests == [None, first.digest, first.digest, second.digest, second.digest]
    assert [t["data"].get("why") for t in told] == [None, *["more memory"] * 2, *["less context"] * 2]
    assert [t["data"]["difference"][0]["after"] for t in told[1:]] == [*["more memory"] * 2, *["less context"] * 2]
    assert [t["data"]["cause"] for t in told] == ["unknown", *["engine_dead"] * 2, *["oom_load"] * 2]
    assert told[2]["data"]["decision"] == {"answer": "reject", "who": "Ada"}
    assert told[4]["data"]["decision"] == {"answer": "approve", "who": "Ada", "channel": "slack"}
    for each in told:
        assert each["data"]["current"] == {
            "phase": "APPROVED", "cause": "unknown", "root_cause": None, "plan": "p-a-2", "plan_digest": second.digest,
            "approvals": None, "title": "gemma: something is wrong, cause not known yet; fix approved", "severity": "error",
            "impact": "not known whether anything serves", "evidence": None, "owner": "slack:#llm", "routing_key": "team-llm",
            "url": "https://sre.example.com/incidents/inc-a",
        }  # fmt: skip


def test_a_plan_that_is_not_the_one_of_the_event_lends_it_no_words():
    """Gone from the store, or another digest: its name is told, and nothing that might be another plan's."""
    first = plan(1, "more memory")
    history = (about(Phase.ASKED, first, 0),)
    for kept in ((), (first.with_(why="changed"),)):
        post = Post()
        now = incident().with_(phase=Phase.ASKED, plan=first)
        notifier(post, plans=kept).tell(now, history, reference=None)
        [(_, body, _)] = post.got
        data = json.loads(body)["data"]
        assert (data["plan"], data["plan_digest"]) == (first.id, first.digest)
        assert not {"why", "difference", "risk"} & set(data)


def request(**changes):
    fields = {
        "id": "rq-0123456789ab", "service": "gemma", "actions": (Restart(),), "why": "key hf_secret", "asker": "ada",
        "channel": Channel.CONSOLE, "verified": True, "made_at": NOW, "superseded": ("rq-ba9876543210",),
    }  # fmt: skip
    return ChangeRequest(**(fields | changes))


def test_votes_and_reminders_are_events_of_their_own_though_the_phase_stays():
    of = plan(1, "more memory")
    kinds = (None, EventKind.VOTE_GIVEN, EventKind.VOTE_WITHDRAWN, EventKind.REMINDED, None)
    history = tuple(
        about(Phase.ASKED, of, n).with_(kind=kind, what=f"line {n}", by="Ada") for n, kind in enumerate(kinds)
    )
    approvals = Approvals(plan=of.id, needed=2, given=(Approval(name="Ada", channel="slack", verified=True, at=NOW),))
    post = Post()
    now = incident().with_(phase=Phase.ASKED, plan=of, approvals=approvals)
    notifier(post, plans=(of,)).tell(now, history, reference=None)
    assert post.types() == ["plan.proposed", "plan.vote_given", "plan.vote_withdrawn", "plan.reminded"]
    told = [json.loads(body)["data"] for _, body, _ in post.got]
    assert [(t["what"], t["by"]) for t in told[1:]] == [("Line 1.", "Ada"), ("Line 2.", "Ada"), ("Line 3.", "Ada")]
    assert {t["plan_digest"] for t in told} == {of.digest}
    assert told[0]["current"]["approvals"] == {"needed": 2, "given": ["Ada"], "frozen_by": []}


@pytest.mark.parametrize(
    ("phases", "types"),
    [
        ((Phase.OPEN, Phase.PLANNED, Phase.ASKED, Phase.WITHDRAWN, Phase.CLOSED),
         ["request.made", "plan.proposed", "request.withdrawn", "request.closed"]),
        ((Phase.OPEN, Phase.REFUSED, Phase.CLOSED), ["request.made", "request.refused", "request.closed"]),
        ((Phase.OPEN, Phase.ASKED, Phase.APPROVED, Phase.REFUSED, Phase.CLOSED),
         ["request.made", "plan.proposed", "plan.decided", "plan.refused", "request.closed"]),
        ((Phase.OPEN, Phase.ASKED, Phase.APPROVED, Phase.APPLYING, Phase.VERIFYING, Phase.RESOLVED),
         ["request.made", "plan.proposed", "plan.decided", "plan.applied", "request.resolved"]),
        ((Phase.OPEN, Phase.ASKED, Phase.ROLLING_BACK, Phase.ESCALATED),
         ["request.made", "plan.proposed", "request.escalated"]),
    ],
)  # fmt: skip
def test_a_request_is_told_from_its_beginning_to_its_end(phases, types):
    of = plan(1, "x")
    planless = {Phase.OPEN} | ({Phase.REFUSED, Phase.CLOSED} if Phase.ASKED not in phases else set())
    history = tuple(about(phase, None if phase in planless else of, n) for n, phase in enumerate(phases))
    life = incident().with_(id="rq-0123456789ab", request=request(), phase=phases[-1])
    post = Post()
    redact = lambda text: text.replace("hf_secret", "[secret]")  # noqa: E731
    notifier(post, plans=(of,), redact=redact).tell(life, history, reference=None)
    assert post.types() == types
    asked = json.loads(post.got[0][1])["data"]
    assert asked["what"] == "Ada asked for a change."
    assert asked["request"] == {
        "asker": "ada", "verified": True, "channel": "console", "why": "key [secret]", "kinds": ["restart"],
        "supersedes": ["rq-ba9876543210"], "waits_for": None,
    }  # fmt: skip


def test_a_request_whose_place_was_taken_says_so():
    history = (about(Phase.OPEN, None, 0), about(Phase.WITHDRAWN, None, 1).with_(kind=EventKind.SUPERSEDED))
    post = Post()
    life = incident().with_(id="rq-0123456789ab", request=request(), phase=Phase.WITHDRAWN)
    notifier(post).tell(life, history, reference=None)
    assert post.types() == ["request.made", "request.superseded"]


PAGE = (Path(__file__).resolve().parents[4] / "docs" / "webhooks.md").read_text()


def test_the_guide_lists_every_event_and_every_field_that_is_sent():
    """The guide of outgoing events, row by row, against what the code can send."""
    rows = re.findall(r"^\| `((?:incident|plan|request)\.\w+)` \| .+ \|(.*)\|$", PAGE, re.MULTILINE)
    listed = dict(rows)
    assert len(rows) == len(listed)
    assert set(listed) == {*TYPE_OF.values(), *REQUEST_TYPE_OF.values()}
    fields = {
        name: set(re.findall(r"`(\w+)`", words.partition("and `approvals`")[0]))
        for name, words in re.findall(
            r"^\| `(plan|decision|request|current)`(?: fields)? \| (.+) \|$", PAGE, re.MULTILINE
        )
    }
    every = set(re.findall(r"`(\w+)`", PAGE.partition("Every other event has ")[2].partition(". The other fields")[0]))
    of = plan(1, "x")
    for kind, words in listed.items():
        data = sent_as(kind, of)
        extra = set(data) - (every - {"live"} - {"rq"})
        wanted = set() if "`plan` fields" not in words else fields["plan"] - {"path", "before", "after"}
        wanted |= {name for name in ("decision", "request") if f"`{name}`" in words.replace("`plan` fields", "")}
        assert extra == wanted, kind
    assert set(sent_as("plan.decided", of)["decision"]) <= fields["decision"]
    assert set(sent_as("request.made", of)["request"]) == fields["request"]
    assert set(sent_as("plan.proposed", of)["current"]) == fields["current"] | {"approvals"}


def sent_as(kind, of):
    """The data of one event of a type, as it is sent."""
    said = next(when for table in (REQUEST_TYPE_OF, TYPE_OF) for when, name in table.items() if name == kind)
    phase = said if isinstance(said, Phase) else Phase.WITHDRAWN if said is EventKind.SUPERSEDED else Phase.ASKED
    event = about(phase, None if kind.startswith("request.") else of, 1)
    event = event.with_(kind=said if isinstance(said, EventKind) else None)
    life = incident().with_(phase=phase, plan=of, request=request() if kind.startswith("request.") else None)
    life = life.with_(id="rq-0123456789ab") if life.request is not None else life
    post = Post()
    notifier(post, plans=(of,)).tell(life, (event,), reference=None)
    [(_, body, _)] = post.got
    told = json.loads(body)
    assert told["type"] == kind
    return told["data"]
