"""Memory: which way to turn the share, the context and the batch, and what a bad access to it says."""

import re

from agent.failures.rules.rule_input import Fixes, RuleInput, Ruling
from agent.failures.signature import FailureClass, Phase
from agent.failures.text.log_text import TRACEBACK

LOADING_FIXES: Fixes = (
    "change_model_or_quantization",
    "set_flag tensor_parallel_size up",
    "change_accelerator",
    "set_flag gpu_memory_utilization lower",
)
PROFILE_FIXES: Fixes = (
    "set_flag max_num_seqs lower",
    "set_flag gpu_memory_utilization lower",
    "set_flag max_model_len lower",
    "set_flag limit_mm_per_prompt",
    "set_flag enforce_eager",
)
CAPTURE_FIXES: Fixes = (
    "set_flag gpu_memory_utilization lower",
    "set_flag enforce_eager",
    "set_flag max_num_seqs lower",
    "set_flag max_model_len lower",
)
ANY_PHASE_FIXES: Fixes = (
    "set_flag gpu_memory_utilization lower",
    "change_model_or_quantization",
    "set_flag max_num_seqs lower",
    "set_flag tensor_parallel_size up",
)
RUNTIME_FIXES: Fixes = (
    "set_flag gpu_memory_utilization lower",
    "set_flag max_model_len lower",
    "set_flag max_num_batched_tokens lower",
    "restart",
)
_BY_PHASE = {
    Phase.CONFIG: LOADING_FIXES,
    Phase.LOADING: LOADING_FIXES,
    Phase.GRAPH_CAPTURE: CAPTURE_FIXES,
    Phase.READY: RUNTIME_FIXES,
    Phase.SERVING: RUNTIME_FIXES,
}
AT_ONCE_FIXES: Fixes = (
    "set_flag limit_mm_per_prompt",
    "set_flag max_num_batched_tokens lower",
    "upgrade_version",
    "none_code_bug",
)
"""Where one block alone is larger than the whole card: less of an image or a prompt at once, or another kernel."""
RESERVE_FIXES: Fixes = (
    "set_flag max_model_len lower",
    "set_flag max_num_batched_tokens lower",
    "set_flag max_num_seqs lower",
    "change_model_or_quantization",
)
METAL_FIXES: Fixes = ("change_model_or_quantization", "set_flag max_model_len lower", "restart")
"""Apple's cards take no share of a memory that they have not to themselves."""
_OF_LLAMA_CPP = ("ggml_", "llama_", "alloc_tensor_range", "graph_reserve")
_RESERVES = ("ggml_gallocr", "compute buffer", "graph_reserve", "sched_reserve", "llama_new_context", "llama_context:")
_LOADS = ("alloc_tensor_range", "error loading model: unable to allocate")
_OF_A_REQUEST = "enginedeaderror"
"""What vLLM raises for requests alone."""
_FORWARD = re.compile(r", in (?:forward(?:_cuda|_native|_hip)?|\w{1,60}_fwd)\n")
"""A frame of a layer that computes: all is loaded. So it is where PyTorch names the pools of captured graphs."""
_WAKES = re.compile(r'(?:cumem|worker|llm)\.py", line \d{1,7}, in wake_up\n')
"""A frame of an engine that slept and maps its memory again: it had started long before.

What the allocator's C++ prints stands above the traceback; torch_memory_saver names its function alone.
"""
_SETS_DEVICE = re.compile(
    r"worker\.py\", line \d{1,7}, in init_device\n(?:[^\n]{0,400}\n){0,3}?[^\n]{0,200}, in set_device"
)
"""Frames of a worker that chooses its card: nothing of its own is on it yet."""
_LOADS_WEIGHTS = re.compile(
    r"weights\.py\", line \d{1,7}, in get_\w{1,40}\n(?:(?![^\n]{0,60}file \")[^\n]{0,400}\n){0,3}$"
)
"""The last frame is of TGI, which reads a tensor and brings it to its card; it writes of a warm-up before."""
_LOADED = ("model loading took", "model weights took", "checkpoint shards: 100%")
_THIS_PROCESS = re.compile(r"this process has (\d{1,6}(?:\.\d{1,4})?) (gib|mib)")
_ONE_OF_THEM = re.compile(r"process \d{1,10} has ")
_RESERVED_IN_TOTAL = "reserved in total by pytorch"
"""What PyTorch before 2.1, and Ascend's, holds with its caches."""
OWN_SHARE = 0.7
"""Of a card that is full: where what is ours and what is free come to less, somebody else holds the rest."""
_NOTHING_YET = "of the allocated memory 0 bytes is allocated by pytorch"
"""Of a process that found the card full; where it is a worker, its own siblings may fill it."""
_CALLED = re.compile(
    r'file "[^"\n]{1,400}", line \d{1,7}, in [^\n]{1,100}\n(?:[^\n]{0,400}\n){0,3}?'
    r"[^\n]{0,200}\bllm\.(?:generate|chat)\("
)
"""A program's own frame, lines of others perhaps within it: it has the engine, and asks it for answers."""
_BUFFER_GB = re.compile(r"max_local_cpu_size'?[:=] ?'?(\d{1,6}(?:\.\d{1,3})?)(?: ?gi?b)?")
_WORKER = re.compile(r"\((?:vllm)?worker[ _](?:rank=|tp)(\d{1,4})")
LARGE_BUFFERS_GB = 100.0
"""Offload buffers of all workers together that no node takes by the way."""
CUDA_GIB, CUDA_SHARE = 0.6, (0.0135, 0.05)
"""What CUDA takes of a card for itself, within two shares of it: where PyTorch holds all the rest, a smaller share of
memory gives the weights no room."""
BEYOND_ANY_SHARE, USUAL_SHARE, LARGEST_TENSOR_GIB = 0.95, 0.93, 4.0
"""A start of a usual share that holds so much of its card, and asks for one tensor more, has no cache yet: it holds
weights."""
OCCUPIED_FIXES: Fixes = ("restart", "set_flag gpu_memory_utilization lower")


