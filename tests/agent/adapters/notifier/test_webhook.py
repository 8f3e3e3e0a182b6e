"""Outgoing events: signed with every secret, in order, sent until taken, with one id for ever."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks import Webhook

from agent.adapters.net.guarded_post import Answered
from agent.adapters.notifier.webhook import GONE, NotTaken, WebhookNotifier
from agent.core.incident import Event, Incident
from agent.core.phase import Phase
from agent.core.signed_request import webhook_secret
from agent.errors import DependencyFailed, PolicyRefused

OLD, NEW = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
NOW = datetime.now(UTC)


class Clock:
    def now(self):
        return NOW


class Post:
    """Takes what it is told to take, and notes what came."""

    def __init__(self, *answers):
        self.answers, self.got = list(answers), []

    def post(self, url, body, headers):
        self.got.append((url, body, headers))
        answer = self.answers.pop(0) if self.answers else 200
        if isinstance(answer, Exception):
            raise answer
        return Answered(status=answer)

    def types(self):
        return [json.loads(body)["type"] for _, body, _ in self.got]


def notifier(post, redact=str):
    secrets = [webhook_secret(OLD), webhook_secret(NEW)]
    return WebhookNotifier("https://hooks.example.com/x", secrets=secrets, post=post, clock=Clock(), redact=redact)


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
    with pytest.raises(NotTaken) as caught:
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
        notifier(Post(error("no", why="private", mend="x"))).tell(incident(), timeline(*WHOLE), reference=None)


def test_secrets_and_escapes_do_not_leave():
    post = Post()
    told = timeline(*WHOLE, what="key hf_secret \x1b[31m \u202e https://evil.example")
    notifier(post, redact=lambda t: t.replace("hf_secret", "[secret]")).tell(incident(), told, reference=None)
    for _, body, _ in post.got:
        text = body.decode()
        assert "hf_secret" not in text
        assert "\\u001b" not in text
        assert "\u202e" not in text
        assert "https://evil" not in text
        assert len(body) < 20_000
