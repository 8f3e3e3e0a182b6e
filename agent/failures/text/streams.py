"""Tells whose line it is: what collectors write before a log line names the instance, container or pod."""

import re
from functools import lru_cache

MAX_PREFIXES = 3
"""Nested collectors: journald around docker compose around a time."""

RECENT_LINES = 1024
"""Lines whose head is remembered: each line of a long traceback is asked what the hundreds above it are."""

_TIME = (
    r"(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?Z| ?[+-]\d\d:?\d\d| UTC)?\]?"
    r"|(?:[A-Z][a-z]{2}| ?\d{1,2}[月월]) [ \d]\d (?:\d{4} )?\d\d:\d\d:\d\d(?:\.\d{1,9})?"
    r"|\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\]"
    r"|\d{10}\.\d{1,9}|\[ {0,8}\d{1,10}\.\d{6}\])"
)
_POD = r"[a-z0-9][a-z0-9.-]{0,240}-(?:[bcdfghjklmnpqrstvwxz2456789]{5}|\d{1,3})"
"""A pod's name: a Deployment's ends in five of the letters that Kubernetes draws from, a StatefulSet's in a number."""

_OF_PYTHON = (
    r"\((?:APIServer|ApiServer_|EngineCore|Worker|VllmWorker|RayWorker)"
    r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)[ :]|Traceback \(|\s{1,8}File \""
)
"""How a line of vLLM begins: a pod's name alone is a prefix only before one."""

_PREFIX = re.compile(
    rf"\s{{0,40}}(?:{_TIME}\s{{1,4}})?(?:"
    r"\[(?:pod|instance)/(?P<kubectl>[^\]\s]{1,300})\]"
    rf"|\[(?P<kubetail>{_POD}(?:[ :/][a-z0-9-]{{1,63}})?)\]"
    r"|(?P<compose>[A-Za-z0-9][\w.@-]{0,120})\s{0,40}\|(?=\s|$)"
    r"|(?P<host>[A-Za-z0-9][\w.-]{0,120}) (?P<unit>[A-Za-z][\w@.:\\/-]{0,120})\[\d{1,10}\]:"
    r"|<\d{1,3}>1 \S{1,40} (?P<syslog>\S{1,200} \S{1,100}) \S{1,40} \S{1,40} (?:-|\[[^\]]{0,400}\])"
    rf"|[+-]?\s?(?P<stern>{_POD} (?!exited with )[a-z][a-z0-9-]{{0,62}})(?=\s{{1,9}}\S)"
    rf"|(?P<bare>{_POD})(?=\s(?:{_OF_PYTHON}))"
    r"|\[(?P<child>\d{2,5})\](?=\s{1,2}(?:main|srv|slot|load_|llama_|common_|ggml_|gguf_)[\w ]{0,60}:)"
    r"|(?P<ray>\(ServeReplica:[^()\s]{1,120} pid=\d{1,10}(?:, ip=[\d.]{7,15})?\))"
    r")\s?"
)
_AFTER_TIME = re.compile(
    rf"\s{{0,40}}{_TIME}\s{{1,4}}(?:(?P<cri>std(?:out|err) [FP])"
    r"|(?P<kernel>[A-Za-z0-9][\w.-]{0,120} kernel:)"
    r"|(?P<stream>(?:[\w.-]{1,80}/){2}[\w.-]{8,80}|i-[0-9a-f]{8,17}))\s"
)
_LEADING_TIME = re.compile(rf"\s{{0,40}}{_TIME}\s{{1,4}}")
_POD_IN_EVENT = re.compile(
    r"\bpod/(?P<kind>[a-z0-9][a-z0-9.-]{0,240})"
    r"|\b(?P<name>[a-z0-9][a-z0-9.-]{0,200}-[a-z0-9]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5})\b"
    r"|\bassigned [a-z0-9-]{1,63}/(?P<given>[a-z0-9][a-z0-9.-]{0,240}) to\b"
)
"""A pod that an event names: by its kind, by a Deployment's hash and the five letters behind it, or given to a node."""
_API_SERVER = re.compile(r"\((?P<name>APIServer|ApiServer_\d{1,4}) pid=(?P<pid>\d{1,10})\)")
_RANK = re.compile(
    r"\bEngine (?P<counted>\d{1,5}):|\((?:EngineCore|Worker|VllmWorker)_DP(?P<parallel>\d{1,5})(?:_\w{1,20})? pid="
    r"|\(EngineCore(?:_(?P<old>\d{1,5}))? pid="
)
_WORKER = re.compile(r"\((?P<name>(?:EngineCore|VllmWorker|Worker)[\w= ]{0,30}) pid=(?P<pid>\d{1,10})\b")
_ENGINE = re.compile(r"\((?P<name>EngineCore\w{0,12}) pid=(?P<pid>\d{1,10})\)")


def server_of(line: str) -> str:
    """The instance, container or pod that a collector names before the line; empty where none is named.

    Process ids are no part of it: the processes of one start write through one collector.
    """
    return _taken_apart(line)[0]


def pods_of(line: str) -> frozenset[str]:
    """The pods that an event of the platform names; empty where it names none, as in ``kubectl describe pod``."""
    if "-" not in line and "pod/" not in line and "assigned " not in line:
        return frozenset()
    return frozenset(found["kind"] or found["name"] or found["given"] for found in _POD_IN_EVENT.finditer(line[:2048]))


def body_of(line: str) -> str:
    """The line as its program wrote it, without the names and times that collectors put before it."""
    return line[_taken_apart(line)[1] :]


def api_server_of(line: str) -> tuple[str, str] | None:
    """Name and pid of the vLLM API server process that wrote the line, where it says so.

    Two pids of one name are two starts, also where they write into one stream.
    """
    found = _API_SERVER.search(line, 0, 300) if "pid=" in line[:300] else None
    return (found["name"], found["pid"]) if found else None


def worker_of(line: str) -> tuple[str, str] | None:
    """Name and pid of the vLLM engine or worker process that wrote the line, where it says so."""
    found = _WORKER.search(line, 0, 300) if "pid=" in line[:300] else None
    return (found["name"], found["pid"]) if found else None


def engine_of(line: str) -> tuple[str, str] | None:
    """Name and pid of the vLLM engine process that wrote the line, where it says so."""
    found = _ENGINE.search(line, 0, 300) if "pid=" in line[:300] else None
    return (found["name"], found["pid"]) if found else None


def rank_of(line: str) -> int | None:
    """The number of the engine that a line of statistics names, or whose process wrote the line; None where neither.

    Data-parallel engines of one server have numbers from 0; a lone engine is number 0.
    """
    found = _RANK.search(line, 0, 400) if "Engine" in line or "Worker_" in line else None
    if found is None:
        return None
    return int(found["counted"] or found["parallel"] or found["old"] or 0)


def is_of_parallel(line: str) -> bool:
    """Whether the process that wrote the line belongs to one of several data-parallel engines."""
    found = _RANK.search(line, 0, 400) if "_DP" in line else None
    return found is not None and found["parallel"] is not None


@lru_cache(maxsize=RECENT_LINES)
def _taken_apart(line: str) -> tuple[str, int]:
    names: dict[str, str] = {}
    at = 0
    for _ in range(MAX_PREFIXES):
        found = _PREFIX.match(line, at) or _AFTER_TIME.match(line, at)
        said = {kind: name for kind, name in found.groupdict().items() if name} if found else {}
        if found is None or not names.keys().isdisjoint(said):
            break
        names |= said
        at = found.end()
    lead = _LEADING_TIME.match(line, at)
    return "/".join(name for kind, name in names.items() if kind != "cri"), lead.end() if lead else at