def gpu_oom(case: RuleInput) -> Ruling:
    """Out of device memory: the phase decides; without one, who holds the memory does.

    A card on which our own process and PyTorch hold next to nothing while nothing is free is held by somebody else.
    Without a phase, a block of GiBs is a profile run or a long prompt, and anything smaller is taken for weight
    loading, whose layers are tens to hundreds of MiB: a guess, and the answer says so by its confidence.
    """
    if case.has("[metal]"):
        known: Fixes | None = METAL_FIXES
    else:  # of a server that is up, who else stands in the list is the engine's other processes
        known = RUNTIME_FIXES if case.phase in {Phase.READY, Phase.SERVING} else None
    if known:
        return Ruling(fixes=known)
    if case.has(*_OF_LLAMA_CPP):
        return _llama_cpp(case)
    total, free, own = case.gib("gpu_total"), case.gib("gpu_free"), case.gib("process")
    held = 0.0 if case.has(_NOTHING_YET) and not case.has("worker") else case.gib("torch_allocated")
    reserved = case.gib("torch_reserved") or 0.0
    if held:
        held = max(held, reserved) if case.has(_RESERVED_IN_TOTAL) else held + reserved
    named = _THIS_PROCESS.search(case.line)
    if named:
        own = float(named[1]) / (1024 if named[2] == "mib" else 1)
    elif len(_ONE_OF_THEM.findall(case.line)) > 1:
        own = None  # the first of a list of processes is anybody
    mine = own if own is not None else held
    if total and free is not None and mine is not None and mine + free < OWN_SHARE * total and free < 0.15 * total:
        return Ruling(class_=FailureClass.GPU_MEMORY_OCCUPIED, fixes=OCCUPIED_FIXES, confidence=0.8)
    if ruling := _of_frames(case):
        return ruling
    if case.phase is Phase.PROFILING:
        return Ruling(fixes=_of_profiling(case))
    by_phase = _BY_PHASE.get(case.phase)
    return Ruling(fixes=by_phase) if by_phase else _without_a_phase(case)


