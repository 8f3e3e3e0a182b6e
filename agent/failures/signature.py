"""A signature is one recognisable failure text: the phrases that never change, and what they mean."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

WILDCARD = "<*>"
"""Stands in a phrase for anything that varies within one line."""


class FailureClass(StrEnum):
    """The closed list of what can be wrong; ``UNKNOWN`` is an answer, never a guess."""

    GPU_OOM_WEIGHTS = "gpu_oom_weights"
    GPU_OOM_PROFILE = "gpu_oom_profile"
    GPU_OOM_RUNTIME = "gpu_oom_runtime"
    KV_CACHE_INSUFFICIENT = "kv_cache_insufficient"
    GPU_MEMORY_OCCUPIED = "gpu_memory_occupied"
    HOST_OOM = "host_oom"
    STARTUP_PROBE_FAILED = "startup_probe_failed"
    PORT_NOT_LISTENING = "port_not_listening"
    WEIGHTS_UNREADABLE = "weights_unreadable"
    MODEL_ACCESS_DENIED = "model_access_denied"
    MODEL_NOT_FOUND = "model_not_found"
    UNSUPPORTED_ARCHITECTURE = "unsupported_architecture"
    UNSUPPORTED_DTYPE_OR_QUANT = "unsupported_dtype_or_quant"
    CUDA_DRIVER_MISMATCH = "cuda_driver_mismatch"
    NO_GPU_VISIBLE = "no_gpu_visible"
    GPU_HARDWARE_FAULT = "gpu_hardware_fault"
    SHM_TOO_SMALL = "shm_too_small"
    NCCL_FAILURE = "nccl_failure"
    TP_SHAPE_MISMATCH = "tp_shape_mismatch"
    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    QUEUE_SATURATION = "queue_saturation"
    TOOL_PARSER_ERROR = "tool_parser_error"
    CHAT_TEMPLATE_ERROR = "chat_template_error"
    QUOTA_EXCEEDED = "quota_exceeded"
    IMAGE_PULL_FAILED = "image_pull_failed"
    ENGINE_DEAD = "engine_dead"
    ENGINE_HANG = "engine_hang"
    ILLEGAL_MEMORY_ACCESS = "illegal_memory_access"
    DISK_FULL = "disk_full"
    TPU_HBM_OOM = "tpu_hbm_oom"
    INVALID_FLAG = "invalid_flag"
    NETWORK_TIMEOUT = "network_timeout"
    ROLLOUT_DEADLOCK_NO_SPARE_GPU = "rollout_deadlock_no_spare_gpu"
    BENIGN = "benign"
    UNKNOWN = "unknown"


class Phase(StrEnum):
    """How far a server had come; it decides what an out-of-memory error means."""

    UNKNOWN = "unknown"
    CONFIG = "config"
    LOADING = "loading"
    PROFILING = "profiling"
    GRAPH_CAPTURE = "graph_capture"
    READY = "ready"
    SERVING = "serving"
    STOPPING = "stopping"


class Role(StrEnum):
    """What a line says about the trouble; of several on one line the first of this list counts.

    A HINT is words of a class without a known text. It speaks only where nothing better does: by itself it is no
    incident, and never certain.
    """

    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    BENIGN = "benign"
    PHASE = "phase"
    HINT = "hint"


class Proof(StrEnum):
    """What a phase marker says of its server besides the phase; docs/adr/0010-when-a-failure-is-over.md."""

    NONE = ""
    NEW_START = "new_start"
    """A server prints it once, first of all: what stands above belongs to another start."""
    STARTUP_COMPLETE = "startup_complete"
    """The start came to its end: its earlier troubles are over."""
    TOKENS = "tokens"
    """A request was completed or a token counter moved: troubles of serving are over."""
    QUEUE_EMPTY = "queue_empty"
    """The statistics count no waiting request: an earlier queue has drained. Nothing else is said."""
    ANSWERS = "answers"
    """The HTTP server answers, which a server with a dead engine does too: nothing is over."""
    INTERRUPTED = "interrupted"
    """A program was interrupted: of a server that was up, a person's stop. It excuses no error below it."""
    ASKED = "asked"
    """The platform was asked to end the server: what it reports of that end afterwards is no failure."""
    STARTED = "started"
    """A pod was given its node, or a container of it was started: what it waited for until then is over."""


