"""Where messages go that only tell: a name, an address with its secret, and the events that it is told of."""

import re
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from pydantic import SecretStr

from agent.core.value import Value
from agent.errors import SettingsRejected
from agent.presentation.event_types import EVENT_TYPES

DEFAULT_EVENTS: Final = frozenset(
    {
        "incident.opened",
        "plan.proposed",
        "incident.resolved",
        "incident.escalated",
        "incident.unacknowledged",
        "request.escalated",
    }
)
HOSTS: Final[dict[str, tuple[str, ...]]] = {
    "workflows": (".logic.azure.com", ".environment.api.powerplatform.com"),
    "gchat": ("chat.googleapis.com",),
    "discord": ("discord.com",),
    "wxteams": ("api.ciscospark.com", "webexapis.com"),
    "tgram": ("api.telegram.org",),
    "pover": ("api.pushover.net",),
    "opsgenie": ("api.opsgenie.com", "api.eu.opsgenie.com"),
    "signl4": ("connect.signl4.com",),
    "sendgrid": ("api.sendgrid.com",),
    "mailgun": ("api.mailgun.net", "api.eu.mailgun.net"),
    "resend": ("api.resend.com",),
}
"""The services by apprise's schema, with the hosts that the provider fixes (apprise 2.2.0). Whoever runs a host of
their own is told through WEBHOOK_URLS."""
_PARAMETERS: Final[dict[str, frozenset[str]]] = {
    "workflows": frozenset({"powerautomate", "pa", "ver", "routeid"}),
    "opsgenie": frozenset({"region"}),
    "mailgun": frozenset({"region"}),
}
"""Others are refused: they switch off certificates, read files, or change what is sent."""
_TARGET: Final = re.compile(r"([a-z][a-z0-9-]{0,31})(?:\[([a-z_.,]*)\])?=(\S+)")


class NotifyTarget(Value):
    """One target.

    Attributes:
        url: In apprise's form; it holds the secret.
        events: The types of docs/webhooks.md that it is told of.
    """

    name: str
    url: SecretStr
    events: frozenset[str] = DEFAULT_EVENTS

    @property
    def service(self) -> str:
        """The service that it speaks to, as apprise calls it."""
        return self.url.get_secret_value().partition(":")[0].lower()

    @property
    def address(self) -> str:
        """The address that apprise is given; it would take good news for an alert's end that it cannot find."""
        url = self.url.get_secret_value()
        return f"{url}{'&' if '?' in url else '?'}action=new" if self.service == "opsgenie" else url

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that may be spoken to; one that begins with a dot stands for all below it."""
        return HOSTS[self.service]


def read_targets(text: str) -> tuple[NotifyTarget, ...]:
    """Read ``NAME=URL`` and ``NAME[EVENT,EVENT]=URL``, separated by white space.

    Raises:
        SettingsRejected: With every mistake; an address is never shown.
    """
    found: list[NotifyTarget] = []
    mistakes: list[str] = []
    for number, item in enumerate(text.split(), 1):
        match = _TARGET.fullmatch(item)
        if match is None:
            mistakes.append(f"target {number} is not NAME=URL or NAME[EVENT,...]=URL")
            continue
        name, events, url = match[1], match[2], match[3]
        wrong = _wrong(url) or _unknown(events)
        if any(name == other.name for other in found):
            wrong = "its name stands twice"
        if wrong:
            mistakes.append(f"{name!r}: {wrong}")
            continue
        chosen = frozenset(events.split(",")) if events is not None else DEFAULT_EVENTS
        found.append(NotifyTarget(name=name, url=SecretStr(url), events=chosen))
    if mistakes:
        raise SettingsRejected("the targets were not read", why="; ".join(mistakes), hint="see docs/notifications.md")
    return tuple(found)


def _wrong(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = parts.port if parts.scheme == "workflows" else None
        host = (parts.hostname or "").lower()
    except ValueError:
        return "its address cannot be read"
    scheme = url.partition(":")[0].lower()
    if scheme not in HOSTS or "://" not in url:
        return f"{scheme[:20]!r} is not one of {', '.join(HOSTS)}; for a host of your own set WEBHOOK_URLS"
    if scheme == "workflows" and (port not in {None, 443} or not host.endswith(HOSTS[scheme])):
        return f"its host is not below {' or '.join(HOSTS[scheme])}"
    given = {name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    refused = sorted(given - _PARAMETERS.get(scheme, frozenset()))
    if parts.fragment:
        return "it holds a #"
    if ";" in parts.query:  # apprise takes it for another &
        return "its parameters hold a ;"
    return f"the parameter {refused[0][:30]!r} is not taken" if refused else ""


def _unknown(events: str | None) -> str:
    if events is None:
        return ""
    unknown = sorted(set(events.split(",")) - EVENT_TYPES)
    return f"{unknown[0]!r} is no event, want some of {', '.join(sorted(EVENT_TYPES))}" if unknown else ""