def _of_frames(case: RuleInput) -> Ruling | None:
    """What frames say: a sleeping engine wakes up, a program asks it for answers, or a worker has not begun to load."""
    above, _, below = case.text.partition(case.line) if case.line else ("", "", "")
    frames = above.rpartition(TRACEBACK.lower())[2]
    called = case.phase in {Phase.PROFILING, Phase.GRAPH_CAPTURE} and _CALLED.search(case.text)
    wakes = _WAKES.search(frames) or (case.has("cumem_allocator") and _WAKES.search(below))
    if wakes or case.mentions("call to wake_up method failed") or case.has("func=resume") or called:
        return Ruling(class_=FailureClass.GPU_OOM_RUNTIME, fixes=RUNTIME_FIXES)
    if _LOADS_WEIGHTS.search(frames):
        return Ruling(class_=FailureClass.GPU_OOM_WEIGHTS, fixes=LOADING_FIXES)
    if _SETS_DEVICE.search(frames) and not case.mentions(*_LOADED):  # a rank of the same server may fill it
        return Ruling(class_=FailureClass.GPU_MEMORY_OCCUPIED, fixes=OCCUPIED_FIXES, confidence=0.8)
    return None


def _of_profiling(case: RuleInput) -> Fixes:
    tried, total = case.gib("tried"), case.gib("gpu_total")
    return AT_ONCE_FIXES if tried is not None and total is not None and tried > total else PROFILE_FIXES


def _without_a_phase(case: RuleInput) -> Ruling:
    if case.mentions("private pools", _OF_A_REQUEST) or _FORWARD.search(case.text):  # all is loaded
        return Ruling(class_=FailureClass.GPU_OOM_RUNTIME, fixes=RUNTIME_FIXES)
    if case.mentions("shardcannotstart"):  # TGI warms up only once its shards have their weights
        return Ruling(fixes=LOADING_FIXES)
    tried = case.gib("tried") or 0.0
    if tried >= 1.0 and not (tried <= LARGEST_TENSOR_GIB and _is_beyond_any_share(case)):
        return Ruling(class_=FailureClass.GPU_OOM_PROFILE, fixes=_of_profiling(case))
    return Ruling(fixes=LOADING_FIXES if tried >= 1.0 or _is_full(case) else ANY_PHASE_FIXES)


def _is_beyond_any_share(case: RuleInput) -> bool:
    held, total = case.gib("torch_allocated"), case.gib("gpu_total")
    usual = (case.number("gpu_memory_utilization") or 0.0) <= USUAL_SHARE
    return usual and held is not None and total is not None and held >= BEYOND_ANY_SHARE * total


def _is_full(case: RuleInput) -> bool:
    """Whether PyTorch holds all that CUDA leaves."""
    held, total = case.gib("torch_allocated"), case.gib("gpu_total")
    if held is None or total is None:
        return False
    least, most = CUDA_SHARE
    return total - held <= max(min(CUDA_GIB, most * total), least * total)


def _llama_cpp(case: RuleInput) -> Ruling:
    """llama.cpp loads its tensors, then reserves what its graphs compute in, and takes no share of the card."""
    if case.mentions(*_LOADS):
        return Ruling(class_=FailureClass.GPU_OOM_WEIGHTS, fixes=LOADING_FIXES)
    if case.mentions(*_RESERVES):
        return Ruling(class_=FailureClass.GPU_OOM_PROFILE, fixes=RESERVE_FIXES)
    return Ruling(fixes=LOADING_FIXES)


def cache_blocks(case: RuleInput) -> Ruling:
    """Nothing is left for the KV cache: raise the share if the card has room beyond it, else need less.

    The share is worth raising when weights and activations fit in what a share of 0.95 would give; a share of
    0.94 or more has nothing left to give.
    """
    share = case.number("gpu_memory_utilization")
    total = case.gib("gpu_total") or case.gib("startup_total")
    weights = case.gib("weights")
    activations = case.gib("activation_peak") or 0.0
    shrink = (
        "set_flag max_model_len lower",
        "change_model_or_quantization",
        "set_flag max_num_batched_tokens lower",
        "set_flag tensor_parallel_size up",
        "set_flag gpu_memory_utilization up",
    )
    if total and weights is not None:
        room = 0.95 * total - weights - activations
        return Ruling() if room > 0.03 * total and (share is None or share < 0.94) else Ruling(fixes=shrink)
    if share is not None and share >= 0.94:
        return Ruling(fixes=shrink)
    return Ruling(confidence=None if share is not None else 0.85)


