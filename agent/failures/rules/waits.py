"""Waits and queues: how long, and whether anything moves, tells a busy server from one that stands."""

import re
from itertools import pairwise

from agent.failures.rules.rule_input import RuleInput, Ruling
from agent.failures.signature import FailureClass, Phase

_BLOCK_WAIT = "no available shared memory broadcast block found"
_STEP_OF_A_START = re.compile(
    r"vllm api server version|initializing an? (?:v[01] )?llm engine|graph capturing finished|init engine \(profile"
    "|startup complete"
)
"""What a start prints when it begins, and when what its workers had waited for is done."""
_SLOW_STEPS = ("torch.compile takes", "compiling a graph", "loading safetensors", "capturing cuda graph")
_MOVES = ("[autotuner]: tuning", "start build [module_", "finish build [module_", "init engine (profile")
"""FlashInfer, which measures kernels for minutes; AITER, which builds them; an engine that has done all of that.

A worker that waits for the lock of another's build says nothing of it: the lock may be stale.
"""
_STATISTICS = re.compile(
    r"(?:engine (?P<engine>\d{1,5}): )?avg prompt throughput: [\d.]{1,12} tokens/s, "
    r"avg generation throughput: (?P<tokens>\d{1,9}(?:\.\d{1,3})?) tokens/s, "
    r"(?P<requests>running: (?P<running>\d{1,6}) reqs, waiting: \d{1,6} reqs), "
    r"(?:(?:preemptions: \d{1,9}|deferred: \d{1,6} reqs), ){0,2}gpu kv cache usage: (?P<cache>\d{1,3}(?:\.\d{1,3})?)%"
)
"""vLLM's count of ten seconds: tokens, requests and their cache (v1/metrics/loggers.py)."""
_STEADY = 1.0
"""Tokens a second from which on ten seconds without any are no chance."""
_PLACEMENT_WAIT = re.compile(r"placement group of specs for (\d{1,5}) seconds")
_CLOCK = re.compile(r"\b(\d\d):(\d\d):(\d\d)\b")
_DAY_S = 86_400
_RETRIES_OF_A_WAIT = 5
_TRY = re.compile(
    r"(?:tcp client failed to connect/validate to host .{1,200}\(try=|socketpollconnect: .{1,80}, retrying \()(\d{1,6})"
)
_HANG_AFTER_S = 300
"""Seconds without a line after the KV cache stands: graphs of the largest models are captured in less."""
SHORT_QUEUE = 32  # requests that wait in a burst, which is no saturation
_QUEUED = re.compile(r"#queue-req: (\d{1,6})")
_RANK = re.compile(r" (dp\d{1,3})\b")
_BATCHES_OF_A_QUEUE = 4  # in so many batches after another a queue that gets shorter is one that drains
_DRAINED = 0.75  # of its longest
_NEARLY_FULL = re.compile(r"token usage: (?:1\.00|0\.9[5-9])")
DEEP_QUEUE = 4  # so many times as many wait as run: one line is enough
_RAY_ANSWERS_WITHIN_S = 60
"""Seconds; vLLM reports a wait at 10, 30, 70, 150 ... s and gives up at 1800 (executor/ray_utils.py)."""


def broadcast(case: RuleInput) -> Ruling:
    """Workers that wait are harmless while something compiles or loads; repeated with no progress it is a hang.

    A third wait below the last step of a start is a hang too, even with a 200 between: that of a stream is written
    before its first token.
    """
    working = case.mentions(*_SLOW_STEPS)
    dead = case.mentions("timed out", "timeouterror", "enginedead", "died unexpectedly")
    stands_still = "stats_no_tokens" in case.also or _silent_before(case) >= _HANG_AFTER_S
    again = case.repeats > 1 or _STEP_OF_A_START.split(case.text)[-1].count(_BLOCK_WAIT) > 2
    moves = case.progress_after or any(words in case.text.rpartition(_BLOCK_WAIT)[2] for words in _MOVES)
    if dead or stands_still or (again and not moves):
        return Ruling(confidence=0.7)
    if moves or working:
        return Ruling(class_=FailureClass.BENIGN, fixes=("none_benign",), confidence=0.8)
    if case.phase is Phase.UNKNOWN:
        return Ruling(confidence=0.4)  # nothing tells how far the server had come
    return Ruling(class_=FailureClass.BENIGN, fixes=("none_benign",), confidence=0.5)


def store_retries(case: RuleInput) -> Ruling:
    """A rank that comes first is refused a few times; where somebody else answers there, it stands still."""
    tries = [int(number) for number in _TRY.findall(case.text)]  # each rank counts its own
    few = (max(tries) + 1 if tries else case.repeats) < _RETRIES_OF_A_WAIT and not case.has("got 0 bytes")
    if case.progress_after or few:
        return Ruling(class_=FailureClass.BENIGN, fixes=("none_benign",), confidence=0.5)
    return Ruling()


