"""Whose trouble a line of a machine's log is: the unit, the process or the folder that it names."""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache

from agent.failures.text.streams import RECENT_LINES, server_of

TURN_LINES = 400
"""A server that was told to stop writes no more than so many lines before systemd reports its end."""

STATUS_LINES = 8
"""``systemctl status`` names the unit so many lines above its state, at most."""


class Subject(StrEnum):
    """Whom a line is about; of several names the first of this list counts."""

    SERVER = "server"
    """A name, a program or a folder of a model server."""
    STRANGER = "stranger"
    """A name that says nothing: people call a server's unit as they like."""
    PROGRAM = "program"
    """A part of the system, or a program that is no model server."""
    NOBODY = "nobody"
    """It names none: it is taken for the server's."""


_UNIT = re.compile(r"(?<![\w@.\\-])([\w@.\\-]{1,120})\.(?:service|scope)\b")
_TURN = re.compile(
    r"\bsystemd\[\d{1,10}\]: (?:(?P<turn>Stopping|Starting|Started) (?P<unit>[\w@.\\-]{1,120})\.service\b"
    r"|(?P<again>[\w@.\\-]{1,120})\.service: (?:Scheduled restart job|Start request repeated))"
)
"""``Stopped`` is no order: systemd before 254 writes it at each restart after a failure."""
_DUMPED = ("code=dumped", "result 'core-dump'")
_CONTAINER = re.compile(r"(?:docker|cri-containerd|crio|libpod|nerdctl)-[0-9a-f]")
"""A container's scope is called by its id, which says nothing of what runs in it."""
_PROCESS = re.compile(
    r"\b[Pp]rocess \d{1,10} (?:\(([^()]{1,64})\)|uid \d{1,10} \"([^\"]{1,64})\")"
    r"|\btask=([^,\s]{1,64}),pid=|([^\s\[\]]{1,64})\[\d{1,10}\](?:: segfault at | general protection fault)"
)
_FOLDER = re.compile(r"\b(?:cannot touch|cannot open|create directory(?: mkdir)?) ['\"‘`]?([^\s'\"’:]{1,400})")
_STATUS = re.compile(r"\s*Active: ")
_STATUS_HEAD = re.compile(r"\s*[●×○*x↻] \S{1,120}\.service\b")

_SERVERS = re.compile(
    r"(?:^|[^a-z])(?:vllm|llm|sglang|python|raylet|ray(?![a-z])|pt_main_thread|models?|weights|checkpoints?|huggingface|hf)"
    r"(?![a-z]{3})|/\.cache/",
    re.IGNORECASE,
)
_PROGRAMS = re.compile(
    r"(?:systemd|gnome|dbus|apt|apport|fwupd|snapd|cups|nvidia-(?:dcgm|persistenced|powerd|fabricmanager))(?:-.{0,100})?"
    r"|user@\d{0,10}|dcgm(?:-exporter)?|docker|dockerd|containerd|podman|kubelet|crio|nginx|apache2|httpd|caddy|haproxy"
    r"|traefik|envoy|sshd?|crond?|r?syslogd?|NetworkManager|ModemManager|gdm3?|Xorg|mysqld?|mariadbd?|postgres(?:ql)?"
    r"|redis(?:-server)?|mongod|memcached|grafana(?:-server)?|prometheus|alertmanager|node[-_]exporter|telegraf|fluent-?bit"
    r"|auditd|chronyd?|ntpd?|polkitd?|udisks2|avahi-daemon|bluetooth|unattended-upgrades|packagekit|multipathd|tailscaled"
)


@lru_cache(maxsize=RECENT_LINES)
def subject_of(line: str) -> Subject:
    """Whom the unit, the process or the folder is of that a line names."""
    units = _UNIT.findall(line) if ".service" in line or ".scope" in line else []
    kinds = {_kind([unit.partition("@")[0]], unit) for unit in units if not _CONTAINER.match(unit)}
    if "rocess " in line or "task=" in line or "]" in line:
        kinds |= {_kind([name], name) for found in _PROCESS.findall(line) for name in found if name}
    if "cannot " in line or "create directory" in line:
        kinds |= {_kind([part.partition(".")[0] for part in path.split("/")], path) for path in _FOLDER.findall(line)}
    return next((kind for kind in Subject if kind in kinds), Subject.NOBODY)


def names_server(name: str) -> bool:
    """Whether a name holds that of a model server."""
    return _SERVERS.search(name) is not None


def subject_at(lines: Sequence[str], index: int) -> Subject:
    """Whom a line is about; a state that ``systemctl status`` shows is of the unit above it."""
    if not _STATUS.match(lines[index]):
        return subject_of(lines[index])
    above = (lines[at] for at in range(index - 1, max(-1, index - STATUS_LINES), -1))
    return next((subject_of(line) for line in above if _STATUS_HEAD.match(line)), Subject.NOBODY)


def unit_told_to_stop(lines: Sequence[str], index: int, *, banner: int = -1) -> bool:
    """Whether systemd was told to stop the unit that a line names, and nothing began to start it since.

    An order excuses no core dump. ``banner`` is where the last server above the line began: an order above it is over.
    """
    if any(said in lines[index] for said in _DUMPED):
        return False
    last = next(_turns(lines, index, range(index, max(banner, index - TURN_LINES, -1), -1)), None)
    return last == "Stopping"


def unit_started_below(lines: Sequence[str], index: int) -> bool:
    """Whether systemd started the unit that a line names soon below it."""
    return "Started" in _turns(lines, index, range(index + 1, min(len(lines), index + TURN_LINES)))


def _turns(lines: Sequence[str], index: int, positions: range) -> Iterator[str | None]:
    """What systemd says of the unit of the line at ``index``, on its host; None where it starts it by itself."""
    units = frozenset(_UNIT.findall(lines[index])) if ".service" in lines[index] else frozenset()
    here = server_of(lines[index])
    for at in positions if units else ():
        found = _TURN.search(lines[at]) if ".service" in lines[at] else None
        if found and (found["unit"] or found["again"]) in units and server_of(lines[at]) == here:
            yield found["turn"]


def _kind(names: Sequence[str], whole: str) -> Subject:
    if names_server(whole):
        return Subject.SERVER
    known = any(_PROGRAMS.fullmatch(name) for name in (*names, whole))
    return Subject.PROGRAM if known else Subject.STRANGER