def one_request(case: RuleInput) -> Ruling:
    """The longest context that fits, where the log names it, goes behind the direction."""
    estimate = case.number("estimated_max_model_len") or case.number("kv_cache_tokens")
    fixes = ["set_flag max_model_len lower"]
    if estimate and estimate >= 1:
        fixes.append(f"set_flag max_model_len {int(estimate)}")
    fixes += ["set_flag gpu_memory_utilization up", "set_flag kv_cache_dtype fp8", "set_flag tensor_parallel_size up"]
    return Ruling(fixes=tuple(fixes))


def occupied(case: RuleInput) -> Ruling:
    """A card that is nearly full at start is held by a process that must end; a small lack is a share too high."""
    free, total = case.gib("startup_free"), case.gib("startup_total")
    if free is not None and total and free < 0.25 * total:
        return Ruling(fixes=OCCUPIED_FIXES)
    return Ruling()


def hbm(case: RuleInput) -> Ruling:
    """On a TPU: weights that do not fit want another topology, programs that do not fit want a lower share."""
    lower: Fixes = (
        "set_flag gpu_memory_utilization lower",
        "set_flag max_model_len lower",
        "change_accelerator",
        "set_flag max_num_batched_tokens lower",
    )
    if case.has("smem", "vmem"):
        return Ruling(fixes=("set_flag max_model_len lower", "upgrade_version", "set_flag max_num_seqs lower"))
    if case.phase is Phase.LOADING and case.mentions("quantiz", "qwix"):
        return Ruling(fixes=("change_model_or_quantization", "change_accelerator", "set_flag tensor_parallel_size up"))
    loads = case.has("at the bottom of memory") or case.mentions("loading program")
    if loads or case.phase in {Phase.GRAPH_CAPTURE, Phase.SERVING} or case.has("for request"):
        return Ruling(fixes=lower)
    exceeded, total = case.gib("hbm_exceeded"), case.gib("hbm_total")
    if exceeded is not None and exceeded < 0.08 * (total or 16.0):
        return Ruling(fixes=lower)
    return Ruling()


def offload_buffer(case: RuleInput) -> Ruling:
    """Pinned host buffers, one in each worker: told only where nothing else speaks and the log ends with them."""
    sizes = [float(size) for size in _BUFFER_GB.findall(case.text)]
    workers = max(len(set(_WORKER.findall(case.text))), 1)
    if len(case.also) > 1 or case.progress_after or not sizes or max(sizes) * workers < LARGE_BUFFERS_GB:
        return Ruling(class_=FailureClass.UNKNOWN)
    return Ruling()


_SEGFAULT = (
    *("segmentation fault", "sigsegv", "segfault", "exit code: -11", "signal 11", "11/segv"),
    *("signal: 11", "signal (11)", "general protection"),
)
_EXIT_139 = ("exit code 139", "exit code:    139", "exitcode: 139")
_PEER_GONE = ("ncclremoteerror", "remote process exited or there was a network error")
_STACK = re.compile(r"(?:stack|current thread \S{1,40}) \(most recent call first\):?")
"""Below it CPython prints the frames of a fatal error, innermost first (Python/traceback.c)."""
_INNERMOST = 3
_COLLECTIVES = ("pynccl", "ncclallreduce", "nccl_", "hccl", "nixl")


def illegal(case: RuleInput) -> Ruling:
    """Neuron and ROCm faults come from compiled code too; a plain segmentation fault says least.

    Below a peer that NCCL lost, it is how the survivor ended: the loss is the trouble. One whose innermost frames are
    those of a collective is the collective's.
    """
    if case.has(*_SEGFAULT, *_EXIT_139):
        above = case.text.partition(case.line)[0]
        if any(words in above for words in _PEER_GONE):
            return Ruling(class_=FailureClass.UNKNOWN)
        stack = _STACK.split(case.text.partition(case.line)[2], maxsplit=1)
        inner = stack[-1].split("\n")[1 : 1 + _INNERMOST] if len(stack) > 1 else []
        if any(words in frame for frame in inner for words in _COLLECTIVES):
            return Ruling(
                class_=FailureClass.NCCL_FAILURE, fixes=("fix_network_nccl", "upgrade_version"), confidence=0.5
            )
        return Ruling(confidence=0.65)
    return Ruling(fixes=("none_code_bug", "upgrade_version", "restart", "set_flag enforce_eager"))