TROUBLE = frozenset({Role.CAUSE, Role.CONSEQUENCE, Role.HINT})
"""Roles that say that something is wrong."""

PLAIN_TROUBLE = TROUBLE - {Role.HINT}
"""Those of lines that say so themselves; a hint only suggests it."""


@dataclass(frozen=True, kw_only=True)
class Signature:
    """One entry of the catalogue.

    Attributes:
        id: Name, unique in the catalogue.
        failure_class: The class where the phase says nothing else.
        class_by_phase: The class for a phase, where the phase decides.
        role: Cause, consequence of an earlier one, harmless look-alike, or phase marker.
        phrases: Literal texts, any one is enough; ASCII case is ignored, ``<*>`` is anything within the line.
        context: Phrases of which at least one must stand somewhere in the same text; empty asks for none.
        below: The context must stand in the line itself or right below it.
        once: Harmless only where it stands once for each pod.
        unless: Phrases that veto on the same line; here case matters, so that ``INFO`` is the level and no word.
        unless_text: Phrases that veto when they stand anywhere in the text.
        claims_line: Harmless, and no trouble is taken from a line in which it stands; phrases without gaps only.
        whole_line: A phrase is the whole line, but for white space, a time and the name of a container before it.
        names_subject: Its lines may name the unit, the process or the folder that they are of (text/subjects.py):
            another program's is no sighting, unless the kernel or the platform ended it; a stranger's is not certain.
        passing: A consequence that later tokens, or the end of its start, disprove.
        says_error: Only a line that says of itself that it is an error is a sighting.
        needs_silence: Concludes from what is not said: stands only in a whole log in which nothing else looks like
            trouble, and then before every other consequence.
        fields: Field name, with its unit, to an RE2 pattern with one group.
        phase: The phase that the text itself proves; UNKNOWN if none.
        proof: What the line proves besides its phase.
        near: The phase holds for the traceback around the line only, not for all that follows.
        platforms: Where it occurs; empty is everywhere.
        versions: vLLM versions whose source carries the text, or what else was read.
        precedence: 0..100; of several signatures in one text the highest wins, then the earliest.
        confidence: 0..1, that the class is right when the phrase stands in the text.
        certain: The text alone decides class and first fix.
        fixes: Fix actions, best first.
        fixes_by_phase: Fix actions for a phase, where the phase decides.
        decide: Name of the rule that orders the fixes by the numbers in the log; empty for none.
        becomes: Classes that its rule answers where the text proves them.
        title: A line for people.
        what: What it is.
        recognise: How to recognise it, and what it is not.
        hint: What to do.
        source: Where the text was read.
        date: When it was read, ISO.
    """

    id: str
    failure_class: FailureClass
    role: Role
    phrases: tuple[str, ...]
    fixes: tuple[str, ...]
    class_by_phase: Mapping[Phase, FailureClass]
    context: tuple[str, ...] = ()
    below: bool = False
    once: bool = False
    unless: tuple[str, ...] = ()
    unless_text: tuple[str, ...] = ()
    claims_line: bool = False
    whole_line: bool = False
    names_subject: bool = False
    passing: bool = False
    says_error: bool = False
    needs_silence: bool = False
    fields: Mapping[str, str]
    phase: Phase = Phase.UNKNOWN
    proof: Proof = Proof.NONE
    near: bool = False
    platforms: tuple[str, ...] = ()
    versions: str = ""
    precedence: int = 70
    confidence: float = 0.9
    certain: bool = True
    fixes_by_phase: Mapping[Phase, tuple[str, ...]]
    decide: str = ""
    becomes: tuple[FailureClass, ...] = ()
    title: str
    what: str = ""
    recognise: str = ""
    hint: str = ""
    source: str
    date: str


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """A signature that stands in the line at ``index``."""

    index: int
    signature: Signature
