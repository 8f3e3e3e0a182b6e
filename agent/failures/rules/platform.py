"""Probes, images, devices and load: which neighbour in the log tells the case."""

import re

from agent.failures.rules.rule_input import Fixes, RuleInput, Ruling
from agent.failures.signature import FailureClass, Phase

_LISTENS = re.compile(
    r"(?:listening (?:at|on)|running on|serving on|server on|(?<!metrics )(?<!exporter )server started at https?:)"
    r"[^\n]{0,40}:(\d{2,5})\b"
)
_SHARD_DONE = re.compile(r"checkpoint shards: +[1-9]\d{0,2}% completed")
_WRONG_PATH = ("statuscode: 404", "status code 404", "statuscode: 401", "statuscode: 405")
_PORTS_DIFFER = ("not match the listening port", "not match any of the listening ports")
_NOBODY_THERE = ("status cancelled", "error_connection_failed", "container called exit(1", "container called exit(2")
_LOADS = frozenset({Phase.LOADING, Phase.PROFILING, Phase.GRAPH_CAPTURE})
_RESTARTED = ("back-off restarting failed container", "crashloopbackoff")
_GIVEN_UP = (
    *("was not started", "will be restarted", "killing", "killed", "sigterm", "terminat", "back-off", "crashloop"),
    *("stopping container", "shutting down", "shutdown", "failed the configured", "become ready in time", "restarted"),
)
_ANSWERS = (
    *("deadline exceeded", "client.timeout", "timed out", "timeout:", "statuscode", "connection reset", ": eof"),
    *("broken pipe", "istio-proxy"),
)
"""How a probe's event shows a server that listens, well or late; or that it is another container's."""
_WAS_UP = re.compile(r"\bstarted\s{1,20}\d{1,4}[dh]|\b([1-9]\d{0,2})/\1\s{1,20}running")
"""A container that was started hours ago, or a row of a pod that is ready."""
_REGISTRY_UNREACHABLE = (
    "i/o timeout",
    "connection reset",
    "connection refused",
    "no such host",
    "tls handshake",
    *("timeout", "context deadline exceeded", "unexpected eof", "x509", "no route to host", "failed to do request"),
)
_DEVICE_HANGS = (
    "timeout, signaled seq",
    "gpu reset begin",
    "failed to respon",
    "device wedged",
    "device_lost",
    "gsp timeout",
    "heartbeat timed out",
    "gpu hang",
)
_NETWORK_WORDS = (
    *("socket", "net/ib", "ibv_", "connection refused", "connection reset", "network error", "connect to "),
    ", ip=",  # Ray names the node so, before a line that another one wrote
)
_REGISTRY_REFUSES = (
    "unauthorized",
    "authentication required",
    "403 forbidden",
    "no basic auth",
    "must have permission",
)
_NO_SUCH_IMAGE = ("not found", "manifest unknown", "name unknown", "invalid reference", "no matching manifest")
_IMAGE_FIXES = (
    (("docker: command not found", "cannot connect to the docker daemon"), ("fix_image_or_driver", "fix_command_line")),
    (_NO_SUCH_IMAGE, ("fix_image_or_driver", "fix_auth_token", "upgrade_version")),
    (("toomanyrequests", "rate limit"), ("fix_auth_token", "fix_network", "fix_image_or_driver")),
    (_REGISTRY_UNREACHABLE, ("fix_network", "fix_image_or_driver")),
    (_REGISTRY_REFUSES, ("fix_auth_token", "fix_image_or_driver")),
)
"""The first row of which a word stands in the text decides."""
_OUTAGE = (
    "server error",
    "bad gateway",
    "service unavailable",
    "incompleteread",
    "connection reset",
    "remote end closed",
    "gateway time",
)

_HUBS = ("huggingface", "hf.co", "hf-mirror", "modelscope", "the hub", "snapshot")
_SOMEBODY_ASKED = (
    *_HUBS,
    "://",
    "host=",
    "download",
    "resolve",
    "lookup",
    "name or service",
    "getaddrinfo",
    "proxy",
    "storage.",
    "s3.",
)
_ENGINE_SERVES = ("in run_busy_loop", "in start_load_kv", "in wait_for_layer_load", "in get_finished")
"""Frames of an engine's steps, in which nothing is asked of a hub (vllm/v1/engine/core.py, kv_connector/v1/base.py)."""
_THIS_MACHINE = tuple(
    f"{asked}{host}"
    for host in ("localhost", "127.0.0.1", "0.0.0.0", "[::1]")  # noqa: S104 - compared, never bound
    for asked in ("to ", "//", "host='", "host ", "('")
)
"""How a client names a server on its own machine; ``localhost`` alone stands in the head of syslog lines as well."""


