"""A queue has drained where its own engine counted nobody after it, and where that is sure."""

import pytest

from agent.failures.match.matcher import Matcher
from agent.failures.signature import Phase, Proof
from agent.failures.text.phases import Timeline
from agent.failures.text.queues import SETTLED, Queues
from agent.failures.text.starts import PhaseMark
from tests.agent.failures.log_changes import HEALTHY_START

TOLD = "(APIServer pid=7) INFO 05-06 07:30:00 [launcher.py:9] Received signal SIGTERM, shutting down"
ENDED = "({} pid=71) INFO 05-06 07:30:01 [core.py:9] Shutdown complete"
PREEMPTED = "WARNING 05-06 07:09:10 [scheduler.py:9] Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space."


def stats(waiting: int, engine: int | None = 0, *, second: int = 0, tokens: float = 90.5) -> str:
    named = "" if engine is None else f"Engine {engine:03d}: "
    usage, running = (99.1, 256) if waiting else (12.4, 3)
    return (
        f"(APIServer pid=7) INFO 05-06 07:{10 + second // 60}:{second % 60:02d} [loggers.py:257] {named}Avg prompt throughput: 9.0 tokens/s, "
        f"Avg generation throughput: {tokens} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, "
        f"GPU KV cache usage: {usage}%, Prefix cache hit rate: 0.0%"
    )


def class_of(matcher: Matcher, *lines: str, prefix: str = "") -> str:
    text = "\n".join(prefix + line for line in [*HEALTHY_START, *lines])
    return matcher.classify(text, whole_log=True, platform=None).class_


FULL, EMPTY, OTHER = stats(80), stats(0), stats(0, 1)


@pytest.mark.parametrize("prefix", ["", "web-1  | "])
@pytest.mark.parametrize("tokens", [90.5, 0.0])
def test_another_engine_without_a_queue_drains_none(matcher: Matcher, prefix: str, tokens: float) -> None:
    full = [stats(80, 0, second=n, tokens=tokens) for n in (1, 11, 21)]
    mixed = [line for n, one in enumerate(full) for line in (one, stats(0, 1, second=10 * n + 2))]
    assert class_of(matcher, *mixed, prefix=prefix) == "queue_saturation"
    assert class_of(matcher, *reversed(mixed), prefix=prefix) == "queue_saturation"
    assert class_of(matcher, *mixed, stats(0, 0, second=31), prefix=prefix) == "benign"


def test_replicas_in_one_stream_without_names_leave_doubt(matcher: Matcher) -> None:
    """The same lines behind one collector's name are one server whose queue filled twice."""
    assert class_of(matcher, FULL, EMPTY, FULL, EMPTY) == "queue_saturation"
    assert class_of(matcher, FULL, EMPTY, FULL, EMPTY, prefix="web-1  | ") == "benign"
    both = [prefix + line for line in HEALTHY_START for prefix in ("web-1  | ", "web-2  | ")]
    both += ["web-1  | " + FULL, "web-2  | " + EMPTY, "web-1  | " + FULL, "web-2  | " + EMPTY]
    assert matcher.classify("\n".join(both), whole_log=True, platform=None).class_ == "queue_saturation"


@pytest.mark.parametrize(("prefix", "certain"), [("", False), ("web-1  | ", True)])
def test_a_queue_that_drained_without_a_servers_name_is_harmless_without_certainty(
    matcher: Matcher, prefix: str, certain: bool
) -> None:
    text = "\n".join(prefix + line for line in [*HEALTHY_START, FULL, *[EMPTY] * SETTLED])
    found = matcher.classify(text, whole_log=True, platform=None)
    assert (found.benign, found.certain) == (True, certain)


def test_a_stream_that_counts_nobody_for_long_has_no_queue(matcher: Matcher) -> None:
    waiting = [80, 0, 80, *[0] * SETTLED]
    every = [stats(count, second=10 * n) for n, count in enumerate(waiting)]
    assert class_of(matcher, *every) == "benign"
    assert class_of(matcher, *every[:-1]) == "queue_saturation"


@pytest.mark.parametrize("late", [0, 4])
def test_one_of_two_replicas_that_falls_silent_has_no_drained_queue(matcher: Matcher, late: int) -> None:
    """Both count every ten seconds: of two in one stream without names, that counts nobody who goes on alone."""
    both = [line for n in (0, 10) for line in (stats(80, second=n), stats(0, second=n + late))]
    alone = [stats(0, second=late + 10 * n) for n in range(2, SETTLED + 3)]
    assert class_of(matcher, *both, *alone) == "queue_saturation"
    assert class_of(matcher, *both, *alone, prefix="web-1  | ") == "benign"
    timeless = [line.replace(" 05-06 07:10:00", "") for line in [FULL, EMPTY, FULL, *[EMPTY] * SETTLED]]
    assert class_of(matcher, *timeless) == "queue_saturation"


