"""A decision by webhook: signed by a sender that we know, used once, about exactly one plan."""

import re
from collections.abc import Mapping
from datetime import datetime

from pydantic import Field, ValidationError

from agent.core.decision.decision import Choice
from agent.core.decision.signed_request import Signed, Unsigned, check_standard
from agent.core.value import Moment, Value, mistakes_of
from agent.errors import InputRejected
from agent.strict_json import read_object

BODY_LIMIT = 20_480
TYPE = "plan.answered"

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


class Data(Value):
    """The answer itself; ``plan_digest`` is what ``plan.proposed`` said."""

    plan: str = Field(pattern=r"^p-[A-Za-z0-9-]{1,80}$")
    plan_digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    answer: Choice
    why: str = Field(default="", max_length=1000)


class WebhookRecorded(Value):
    """What was recorded of a webhook's answer; ``decided`` is false while other people must approve too."""

    plan: str
    answer: Choice
    who: str
    at: Moment
    decided: bool


class WebhookAnswer(Value):
    """An answer to a plan as a webhook sends it."""

    type: str = Field(pattern=f"^{re.escape(TYPE)}$")
    timestamp: str = Field(max_length=64)
    data: Data


class WebhookDecision(Value):
    """What a sender said, and who it is."""

    signed: Signed
    sender: str
    data: Data


def read_webhook_decision(
    sender: str, headers: Mapping[str, str], body: bytes, *, secrets: Mapping[str, tuple[bytes, ...]], now: datetime
) -> WebhookDecision:
    """Read a decision.

    Args:
        sender: The identity that the path names; only its own secrets count.
        headers: Of the request, in any case.
        body: As it came.
        secrets: By identity.
        now: The time, UTC.

    Raises:
        Unsigned: Unknown sender, or a wrong, old or missing signature.
        InputRejected: Signed, and no answer to a plan.
    """
    if len(body) > BODY_LIMIT:
        raise InputRejected(
            "the decision was not read", why=f"it has {len(body)} bytes, at most {BODY_LIMIT} are taken", hint=_HINT
        )
    known = secrets.get(sender, ()) if _NAME.fullmatch(sender) else ()
    signed = check_standard(headers, body, secrets=known or (b"\0" * 32,), sender=sender, now=now)
    if not known:
        raise Unsigned(
            "the request was not taken", why="no sender has that name", hint="use a name of WEBHOOK_DECIDERS"
        )
    try:
        envelope = WebhookAnswer.model_validate(read_object(body, what="decision", limit=BODY_LIMIT))
    except ValidationError as error:
        why = "; ".join(mistakes_of(error))[:500]
        raise InputRejected("the decision was not read", why=why, hint=_HINT) from error
    return WebhookDecision(signed=signed, sender=sender, data=envelope.data)


_HINT = "send the body that docs/webhooks.md shows"
