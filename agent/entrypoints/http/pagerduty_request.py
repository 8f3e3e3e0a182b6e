"""A signed webhook of PagerDuty, version 3: an acknowledgement there is one here, and nothing else is."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from agent.core.decision.decision import Channel, Person
from agent.core.decision.signed_request import TOLERANCE, Signed, Unsigned, check_pagerduty
from agent.core.incident.command import Command
from agent.core.intake.json_fields import missing, part, text, time_of
from agent.core.value import Value
from agent.stages.incident_command import CommandRequest
from agent.strict_json import read_object

BODY_LIMIT: Final = 262_144  # bytes; a webhook over 256 KB is never sent
IDENTITY: Final = "pagerduty"
"""The webhook identity in policy.toml by which PagerDuty may acknowledge."""
ACKNOWLEDGED: Final = "incident.acknowledged"
FRESH: Final = timedelta(hours=1)
"""How long an event is taken: it is sent again for about 20 minutes, behind those that wait before it
(https://docs.pagerduty.com/developer/webhook-behavior, 2026-11-22). Nothing but the signed body says its time."""

_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}")
_OURS: Final = re.compile(r"(?:inc|rq)-[A-Za-z0-9-]{1,80}")
_WHO_CHARS: Final = 200


class PagerDutyEvent(Value):
    """An event that PagerDuty signed, and that is fresh.

    Attributes:
        kind: Such as ``incident.acknowledged``.
        key: The dedup key of the incident: our incident's id, or somebody else's.
        who: Who did it there, as PagerDuty shows them; untrusted text.
    """

    signed: Signed
    kind: str
    key: str
    who: str


def read_pagerduty_event(
    headers: Mapping[str, str], body: bytes, *, secrets: tuple[bytes, ...], now: datetime
) -> PagerDutyEvent:
    """Read an event.

    Args:
        headers: Of the request, in any case.
        body: As it came.
        secrets: Of the subscription; none refuses everything.
        now: The time, UTC.

    Raises:
        Unsigned: A wrong or missing signature, or too old.
        InputRejected: Signed, and no event of PagerDuty.
    """
    check_pagerduty(headers, body, secrets=secrets)
    event = part(read_object(body, what="PagerDuty event", limit=BODY_LIMIT), "event")
    id_, at = text(event, "id"), time_of(event.get("occurred_at"))
    if not _ID.fullmatch(id_) or at is None or not text(event, "event_type"):
        raise missing("PagerDuty event", "id, event_type and occurred_at")
    if not now - FRESH <= at <= now + TOLERANCE:
        raise Unsigned("the request was not taken", why="it is too old", hint="PagerDuty sends the next one by itself")
    signed = Signed(once=f"pagerduty:{id_}", until=at + FRESH)
    key, who = text(part(event, "data"), "incident_key"), text(part(event, "agent"), "summary")
    return PagerDutyEvent(signed=signed, kind=text(event, "event_type")[:100], key=key[:300], who=who[:_WHO_CHARS])


def acknowledgement(event: PagerDutyEvent, is_awaited: Callable[[], bool]) -> CommandRequest | None:
    """Return what an event asks for, or None where it is no acknowledgement of an incident of ours."""
    if event.kind != ACKNOWLEDGED or not _OURS.fullmatch(event.key):
        return None
    return CommandRequest(
        incident=event.key,
        command=Command.ACKNOWLEDGE,
        by=Person(who=IDENTITY, channel=Channel.WEBHOOK, verified=True),
        text=f"acknowledged there by {event.who}" if event.who else "",
        is_awaited=is_awaited,
    )
