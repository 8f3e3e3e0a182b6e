"""The check of a running server: /health, its numbers, and a real completion where no token comes by itself."""

from agent.adapters.platform.host.platform import HostPlatform
from agent.adapters.platform.host.probe import ANSWER_S, Address, HealthReply, completes, healthy, metrics
from agent.core.service.metric_rules import Sample, breaches, read_sample, recent_samples
from agent.core.service.request_counts import RequestCounts, read_request_counts
from agent.ports.clock import Clock
from agent.ports.host import CheckResult, Stage, Start, State

MISSES = 2  # checks in a row that /health may miss before the server counts as sick


class HealthCheck:
    """Checks one server and remembers the last minutes of its numbers.

    A completion is asked for only where the counters do not move: a busy server proves by its tokens that it works,
    and a completion that has to queue behind others says nothing.

    Args:
        platform: Where the server runs.
        clock: When a check is made.
        answer_s: How long a completion of a few tokens may take.
    """

    def __init__(self, platform: HostPlatform, clock: Clock, *, answer_s: float = ANSWER_S) -> None:
        self._platform = platform
        self._clock = clock
        self._answer_s = answer_s
        self._mark = ""
        self._samples: tuple[Sample, ...] = ()
        self._counted: RequestCounts | None = None
        self._missed = 0

    def check(self, service: str, state: State) -> CheckResult | None:
        """Check the newest start and note the outcome on record; None while it does not serve yet or any more."""
        start = state.newest
        if start is None or start.stage is not Stage.READY or start.on_purpose:
            return None
        if start.mark != self._mark:
            self._mark, self._samples, self._counted, self._missed = start.mark, (), None, 0
        found = self._look(start, self._platform.address(start))
        if found.sick != start.sick:
            self._platform.judge(service, start.mark, found.sick)
        return found

    def _look(self, start: Start, address: Address) -> CheckResult:
        health = healthy(address)
        before = self._samples[-1] if self._samples else None
        sample, requests = self._sample(address)
        moving = before is not None and sample is not None and _moved(before, sample)
        answer = None if moving else completes(address, timeout_s=self._answer_s)
        if answer is not None:  # and what we caused ourselves must not look like somebody's the next time
            later, _ = self._sample(address)
            moving = sample is not None and later is not None and _moved(sample, later)
            health = healthy(address) if health.good and answer.good is False else health  # it may have died meanwhile
        self._missed = 0 if health.good else self._missed + 1
        found = breaches(self._samples) if sample is not None else ()
        return CheckResult(
            revision=start.revision,
            mark=start.mark,
            sick=self._sick(health, answer, moving=moving),
            health=health.says,
            missed=self._missed > 0,
            answer=answer.says if answer is not None else None,
            sample=sample,
            breaches=found,
            requests=requests,
        )

    def _sick(self, health: HealthReply, answer: HealthReply | None, *, moving: bool) -> str:
        if health.good and answer is not None and answer.good is False and not moving:
            return f"Engine is hanging: {answer.says} and no token was made meanwhile, while {health.says}"
        if self._missed >= MISSES:
            return f"the server runs and does not serve: {health.says}"
        return ""

    def _sample(self, address: Address) -> tuple[Sample | None, RequestCounts]:
        """Read its numbers; also what was requested since they were read last, nothing where they never were."""
        text = metrics(address)
        if text is None:
            return None, RequestCounts()
        before, self._counted = self._counted, read_request_counts(text)
        requests = RequestCounts()
        if before is not None and self._counted is not None:
            requests = self._counted.since(before)
        sample = read_sample(text, at=self._clock.now())
        self._samples = recent_samples((*self._samples, sample))
        return sample, requests


def _moved(before: Sample, after: Sample) -> bool:
    return before.progress is not None and after.progress is not None and after.progress > before.progress