def startup_probe(case: RuleInput) -> Ruling:
    """A refused or cancelled connection is a port where nothing listens; a 404 is a wrong path; else too slow."""
    listens, probed = set(_LISTENS.findall(case.text)), case.fields.get("port")
    if case.mentions(*_PORTS_DIFFER) or (listens and probed is not None and str(probed) not in listens):
        return Ruling(
            class_=FailureClass.PORT_NOT_LISTENING, fixes=("set_flag port", "fix_probe_path"), confidence=0.85
        )
    if case.mentions(*_WRONG_PATH):
        return Ruling(fixes=("fix_probe_path", "increase_startup_probe"), confidence=0.8)
    if case.mentions(*_NOBODY_THERE) and case.phase not in _LOADS:
        return Ruling(
            class_=FailureClass.PORT_NOT_LISTENING,
            fixes=("collect_container_logs", "set_flag port", "increase_startup_probe"),
            confidence=0.55,
        )
    ended = case.mentions(*_RESTARTED) and not case.mentions("probe, will be restarted")
    if ended and case.mentions("connection refused"):
        return Ruling(  # it ends before anybody ends it: nothing listens because nothing runs
            class_=FailureClass.PORT_NOT_LISTENING, fixes=("collect_container_logs", "set_flag port"), confidence=0.55
        )
    if case.has("readiness probe", "probe of readiness") and case.has("deadline exceeded", "timeout", "timed out"):
        return Ruling(
            class_=FailureClass.QUEUE_SATURATION,
            fixes=("relax_liveness_probe", "scale_out", "increase_startup_probe"),
            confidence=0.5,
        )
    return _slow_start(case)


def _slow_start(case: RuleInput) -> Ruling:
    if case.phase in _LOADS:
        return Ruling(fixes=("increase_startup_probe", "fix_cache_path"), confidence=0.85)
    return Ruling(confidence=0.5 if case.mentions("connection refused") else None)


def healthy_start(case: RuleInput) -> Ruling:
    """Nothing went wrong before the probe gave up: weights that are loaded say most, a first shard says enough.

    One try that failed ends nothing: that it was given up, somebody must say.
    """
    one_try = case.repeats < 2 and case.has("connection refused", "statuscode: 503") and not case.has("(x")
    if one_try and not case.mentions(*_GIVEN_UP):
        return Ruling(confidence=0.6)
    if case.phase in {Phase.PROFILING, Phase.GRAPH_CAPTURE} or case.mentions("loading weights took"):
        return Ruling(confidence=0.92)
    return Ruling(confidence=0.85 if _SHARD_DONE.search(case.text) else 0.7)


def liveness(case: RuleInput) -> Ruling:
    """A liveness probe that fails while the model loads is a start-up window too short; on a 503 the engine died."""
    if case.mentions("statuscode: 503", "status 503", "statuscode: 500"):
        return Ruling(class_=FailureClass.ENGINE_DEAD, fixes=("restart", "collect_container_logs"), confidence=0.55)
    if case.mentions("statuscode: 404"):
        return Ruling(class_=FailureClass.STARTUP_PROBE_FAILED, fixes=("fix_probe_path",), confidence=0.7)
    if case.has("exec failed", "executable file not found", "failed to exec"):  # the probe's own command is broken
        return Ruling(
            class_=FailureClass.STARTUP_PROBE_FAILED, fixes=("fix_probe_path", "relax_liveness_probe"), confidence=0.7
        )
    if case.phase in {Phase.CONFIG, Phase.LOADING, Phase.PROFILING, Phase.GRAPH_CAPTURE}:
        return Ruling(
            class_=FailureClass.STARTUP_PROBE_FAILED,
            fixes=("increase_startup_probe", "relax_liveness_probe"),
            confidence=0.75,
        )
    return _ended_while_starting(case) if case.phase is Phase.UNKNOWN else Ruling()


