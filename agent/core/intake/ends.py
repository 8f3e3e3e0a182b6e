"""Ends and stops in the words of platforms: Cloud Run, Container Apps, systemd, Docker Compose, kubectl."""

import re
from collections.abc import Iterable

from agent.core.intake.signal import LAST_SIGNAL, AskedBy, End, Stop
from agent.failures.text.client_text import without_client_words

LINE_LIMIT = 2048  # characters looked at; what a platform says of an end is far shorter
REASON_LIMIT = 256

_CLOUD_RUN = re.compile(r"Container (?:called exit\((?P<code>-?\d{1,3})\)|terminated on signal (?P<signal>\d{1,3}))")
_CONTAINER_APPS = re.compile(
    r"was terminated with exit code '(?P<code>-?\d{0,3})'(?: and reason '(?P<reason>[\w ./-]{1,64})')?"
)
_OWN_CONTAINER = "Container 'k8se-"
"""Before the name of a container that Container Apps add to a replica: its end is not the server's."""
_MANAGER = re.compile(r"\bsystemd(?:\[\d{1,9}\])?: ")
_UNIT = r"(?P<unit>\S{1,200})\.service: "
_UNIT_ENDS = re.compile(
    rf"{_UNIT}(?:Main process exited, code=(?P<how>exited|killed|dumped), status=(?P<status>\d{{1,3}})"
    r"|Failed with result '(?P<result>[a-z-]{1,40})'"
    r"|(?P<done>Deactivated successfully|Succeeded)\."
    r"|(?P<oom>A process of this unit has been killed by the OOM killer))"
)
_UNIT_STOPS = re.compile(r"(?P<word>Stopping|Stopped|Starting|Started) (?P<unit>\S{1,200}\.service\b|.{1,200})")
_COMPOSE = re.compile(r"^(?P<who>[\w.-]{1,128}) exited with code (?P<code>-?\d{1,3})(?: \(restarting\))?\s*$")
_COMPOSE_STOPS = re.compile(r"^\s*(?:✔ )?Container [\w.-]{1,128} +Stopp(?:ing|ed)\b|^Gracefully [Ss]topping\.\.\.")
_COMPOSE_STARTS = re.compile(r"^\s*(?:✔ )?Container [\w.-]{1,128} +Start(?:ing|ed)\b|^Attaching to ")
_DOCKER_PS = re.compile(r"\bExited \((?P<code>\d{1,3})\) ")
_DESCRIBED = re.compile(r"^\s*Exit Code:\s+(?P<code>\d{1,3})\s*$")
_DESCRIBED_REASON = re.compile(r"^\s*Reason:\s+(?P<reason>[\w-]{1,64})\s*$")
_STATE = re.compile(r"^\s*(?P<last>Last )?State:\s")
_TERMINATING = re.compile(r"^Status:\s+Terminating\b")
_OOM = re.compile(r"\boom|out ?of ?memory", re.IGNORECASE)
SIGTERM_TEXTS = (
    "trigger received signal=SIGTERM",
    "API server: shutdown triggered",
    "received signal SIGTERM",
    "received SIGTERM",
    "SIGTERM received",
    "caught SIGTERM",
    "got signal SIGTERM",
    "Handling signal: term",
    "KeyboardInterrupt: terminated",
)
"""What servers say when SIGTERM reaches them: vLLM 0.32.0 (launcher.py, core.py) and older, gunicorn, entry scripts."""
UNIT_TEXTS = (
    ".service: Deactivated successfully",
    "Stopping <*>.service",
    "Stopped <*>.service",
    "Started <*>.service",
)
"""What the manager of a host says of a stop, of its end and of an end with 0 (systemd 250 and newer)."""
_SIGTERM = re.compile(rf"(?<!regarding )(?:{'|'.join(map(re.escape, SIGTERM_TEXTS))})", re.IGNORECASE)
"""Ray's executor announces "error log ... regarding SIGTERM received" whatever ends it: that is advice, no signal."""
_STOPS = (
    (_COMPOSE_STOPS, Stop(by=AskedBy.OPERATOR)),
    (_COMPOSE_STARTS, Stop(by=AskedBy.OPERATOR, over=True)),
    (_TERMINATING, Stop(by=AskedBy.DELETION)),
)
_SERVER_UNIT = re.compile(r"llm|sglang|\btgi\b|inference", re.IGNORECASE)
_NO_CONTAINER = frozenset({"process", "subprocess", "child", "worker", "command", "script", "it", "container", "job"})


def end_of(*, code: int | None = None, signal: int | None = None, reason: str = "") -> End:
    """Return an end; a code that no process can have (an exporter's -9, a zero value) becomes what it stands for.

    Args:
        code: As the platform wrote it; a negative one is a signal.
        signal: As the platform wrote it.
        reason: The platform's own word.
    """
    if code is not None and code < 0 and signal is None:
        signal, code = abs(code), None
    return End(
        exit_code=code if code is not None and 0 <= code <= 255 else None,
        signal_number=signal if signal is not None and 1 <= signal <= LAST_SIGNAL else None,
        oom=_OOM.search(reason) is not None,
        reason=reason[:REASON_LIMIT],
    )


def cloud_run_end(said: str) -> End | None:
    """Return the end that a line of Cloud Run's system log tells (platform facts 2.3), or None."""
    found = _CLOUD_RUN.search(said[:LINE_LIMIT])
    if found is None:
        return None
    return end_of(code=_number(found["code"]), signal=_number(found["signal"]))