def _silent_before(case: RuleInput) -> int:
    """Seconds between the line and the one before it, once the weights are loaded; 0 where they carry no times."""
    if case.phase not in {Phase.GRAPH_CAPTURE, Phase.READY, Phase.SERVING} or not case.line:
        return 0
    before = case.text.partition(case.line)[0]
    stamps = [_CLOCK.search(case.line), *reversed(list(_CLOCK.finditer(before)))][:2]
    if len(stamps) < 2 or stamps[0] is None or stamps[1] is None:
        return 0
    now, then = (int(at[1]) * 3600 + int(at[2]) * 60 + int(at[3]) for at in stamps if at is not None)
    return (now - then) % _DAY_S


def placement(case: RuleInput) -> Ruling:
    """Ray answers within seconds when it has the cards; a wait of a minute, or vLLM, says that it has none."""
    if case.mentions("exceeds the total number of available") and not case.progress_after:
        return Ruling()
    waited = max((int(seconds) for seconds in _PLACEMENT_WAIT.findall(case.text)), default=0)
    if waited < _RAY_ANSWERS_WITHIN_S or case.progress_after:
        return Ruling(class_=FailureClass.BENIGN, fixes=("none_benign",), confidence=0.5)
    return Ruling()


def no_tokens(case: RuleInput) -> Ruling:
    """Running requests without a token: one line may be a long prompt, a row of lines is a hang.

    One line is a hang too where tokens came steadily before it, and as many requests hold as much cache since then.
    """
    if case.repeats < 2 and _stopped_in_mid_answer(case):
        return Ruling(confidence=0.5)
    if case.repeats < 2:
        return Ruling(class_=FailureClass.BENIGN, fixes=("none_benign",), confidence=0.5)
    return Ruling(confidence=0.85 if case.repeats > 2 else 0.6)


def _stopped_in_mid_answer(case: RuleInput) -> bool:
    """Whether the statistics of the same engine before these counted tokens, and as many requests and as much cache."""
    now = _STATISTICS.search(case.line)
    if now is None or float(now["cache"]) == 0:
        return False
    above, _, below = case.text.partition(case.line)
    if any(count["engine"] == now["engine"] and count["running"] == "0" for count in _STATISTICS.finditer(below)):
        return False  # the client gave up, and the engine let the request go
    before = [count for count in _STATISTICS.finditer(above) if count["engine"] == now["engine"]][-1:]
    steady = (count for count in before if float(count["tokens"]) >= _STEADY)
    return any(count["requests"] == now["requests"] and count["cache"] == now["cache"] for count in steady)


def waiting(case: RuleInput) -> Ruling:
    """A queue in one line is a burst; in three and more, half a minute, it does not drain.

    A request that waits while none runs does not fit into the cache as it is; nor does one that was taken back from it
    again and again. A full pool of SGLang takes no burst. SGLang counts each batch, so that a queue is seen to drain.
    """
    queued, running = case.number("waiting_requests") or 0, case.number("running_requests") or 0
    full = case.has("token usage: 1.00")
    if case.has("#queue-req") and queued < max(SHORT_QUEUE, running / 2) and not full:  # SGLang counts each burst
        return Ruling(class_=FailureClass.BENIGN, fixes=("none_benign",), confidence=0.5)
    if _drains(case):
        return Ruling(class_=FailureClass.BENIGN, fixes=("none_benign",), confidence=0.5)
    if queued >= DEEP_QUEUE * max(running, SHORT_QUEUE):
        return Ruling(confidence=0.6)
    taken_back = case.repeats > 1 and case.has("gpu kv cache usage: 0.0%")
    if case.has("running: 0 reqs") and (case.has("generation throughput: 0.0") or taken_back):
        return Ruling(fixes=("set_flag max_model_len lower", "restart", "set_flag max_num_seqs lower"), confidence=0.5)
    if case.repeats < 2:
        return Ruling(class_=FailureClass.BENIGN, fixes=("none_benign",), confidence=0.5)
    return Ruling(confidence=0.75 if case.repeats > 2 else 0.5)


def _drains(case: RuleInput) -> bool:
    """Whether the queue of one scheduler, once longest, is shorter in every batch since and deep no more, with room."""
    counts = [(found[1], _RANK.search(line)) for line in case.text.split("\n") if (found := _QUEUED.search(line))]
    if not counts or len({rank and rank[1] for _, rank in counts}) > 1 or _NEARLY_FULL.search(case.text):
        return False
    queues = [int(length) for length, _ in counts]
    since = queues[queues.index(max(queues)) :]
    shorter = all(after < before or after == before == 0 for before, after in pairwise(since))
    rest = min(_DRAINED * since[0], DEEP_QUEUE * SHORT_QUEUE)
    return len(since) >= _BATCHES_OF_A_QUEUE and shorter and since[-1] <= rest


def full_cache(case: RuleInput) -> Ruling:
    """Where requests are taken back from the cache, vLLM's own advice comes first: more of it, or fewer requests."""
    if "preemption_notice" in case.also:
        return Ruling(fixes=("set_flag gpu_memory_utilization up", "set_flag max_num_seqs lower", "scale_out"))
    return Ruling()
