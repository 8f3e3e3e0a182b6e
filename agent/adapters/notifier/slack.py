"""One Slack message for each incident: posted once, then changed in place with every later phase."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from agent.core.incident.incident import Event, Incident
from agent.core.sweep.sweep import Sweep
from agent.errors import DependencyFailed
from agent.presentation.notification import TEST_TITLE
from agent.presentation.slack_card import Card, card, mention, owner_mention
from agent.presentation.slack_thread import calls_again, thread_lines
from agent.presentation.sweep.slack_message import sweep_message

if TYPE_CHECKING:
    from slack_sdk import WebClient

TIMEOUT_S: Final = 10
TURN_S: Final = 30.0  # waited for others of this process who are telling; with the answer well below a claim's length
KEPT: Final = 1000  # incidents whose message this process remembers, besides the store
PER_CHANNEL_S: Final = 1.0
"""One message a second in a channel: https://docs.slack.dev/apis/web-api/rate-limits (2026-11-21)."""

_STILL: Final[dict[str, Any]] = {"unfurl_links": False, "unfurl_media": False, "parse": "none"}


class RateLimited(DependencyFailed):
    """Slack said: later. It says nothing about the message.

    Attributes:
        code: As HTTP says it, so that it is not counted as a failure.
    """

    code = 429


