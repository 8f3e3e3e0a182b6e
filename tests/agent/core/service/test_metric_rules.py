"""The numbers of a server: which of them are trouble, and which are work well done."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.core.service.metric_rules import Rule, Sample, breaches, read_sample, recent_samples

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
RECORDED = Path(__file__).parents[3] / "data" / "vllm-cpu-logs"


def samples(*rows: dict[str, float], every_s: float = 10) -> tuple[Sample, ...]:
    return tuple(Sample(at=NOW + timedelta(seconds=n * every_s), **row) for n, row in enumerate(rows))


def rules(found: tuple[Sample, ...]) -> set[Rule]:
    return {b.rule for b in breaches(found)}


def test_numbers_are_read_under_their_new_and_their_old_names() -> None:
    """VLLM renamed its cache gauge; engines are added up, the fullest cache counts."""
    new = 'vllm:kv_cache_usage_perc{engine="0"} 0.5\nvllm:kv_cache_usage_perc{engine="1"} 0.9\nvllm:num_requests_running{engine="0"} 2.0\n'
    new += 'vllm:num_requests_running{engine="1"} 3\nvllm:generation_tokens_total{engine="0"} 1e3\nvllm:generation_tokens_created{e="0"} 1.7e9\n'
    assert read_sample(new, at=NOW) == Sample(at=NOW, kv_usage=0.9, running=5, generated=1000)
    old = "# HELP x\nvllm:gpu_cache_usage_perc 0.25\nvllm:num_preemptions 4\nvllm:num_requests_waiting 1\n"
    assert read_sample(old, at=NOW) == Sample(at=NOW, kv_usage=0.25, preemptions=4, waiting=1)
    assert read_sample("<html>not found</html>\nvllm:num_requests_running NaN", at=NOW) == Sample(at=NOW)


def test_a_recorded_exposition_is_read() -> None:
    """The real thing, as vLLM 0.32 wrote it after load."""
    found = read_sample((RECORDED / "metrics_after_load.prom").read_text(), at=NOW)
    assert (found.running, found.waiting, found.preemptions, found.generated) == (0, 0, 49, 22144)


def test_a_full_cache_alone_troubles_nobody() -> None:
    """It is shown; nobody is woken for a cache that is used."""
    (breach,) = breaches(samples({"kv_usage": 0.9, "running": 4, "generated": 10}))
    assert (breach.rule, breach.trouble) == (Rule.KV_FULL, False)
    assert not breaches(samples({"kv_usage": 0.85, "running": 4, "generated": 10}))


def test_requests_that_wait_half_a_minute_are_trouble() -> None:
    """A short burst is none, and one sample without a queue begins anew."""
    queue = {"waiting": 5.0, "running": 8.0, "kv_usage": 0.97}
    moving = [queue | {"generated": 100.0 * n} for n in range(1, 5)]
    assert Rule.WAITING not in rules(samples(*moving[:3]))
    assert Rule.WAITING in rules(samples(*moving))
    assert Rule.WAITING not in rules(samples(*moving[:2], {"waiting": 0, "generated": 250}, *moving[2:]))


def test_preemptions_that_go_on_rising_are_trouble() -> None:
    """A few at once are vLLM's own way to make room."""
    once = samples({"preemptions": 0}, {"preemptions": 9}, {"preemptions": 9}, {"preemptions": 9})
    assert Rule.PREEMPTING not in rules(once)
    rising = samples(*({"preemptions": float(n)} for n in range(5)))
    (breach,) = breaches(rising)
    assert breach.rule is Rule.PREEMPTING
    assert breach.trouble


def test_no_token_while_requests_run_is_a_hang() -> None:
    """Not before half a minute, and not where nothing runs or tokens come."""
    still = {"running": 2.0, "generated": 70.0, "prompted": 30.0}
    assert Rule.STALLED not in rules(samples(still, still, still))
    found = breaches(samples(still, still, still, still))
    assert [b.rule for b in found] == [Rule.STALLED]
    assert "no token for 30 s" in found[0].says
    assert not breaches(samples(*[still | {"running": 0.0}] * 5))
    assert not breaches(samples(*(still | {"prompted": float(n)} for n in range(5))))


def test_samples_of_a_former_process_are_forgotten() -> None:
    """A counter that went down belongs to another process; what is older than two minutes says nothing any more."""
    found = samples({"generated": 500}, {"generated": 3}, {"generated": 9})
    assert [s.generated for s in recent_samples(found)] == [3, 9]
    assert len(recent_samples(samples(*({"generated": float(n)} for n in range(60))))) == 13


def test_the_recorded_overload_troubles_nobody_in_its_five_seconds() -> None:
    """Twenty-four clients for five seconds: a burst, not an outage."""
    made = []
    for at, numbers in json.loads((RECORDED / "overload_metric_samples.json").read_text()):
        text = "\n".join(f"{name} {value}" for name, value in numbers.items())
        made.append(read_sample(text, at=datetime.fromtimestamp(at, UTC)))
    assert {b.rule for n in range(1, len(made) + 1) for b in breaches(made[:n]) if b.trouble} == set()