def _ended_while_starting(case: RuleInput) -> Ruling:
    """Where nothing shows that the server was ever up, its liveness probe most likely ended it as it started."""
    fixes: Fixes = ("relax_liveness_probe", "increase_startup_probe", "collect_container_logs")
    if case.mentions("connection refused"):
        fixes = ("increase_startup_probe", "relax_liveness_probe", "collect_container_logs")
        if case.mentions("persistent failure to start container"):  # it ends again and again: its log says why
            fixes = fixes[::-1]
    elif (
        not case.has("failed liveness probe, will be restarted")
        or case.mentions(*_ANSWERS)
        or _WAS_UP.search(case.text)
    ):
        return Ruling()
    return Ruling(class_=FailureClass.STARTUP_PROBE_FAILED, fixes=fixes, confidence=0.5)


def image_pull(case: RuleInput) -> Ruling:
    """Credentials, the network, the disk or the name: the answer says which."""
    if case.mentions("no space left on device"):
        return Ruling(class_=FailureClass.DISK_FULL, fixes=("increase_disk", "fix_cache_path"))
    return next((Ruling(fixes=fixes) for words, fixes in _IMAGE_FIXES if case.mentions(*words)), Ruling())


def no_gpu(case: RuleInput) -> Ruling:
    """A device that was there and is gone wants a restart; one that never was wants runtime or driver."""
    if case.has("nvml: unknown error", "nvmlerror_unknown") or (
        case.has("failed to initialize nvml") and case.mentions("unknown error")
    ):
        return Ruling(fixes=("restart", "fix_image_or_driver"))
    if case.has("driver/library version mismatch"):
        return Ruling(class_=FailureClass.CUDA_DRIVER_MISMATCH)
    if case.mentions("requirement error", "unsatisfied condition", "error 803", "error 804", "too old"):
        return Ruling(class_=FailureClass.CUDA_DRIVER_MISMATCH, fixes=("fix_image_or_driver",), confidence=0.85)
    return Ruling()


def hardware(case: RuleInput) -> Ruling:
    """Faults of the bus or the host's memory translation are the machine's set-up; a card that hangs wants a reset."""
    if case.mentions("io_page_fault", "iommu"):
        return Ruling(fixes=("fix_image_or_driver", "restart", "fix_network_nccl"))
    if case.has(*_DEVICE_HANGS):
        return Ruling(fixes=("restart", "fix_image_or_driver", "change_accelerator"))
    return Ruling()


def nccl(case: RuleInput) -> Ruling:
    """A collective that timed out is a rank that stopped; a failure at once is transport, or shared memory."""
    if case.mentions("watchdog caught collective", "collective operation timeout", "connection closed by remote peer"):
        return Ruling(fixes=("fix_network_nccl", "restart", "none_code_bug"), confidence=0.75)
    if case.mentions("unhandled system error", "ncclsystemerror") and not case.mentions(*_NETWORK_WORDS):
        return Ruling(fixes=("set_shm_size", "fix_network_nccl"), confidence=0.7)
    if case.mentions("duplicate gpu detected"):
        return Ruling(fixes=("set_flag tensor_parallel_size", "fix_network_nccl"))
    if case.has("libnccl.so") or case.mentions("failed to load nccl"):
        return Ruling(fixes=("fix_image_or_driver", "upgrade_version"))
    return Ruling()


def saturation(case: RuleInput) -> Ruling:
    """Probe time-outs under load want patience, full caches want instances, time-outs of clients both."""
    if case.has("liveness") and case.phase is Phase.UNKNOWN and case.mentions("connect: connection refused"):
        return liveness(case)  # nobody listened yet: it was still starting
    if case.mentions("liveness", "health check", "/health", "probe"):
        return Ruling(fixes=("relax_liveness_probe", "scale_out", "increase_startup_probe"))
    usage, waiting = case.number("kv_usage_percent"), case.number("waiting_requests")
    if usage is not None and waiting is not None and usage >= 85 and waiting > 0:
        return Ruling(confidence=0.85)
    return Ruling(confidence=0.7 if case.has("kv cache usage") else None)


_CUT_OFF = ("response payload is not completed", "transferencodingerror")