@pytest.mark.parametrize("engine", [0, None])
@pytest.mark.parametrize(
    ("gaps", "benign", "certain"),
    [
        ((10, 20), True, True),
        ((5,), True, False),
        ((5, 10, 15, 20, 25, 30, 35), True, False),
        ((3, 10, 13, 20, 23, 30, 33), False, False),
    ],
    ids=["every ten seconds", "two that are close", "every five", "two that take turns"],
)
def test_statistics_too_close_for_one_server_leave_doubt_of_health(
    matcher: Matcher, engine: int | None, gaps: tuple[int, ...], benign: bool, certain: bool
) -> None:
    """Two take certainty of it away; where servers take turns, an error of the engine stays as it is, in doubt."""
    failed = "(EngineCore pid=71) ERROR 05-06 07:10:03 [x.py:1] RuntimeError: NCCL error: remote process exited"
    every = [stats(0, engine, second=at, tokens=90.5 + at) for at in (0, *gaps)]
    text = "\n".join([*HEALTHY_START, every[0], failed, *every[1:]])
    found = matcher.classify(text, whole_log=True, platform=None)
    assert (found.benign, found.certain) == (benign, certain)


def test_a_server_of_old_counts_every_five_seconds(matcher: Matcher) -> None:
    every = [stats(0, None, second=5 * n, tokens=90.5 + n).replace("loggers.py", "metrics.py") for n in range(9)]
    assert matcher.classify("\n".join([*HEALTHY_START, *every]), whole_log=True, platform=None).certain


def test_statistics_of_one_server_may_pass_midnight(matcher: Matcher) -> None:
    times = ["23:59:41", "23:59:52", "00:00:02", *[f"00:00:{n}2" for n in range(1, SETTLED + 1)]]
    counts = [80, 0, 80, *[0] * SETTLED]
    every = [stats(count).replace("07:10:00", at) for count, at in zip(counts, times, strict=True)]
    assert class_of(matcher, *every) == "benign"


def test_replicas_whose_api_servers_have_pids_are_told_apart(matcher: Matcher) -> None:
    other = [line.replace("pid=7)", "pid=9)") for line in HEALTHY_START]
    assert class_of(matcher, *other, FULL, FULL, EMPTY.replace("pid=7)", "pid=9)")) == "queue_saturation"
    assert class_of(matcher, *other, FULL, FULL, EMPTY.replace("pid=7)", "pid=9)"), EMPTY) == "benign"


def test_a_queue_without_a_count_of_its_own_drains_with_all_engines(matcher: Matcher) -> None:
    """A preemption does not say which engine it was, and older servers number none."""
    assert class_of(matcher, stats(80, None), stats(0, None)) == "benign"
    old = [*HEALTHY_START[:-1], stats(80, None), PREEMPTED, stats(0, None)]
    assert matcher.classify("\n".join(old), whole_log=True, platform=None).benign
    assert class_of(matcher, FULL, PREEMPTED, OTHER) == "queue_saturation"
    assert class_of(matcher, FULL, PREEMPTED, OTHER, EMPTY) == "benign"
    assert class_of(matcher, stats(80, None), EMPTY) == "queue_saturation"


def test_an_end_that_nobody_ordered_drains_no_queue(matcher: Matcher) -> None:
    assert class_of(matcher, FULL, ENDED.format("EngineCore")) == "queue_saturation"
    assert class_of(matcher, FULL, TOLD, ENDED.format("EngineCore")) == "benign"
    assert class_of(matcher, FULL, TOLD, FULL, ENDED.format("EngineCore")) == "benign"
    assert class_of(matcher, FULL, ENDED.format("EngineCore"), TOLD) == "queue_saturation"


def test_an_ordered_end_of_another_engine_drains_no_queue(matcher: Matcher) -> None:
    full = [stats(80, 0), stats(80, 1)]
    assert class_of(matcher, *full, TOLD, ENDED.format("EngineCore_DP1")) == "queue_saturation"
    ended = [ENDED.format(f"EngineCore_DP{n}") for n in (1, 0)]
    assert class_of(matcher, *full, TOLD, *ended) == "benign"


def test_another_start_of_the_server_drains_no_queue() -> None:
    marks = [
        PhaseMark(index=0, phase=Phase.LOADING, near=False),
        PhaseMark(index=9, phase=Phase.CONFIG, near=False, proof=Proof.NEW_START),
    ]
    empty = PhaseMark(index=30, phase=Phase.SERVING, near=False, proof=Proof.QUEUE_EMPTY)
    lines = [""] * 40
    queues = Queues([5, 12], [empty], lines, Timeline(marks, lines))
    assert not queues.drained_after(5)
    assert queues.drained_after(12)
    assert not queues.drained_after(31)
