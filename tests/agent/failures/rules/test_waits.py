"""Waits and queues: a busy server, and one that stands."""

import pytest

from agent.failures.finding import Finding
from agent.failures.match.matcher import Matcher


def classify(matcher: Matcher, text: str) -> Finding:
    return matcher.classify(text, whole_log=True, platform=None)


STATS = "INFO 11-20 11:{minute}:01 [loggers.py:257] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: {n} reqs, Waiting: {w} reqs, GPU KV cache usage: 6.5%"  # fmt: skip
BLOCK = "INFO 11-20 {at} [shm_broadcast.py:501] No available shared memory broadcast block found in 60 seconds."
SIZE = "INFO 11-20 11:00:00 [kv_cache_utils.py:1087] GPU KV cache size: 162,704 tokens"


def test_workers_that_wait_while_no_token_comes_hang(matcher: Matcher) -> None:
    lines = [STATS.format(minute="01", n=4, w=2), BLOCK.format(at="11:02:00"), STATS.format(minute="03", n=4, w=2)]
    assert classify(matcher, "\n".join(lines)).class_ == "engine_hang"


@pytest.mark.parametrize(("at", "class_"), [("11:01:00", "benign"), ("11:10:00", "engine_hang")])
def test_ten_minutes_of_silence_once_the_cache_stands_are_a_hang(matcher: Matcher, at: str, class_: str) -> None:
    assert classify(matcher, f"{SIZE}\n{BLOCK.format(at=at)}").class_ == class_


def test_a_request_that_waits_while_none_runs_does_not_fit(matcher: Matcher) -> None:
    found = classify(matcher, STATS.format(minute="01", n=0, w=1))
    assert (found.class_, found.fix_actions[0]) == ("queue_saturation", "set_flag max_model_len lower")
    assert classify(matcher, STATS.format(minute="01", n=0, w=0)).class_ == "benign"


BATCH = "[2031-05-06 04:28:01] Prefill batch, #new-seq: 13, #new-token: 4096, #cached-token: 18, token usage: {use}, #running-req: 13, #queue-req: {queue}, "  # fmt: skip


@pytest.mark.parametrize(
    ("queues", "use", "class_"),
    [
        ((0, 186, 160, 141, 120), "0.12", "benign"),
        ((120, 141, 160, 186), "0.12", "queue_saturation"),
        ((186, 185, 184, 183), "0.12", "queue_saturation"),
        ((186, 120), "0.12", "queue_saturation"),
        ((186, 160, 141, 120), "1.00", "queue_saturation"),
        ((186, 160, 141, 120), "0.97", "queue_saturation"),
        ((4000, 3600, 3200, 2900), "0.12", "queue_saturation"),
        ((186, 0, 130, 120), "0.12", "queue_saturation"),
    ],
)
def test_a_queue_that_is_shorter_in_every_batch_drains(
    matcher: Matcher, queues: tuple[int, ...], use: str, class_: str
) -> None:
    """It was filled at once; a full pool, a queue that grows, or hardly shrinks, is one that stands."""
    text = "\n".join(BATCH.format(queue=queue, use=use) for queue in queues)
    assert classify(matcher, text).class_ == class_


def test_queues_of_two_schedulers_are_no_queue_that_drains(matcher: Matcher) -> None:
    lines = [BATCH.format(queue=queue, use="0.12") for queue in (900, 800, 200, 120)]
    text = "\n".join(line.replace("] P", f" DP{n % 2}] P") for n, line in enumerate(lines))
    assert classify(matcher, text).class_ == "queue_saturation"
    assert classify(matcher, text.replace(" DP1]", " DP0]")).class_ == "benign"


def test_a_request_that_is_taken_back_from_an_empty_cache_does_not_fit(matcher: Matcher) -> None:
    """The statistics still count the tokens that it had come to; once is a request that has just arrived."""
    stats = STATS.replace("generation throughput: 0.0", "generation throughput: 15.4")
    swapped = stats.replace("usage: 6.5%", "usage: 40.0%, CPU KV cache usage: 0.0%")
    empty = [stats.replace("usage: 6.5%", "usage: 0.0%").format(minute=f"0{n}", n=0, w=1) for n in range(3)]
    assert classify(matcher, "\n".join(empty)).fix_actions[0] == "set_flag max_model_len lower"
    assert classify(matcher, empty[0]).class_ == "benign"
    assert classify(matcher, swapped.format(minute="01", n=0, w=1)).class_ == "benign"


def test_one_count_without_a_token_is_a_hang_where_it_stops_an_answer_in_its_middle(matcher: Matcher) -> None:
    """As many requests hold as much cache as ten seconds ago, when tokens came steadily."""
    answers = STATS.replace("generation throughput: 0.0", "generation throughput: 5.9")
    before, stands = answers.format(minute="01", n=1, w=0), STATS.format(minute="02", n=1, w=0)

    def is_hang(*lines: str) -> bool:
        return classify(matcher, "\n".join(lines)).class_ == "engine_hang"

    assert is_hang(before, stands)
    counted = "Preemptions: 3, Deferred: 0 reqs, GPU KV"
    assert is_hang(*(line.replace("GPU KV", counted) for line in (before, stands)))
    assert not is_hang(before, STATS.format(minute="02", n=2, w=0))
    assert not is_hang(before, stands.replace("usage: 6.5%", "usage: 7.1%"))
    assert not is_hang(*(line.replace("usage: 6.5%", "usage: 0.0%") for line in (before, stands)))
    assert not is_hang(before.replace("Engine 000", "Engine 001"), stands)
    assert not is_hang(*(line.replace("usage: 6.5%", "usage: 6.5.5%") for line in (before, stands)))
    assert not is_hang(before.replace("throughput: 5.9", "throughput: 0.1"), stands)
    assert not is_hang(before, answers.format(minute="02", n=2, w=0), stands)
    assert not is_hang(before, stands, answers.format(minute="03", n=1, w=0))
    assert not is_hang(before, stands, STATS.format(minute="03", n=0, w=0))
    assert not is_hang(stands)


WAIT = "INFO 05-06 07:0{}:04 [shm_broadcast.py:801] No available shared memory broadcast block found in 60 seconds."
STREAM = '(APIServer pid=1) INFO:     10.9.8.7:50163 - "POST /v1/chat/completions HTTP/1.1" 200 OK'


def test_a_third_wait_is_a_hang_whatever_stream_is_opened_between_and_waits_of_the_start_do_not_count(
    matcher: Matcher,
) -> None:
    waits = [WAIT.format(minute) for minute in range(4)]
    assert classify(matcher, "\n".join([waits[0], waits[1], STREAM, waits[2]])).class_ == "engine_hang"
    up = ["Graph capturing finished in 15 secs, took 2.04 GiB", "INFO:     Application startup complete.", STREAM]
    assert classify(matcher, "\n".join([waits[0], waits[1], *up, waits[2]])).class_ == "benign"
    assert classify(matcher, "\n".join([waits[0], waits[1], STREAM, waits[2], STREAM])).class_ == "benign"


def test_a_full_cache_that_takes_requests_back_asks_for_more_of_it_before_more_servers(matcher: Matcher) -> None:
    full = STATS.replace("usage: 6.5%", "usage: 91.0%").format(minute="01", n=7, w=30)
    taken = "WARNING [scheduler.py:1483] Sequence group 5 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space."  # fmt: skip
    assert classify(matcher, full).fix_actions[0] == "scale_out"
    assert classify(matcher, f"{full}\n{taken}").fix_actions[0] == "set_flag gpu_memory_utilization up"
