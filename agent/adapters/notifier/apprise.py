"""Teams, Google Chat, Discord, mail services and the like: a message for each chosen event, by apprise in a process."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from agent.core.incident.impact import Severity
from agent.core.incident.incident import Event, Incident
from agent.errors import DependencyFailed, InputRejected, install_command
from agent.presentation.event_types import type_of
from agent.presentation.notification import Notification, notification, test_notification
from agent.presentation.notify_target import NotifyTarget
from agent.presentation.phase_words import Tone
from agent.presentation.standing import standing
from agent.strict_json import read_object

PROCESS: Final = Path(__file__).with_name("apprise_process.py")
LIMIT_S: Final = 20.0  # loading apprise takes up to 4 s, its request 12 s
INSTALL: Final = f"install the extra: {install_command('notify')}"
_ANSWER_CHARS: Final = 300
ANSWER_BYTES: Final = 4096
_TYPES: Final = {Tone.GOOD: "success", Tone.BAD: "failure", Tone.WAITING: "warning"}

Send = Callable[[dict[str, Any]], dict[str, Any]]


def is_installed() -> bool:
    """Whether the extra is there; nothing is loaded."""
    return find_spec("apprise") is not None


def send_in_process(order: dict[str, Any]) -> dict[str, Any]:
    """Send one message in a process that ends within its time; it inherits nothing but where packages stand.

    Raises:
        DependencyFailed: It did not end in time, or not well.
    """
    env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    command = [sys.executable, "-P", "-X", "utf8", str(PROCESS)]  # -P: our own apprise.py stands beside it
    try:
        ended = subprocess.run(  # noqa: S603 - our own file, nothing of it is from outside
            command, input=json.dumps(order).encode(), capture_output=True, timeout=LIMIT_S, env=env, check=True
        )
        answer = read_object(ended.stdout.splitlines()[-1], what="answer", limit=ANSWER_BYTES)
    except subprocess.TimeoutExpired as error:
        raise _failed(f"it took more than {LIMIT_S:g} s") from error
    except (subprocess.CalledProcessError, OSError, InputRejected, IndexError) as error:
        raise _failed(f"apprise ended without an answer ({type(error).__name__})") from error
    return answer


class AppriseNotifier:
    """Tells one target; its reference is the number of timeline lines that it was told of.

    Of several new events one message is sent, which says how the incident stands: a target that was down is not
    flooded. Nobody can answer there; each message carries the console's link.

    Args:
        target: Where to, and of which events.
        redact: Takes secrets out of a text.
        console_url: Where the console stands.
        owner_of: Who is to care for a service, by its name.
        send: Sends one message.
    """

    def __init__(
        self,
        target: NotifyTarget,
        *,
        redact: Callable[[str], str],
        console_url: str,
        owner_of: Callable[[str], str] = lambda _: "",
        send: Send = send_in_process,
    ) -> None:
        self._target, self._redact, self._console_url = target, redact, console_url
        self._owner_of, self._send = owner_of, send

    def tell(self, incident: Incident, timeline: tuple[Event, ...], *, reference: str | None) -> str | None:
        """Send a message where something that the target is told of is new; see the port.

        Raises:
            DependencyFailed: The message was not taken.
        """
        sent = int(reference) if reference and reference.isdigit() else 0
        pairs = list(zip(timeline, (None, *timeline), strict=False))[sent:]
        if any(type_of(incident, event, before) in self._target.events for event, before in pairs):
            said = notification(
                incident, redact=self._redact, console_url=self._console_url, owner=self._owner_of(incident.service)
            )
            self.send(said, kind=_kind(incident, said))
        return str(len(timeline))

    def send_test(self) -> None:
        """Send a test; see the port."""
        self.send(test_notification(self._console_url), kind="info")

    def send(self, said: Notification, *, kind: str) -> None:
        """Send one message.

        Args:
            said: What to say.
            kind: ``success``, ``failure``, ``warning`` or ``info``.

        Raises:
            DependencyFailed: The extra is not installed, or the message was not taken.
        """
        if not is_installed():
            raise DependencyFailed(
                f"{self._target.name!r} was not notified", why="apprise is not installed", hint=INSTALL
            )
        body = said.text.replace("\n", "\n\n")  # as Markdown, in which one line end is none
        order = {"url": self._target.address, "title": said.title, "body": body, "type": kind}
        answer = self._send(order | {"hosts": list(self._target.hosts)})
        if answer.get("sent") is not True:
            raise _failed(str(answer.get("why", ""))[:_ANSWER_CHARS], self._target.name)


def _kind(incident: Incident, said: Notification) -> str:
    quiet = said.severity is Severity.INFO
    return _TYPES.get(standing(incident, incident.phase_at).tone, "info") if not quiet else "info"


def _failed(why: str, name: str = "") -> DependencyFailed:
    what = f"{name!r} was not notified" if name else "a target was not notified"
    return DependencyFailed(what, why=why, hint="check its address in NOTIFY_TARGETS; it is tried again")