def network(case: RuleInput) -> Ruling:
    """An outage of the hub passes; an address that does not resolve or a refused route does not.

    A connection that breaks with no word of who was asked may be a client's. What is asked of this machine is asked of
    the server itself, but for a proxy. What an engine asks between its steps is another engine, or a cache: it should
    have outlived that.
    """
    if case.has(*_THIS_MACHINE) and not case.has("proxy"):
        fixes = ("collect_container_logs", "set_flag port", "increase_startup_probe")
        return Ruling(class_=FailureClass.PORT_NOT_LISTENING, fixes=fixes, confidence=0.6)
    # a benchmark asks nobody but its server, which had begun to answer
    if case.has(*_CUT_OFF) and case.mentions("bench") and not case.has(*_HUBS):
        return Ruling(
            class_=FailureClass.ENGINE_DEAD,
            fixes=("collect_container_logs", "restart", "upgrade_version"),
            confidence=0.5,
        )
    if "engine_died" in case.also and case.mentions(*_ENGINE_SERVES) and not case.has(*_HUBS):
        return Ruling(
            class_=FailureClass.ENGINE_DEAD, fixes=("restart", "none_code_bug", "fix_network"), confidence=0.6
        )
    named = case.has(*_SOMEBODY_ASKED) or (case.mentions(*_SOMEBODY_ASKED) and not case.mentions(*_THIS_MACHINE))
    if case.mentions(*_OUTAGE):
        return Ruling(fixes=("restart", "fix_network", "fix_cache_path"), confidence=None if named else 0.6)
    return Ruling(confidence=None if named else 0.7)


def peer(case: RuleInput) -> Ruling:
    """Another program, of which the words do not say who it is; on this machine it is the server itself."""
    return network(case) if case.has(*_THIS_MACHINE) else Ruling()


def ended_early(case: RuleInput) -> Ruling:
    """Who ends a start: a platform that waited too long, or a person at the machine."""
    if case.platform == "host":
        return Ruling(class_=FailureClass.BENIGN, fixes=("none_benign",), confidence=0.6)
    return Ruling(confidence=None if case.platform else 0.6)


def nothing_listens(case: RuleInput) -> Ruling:
    """The platform's own words say whether time or the port is suspected; a log that loads steadily says time."""
    if case.phase in _LOADS:
        return Ruling(
            class_=FailureClass.STARTUP_PROBE_FAILED, fixes=("increase_startup_probe", "fix_cache_path"), confidence=0.7
        )
    if case.has("within the allocated timeout", "timeout") and "back_off_restarting" not in case.also:
        return Ruling(fixes=("increase_startup_probe", "collect_container_logs", "set_flag port"))
    if case.has("mismatch", "does not match"):
        return Ruling(fixes=("set_flag port", "collect_container_logs"), confidence=0.8)
    return Ruling()


def silent_death(case: RuleInput) -> Ruling:
    """A worker that ends during start-up without a word of its own was mostly killed for host memory.

    An engine that reported a failure of its own before, in the same start, ends its workers itself.
    """
    before = case.text.partition(case.line)[0].rpartition("starting to load")[2] if case.line else ""
    reported = "enginecore failed to start" in before and "workerproc initialization failed" not in before
    loading = case.phase in _LOADS and not reported
    killed = case.mentions("exit code: none", "exit code: -9", "exitcode: -9", "sigkill")
    if loading and killed and not case.also & {"engine_bug", "exception_by_its_frames"}:
        return Ruling(
            class_=FailureClass.HOST_OOM,
            fixes=("increase_memory_limit", "restart", "collect_container_logs"),
            confidence=0.6,
        )
    return Ruling()


_PROCESS = r"(?:\[[^\]\n]{0,80}\] ?)?"
_RAISED = rf"(?:^|\n){_PROCESS}[\w.]{{0,80}}(?:error|exception)(?:: [^\n]{{0,400}})?\n\s{{0,160}}{_PROCESS}"
"""In small letters: an exception with nothing but blank lines below it, and the name of the next line's process."""


def killed(case: RuleInput) -> Ruling:
    """A start that is killed while it takes memory was mostly killed for it; elsewhere an operator is as likely.

    Right below an exception it is as likely the server itself (:func:`killed_below_an_exception`).
    """
    if _is_right_below_an_exception(case):
        return Ruling(class_=FailureClass.UNKNOWN)
    return Ruling(confidence=0.75 if case.phase in _LOADS else 0.5)


def killed_below_an_exception(case: RuleInput) -> Ruling:
    """Servers of several processes end the rest when one fails; while weights load, the kernel is as likely to kill."""
    return Ruling() if _is_right_below_an_exception(case) else Ruling(class_=FailureClass.UNKNOWN)


def _is_right_below_an_exception(case: RuleInput) -> bool:
    return case.phase not in _LOADS and re.search(_RAISED + re.escape(case.line.strip()), case.text) is not None