class SlackNotifier:
    """Shows incidents in one channel; its reference is ``CHANNEL/TS/DIGEST.LINES`` of what stands there.

    A message that is changed notifies nobody, so each step that people wait for is a reply in its thread; ``LINES`` is
    how much of the timeline was told. A group of approvers that is told later is mentioned in a reply too; then the
    reference has a fourth part, how many groups were. Where nobody took note of what waits for a person, the reply
    mentions the owner and is shown in the channel too. Everything new is one reply, so that what Slack refuses is said
    again whole. A line is said twice where nobody knows that it was said: Slack's answer did not arrive, the process
    ended before the reference was kept, or it could not be kept.

    Args:
        client: Slack's own client, without retries of its own.
        channel: The id of the channel.
        redact: Takes secrets out of a text.
        console_url: For the Details button.
        owner_of: Whom services.toml names for a service.
    """

    def __init__(
        self,
        client: "WebClient",
        *,
        channel: str,
        redact: Callable[[str], str],
        console_url: str,
        owner_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._owner_of = owner_of
        self._client, self._channel, self._redact, self._console_url = client, channel, redact, console_url
        self._lock = threading.Lock()
        self._free_at = 0.0
        self._shown: dict[str, tuple[int, str]] = {}

    def tell(self, incident: Incident, timeline: tuple[Event, ...], *, reference: str | None) -> str | None:
        """Post or change the message; see the port. What stands there already is not sent again.

        Raises:
            RateLimited: Slack wants us to wait, and before that nothing is sent; or others took too long.
            DependencyFailed: Slack did not answer, or refused.
        """
        owner = self._owner_of(incident.service)
        shown = card(incident, timeline, redact=self._redact, console_url=self._console_url, owner=owner)
        if not self._lock.acquire(timeout=TURN_S):
            raise RateLimited(
                "Slack was not notified", why="others are being notified for too long", hint="it is tried again"
            )
        try:
            known = self._shown.get(incident.id)
            before = _further(reference, known[1] if known is not None else None)
            if known is not None and known[0] > incident.version:
                return before  # somebody showed a later state meanwhile
            found = self._show(incident, timeline, shown, before)
            self._shown[incident.id] = (incident.version, found)
            while len(self._shown) > KEPT:
                self._shown.pop(next(iter(self._shown)))
        finally:
            self._lock.release()
        return found

    def shows(self, incident: Incident, *, reference: str) -> bool:
        """Return whether this process has shown exactly this version there; see the port."""
        return self._shown.get(incident.id) == (incident.version, reference)

    def tell_sweep(self, sweep: Sweep, *, answered: str, reference: str | None) -> str:
        """Post a load measurement, or take the buttons off where it was answered; see the port.

        Raises:
            RateLimited: Slack wants us to wait.
            DependencyFailed: Slack did not answer, or refused.
        """
        message = sweep_message(sweep, redact=self._redact, console_url=self._console_url, answered=answered)
        if reference is not None:
            channel, _, ts = reference.partition("/")
            self._call("chat.update", channel=channel, ts=ts, parse="none", **message)
            return reference
        posted = self._call("chat.postMessage", channel=self._channel, **_STILL, **message)
        return f"{posted['channel']}/{posted['ts']}"

    def send_test(self) -> None:
        """Post a test; see the port."""
        self._call("chat.postMessage", channel=self._channel, text=TEST_TITLE, **_STILL)

    def _show(self, incident: Incident, timeline: tuple[Event, ...], shown: Card, reference: str | None) -> str:
        channel, ts, before, mentioned = (*(reference or "").split("/"), "", "", "")[:4]
        look_before, _, lines_before = before.partition(".")
        look = shown.digest[:16]
        mentioned_groups = incident.approvals.groups_notified if incident.approvals is not None else 0
        groups = f"/{mentioned_groups}" if mentioned_groups else ""
        # a message of an earlier version says nothing of its thread: what was before is not told again
        known = int(lines_before) if lines_before.isdigit() else len(timeline)
        stands = f"{look}.{max(known, len(timeline))}{groups}"
        arguments = {"text": shown.text, "blocks": list(shown.blocks), "parse": "none"}
        if ts:
            if look_before != look:
                self._call("chat.update", channel=channel, ts=ts, **arguments)
            said = thread_lines(incident, timeline, known, redact=self._redact)
            if groups and groups != f"/{mentioned}":
                said.append(mention(incident))
            if said:
                reply = self._reply(incident, said, again=calls_again(incident, timeline, known))
                self._call("chat.postMessage", channel=channel, thread_ts=ts, **reply, **_STILL)
            return f"{channel}/{ts}/{stands}"
        # so that a person who looks for it finds which incident a message is about
        named = {"event_type": "sre_incident", "event_payload": {"incident": incident.id}}
        posted = self._call("chat.postMessage", channel=self._channel, metadata=named, **arguments | _STILL)
        return f"{posted['channel']}/{posted['ts']}/{stands}"

    def _reply(self, incident: Incident, said: list[str], *, again: bool) -> dict[str, Any]:
        """What is said in the thread; who is called again is mentioned, and the channel sees it too."""
        if not again:
            return {"text": "\n".join(said)}
        owner = owner_mention(self._owner_of(incident.service)).removeprefix(" · ")
        return {"text": "\n".join([*([owner] if owner else []), *said]), "reply_broadcast": True}

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        from slack_sdk.errors import SlackApiError, SlackClientError

        self._wait_its_turn()
        try:
            answer = self._client.api_call(method, json=arguments)
        except SlackApiError as error:
            if error.response.status_code == 429 or error.response.get("error") == "ratelimited":
                raise self._limited(str(error.response.headers.get("Retry-After", "1"))) from error
            raise DependencyFailed(
                "Slack was not notified", why=f"it answered {error.response.get('error')!r}", hint="see docs/slack.md"
            ) from error
        except (SlackClientError, OSError, ValueError) as error:
            raise DependencyFailed(
                "Slack was not notified", why=type(error).__name__, hint="it is tried again"
            ) from error
        found = answer.data
        assert isinstance(found, dict)
        return found

    def _wait_its_turn(self) -> None:
        """Refuse while Slack's own limit runs, rather than run into it again."""
        left = self._free_at - time.monotonic()
        if left > 0:
            raise RateLimited(
                "Slack was not notified", why=f"it asked for {left:.0f} s of quiet", hint="it is tried again"
            )

    def _limited(self, after: str) -> RateLimited:
        seconds = min(float(after), 600.0) if after.isascii() and after.isdigit() else PER_CHANNEL_S
        self._free_at = time.monotonic() + seconds
        return RateLimited(
            "Slack was not notified", why=f"it asked for {seconds:g} s of quiet", hint="it is tried again"
        )


def _further(kept: str | None, shown: str | None) -> str | None:
    """Return the reference of which more was told: another process may have told since we did, or we since it was kept.

    Args:
        kept: The one in the store; it counts where both told the same.
        shown: Where this process left the message.
    """
    return max((kept, shown), key=_progress)


def _progress(reference: str | None) -> tuple[int, int]:
    """Return how much of the timeline and how many groups were told; an earlier version's reference says neither."""
    if reference is None:
        return (-2, 0)
    _, _, state, groups = (*reference.split("/"), "", "", "")[:4]
    _, _, lines = state.partition(".")
    return (int(lines) if lines.isdigit() else -1, int(groups) if groups.isdigit() else 0)