def container_apps_end(said: str) -> End | None:
    """Return the end that a system row of Container Apps tells (platform facts 5.1), or None."""
    found = _CONTAINER_APPS.search(said[:LINE_LIMIT])
    if found is None or _OWN_CONTAINER in said[: found.start()]:
        return None
    reason = found["reason"] or ""
    end = end_of(code=_number(found["code"]), reason=reason)
    return end.with_(asked_by=AskedBy.OPERATOR) if reason == "ManuallyStopped" else end


def reports_sigterm(said: str) -> bool:
    """Whether a server says of itself that SIGTERM reached it.

    What a client wrote into the line does not count: nobody may have a crash taken for a stop by asking for it.
    """
    line = said[:LINE_LIMIT]
    return _SIGTERM.search(line) is not None and _SIGTERM.search(without_client_words(line)) is not None


def systemd_end(said: str, *, own: Iterable[str] = (), manager: bool = True) -> End | Stop | None:
    """Return the end or the stop that one line of systemd's manager tells about a server's unit, or None.

    Args:
        said: The line, with or without the head that syslog puts before it.
        own: Names of the watched server; of other units only those named like a model server count.
        manager: Whether the line is known to be the manager's; otherwise a stop must say ``systemd[1]:`` before it.
    """
    head = _MANAGER.search(said[:LINE_LIMIT])
    line = said[head.end() if head else 0 : LINE_LIMIT]
    if (ends := _UNIT_ENDS.match(line)) is not None:
        return _unit_end(ends) if _is_own(ends["unit"], own) else None
    stop = _UNIT_STOPS.match(line) if manager or head else None
    if stop is None or (stop["unit"].endswith(".service") and not _is_own(stop["unit"].removesuffix(".service"), own)):
        return None
    return Stop(by=AskedBy.OPERATOR, over=stop["word"] != "Stopping")


def _unit_end(recognised: re.Match[str]) -> End:
    if recognised["how"]:
        status = int(recognised["status"])
        return end_of(code=status) if recognised["how"] == "exited" else end_of(signal=status)
    return end_of(code=0) if recognised["done"] else end_of(reason=recognised["result"] or "oom-kill")


class PlainEnds:
    """Reads a plain log line by line: what the server prints stands between the lines of systemd, Compose or kubectl.

    Each line of those is known by its form. A stop covers the ends below it until the server is started again; SIGTERM
    in the server's own words covers one end of Cloud Run, for there only the platform can send it. What was killed for
    memory was never asked to end.

    Args:
        own: Names of the watched server.
    """

    def __init__(self, own: Iterable[str] = ()) -> None:
        self._own = tuple(own)
        self._stopped: AskedBy | None = None
        self._sigterm = False
        self._init = False
        self._last_state = False
        self._reason = ""

    def read(self, line: str) -> End | None:
        """Take the next line in; return the end that it tells, with who asked for it, or None."""
        line = line[:LINE_LIMIT]
        self._describe(line)
        if (end := cloud_run_end(line) if line.startswith("Container ") else None) is not None:
            asked, self._sigterm = self._sigterm, False
            return end.with_(asked_by=AskedBy.SCALE_IN_OR_ROLLOUT) if asked else end
        recognised = _plain_end_or_stop(line, self._own, self._reason)
        if isinstance(recognised, Stop):
            self._stopped = None if recognised.over else recognised.by
            return None
        self._sigterm = self._sigterm or reports_sigterm(line)
        if recognised is None or (self._init and recognised.exit_code == 0):
            return None
        asked_by = None if recognised.oom or self._last_state else self._stopped
        return recognised.with_(asked_by=asked_by)

    def read_all(self, lines: Iterable[str]) -> End | None:
        """Take the next lines in; return the last unasked end among theirs, the asked one where there is no other."""
        unasked: End | None = None
        asked: End | None = None
        for end in filter(None, map(self.read, lines)):
            if end.asked_by is None:
                unasked = _merged(unasked, end)
            else:
                asked = end
        return unasked or asked

    def _describe(self, line: str) -> None:
        """Keep where in the output of ``kubectl describe`` a line stands; init containers end with 0 in health."""
        if line.startswith("Init Containers:"):
            self._init = True
        elif line.startswith("Containers:"):
            self._init = False
        if (state := _STATE.match(line)) is not None:
            self._last_state, self._reason = state["last"] is not None, ""
        if (reason := _DESCRIBED_REASON.match(line)) is not None:
            self._reason = reason["reason"]


def _plain_end_or_stop(line: str, own: Iterable[str], reason: str) -> End | Stop | None:
    if (compose := _COMPOSE.match(line)) is not None:
        code = int(compose["code"])
        other = compose["who"].lower() in _NO_CONTAINER or (code == 0 and not _is_own(compose["who"], own))
        return None if other else end_of(code=code)
    for form, stop in _STOPS:
        if form.match(line):
            return stop
    if (described := _DESCRIBED.match(line)) is not None:
        return end_of(code=int(described["code"]), reason=reason)
    if (listed := _DOCKER_PS.search(line)) is not None and int(listed["code"]):
        return end_of(code=int(listed["code"]))
    return systemd_end(line, own=own, manager=False) if ".service" in line or "systemd" in line else None


def _merged(before: End | None, now: End) -> End:
    """Two lines about one end add up: the code of one, the mark or the word of the other."""
    if before is None or now.exit_code is not None or now.signal_number is not None:
        return now if before is None or not before.oom else now.with_(oom=True)
    return before.with_(oom=before.oom or now.oom, reason=now.reason or before.reason)


def _is_own(unit: str, own: Iterable[str]) -> bool:
    """Whether a unit or container is the server: by its name, or because it is named like a model server."""
    name = unit.lower()
    return _SERVER_UNIT.search(name) is not None or any(o and (o.lower() in name or name in o.lower()) for o in own)


def _number(said: str | None) -> int | None:
    return int(said) if said else None
