"""More time for a start: startup probe and the engine's own patience, raised together, with the sum that says why."""

import math

from agent.core.diagnosis.diagnosis import Diagnosis
from agent.core.plan.action import Action, SetEnv, SetProgressDeadline, SetStartupProbe
from agent.core.plan.capacity import Capacity, StartUp
from agent.core.service.serving import Live, Probe, ServingConfig
from agent.core.text.field_labels import field_text

PROBE_MARGIN = 1.5  # the next start may read from a colder cache; measured loads of one model differ that much
MAX_DELAY_S = 240  # the highest initial delay and period that every document of Cloud Run allows
LONGEST_START_S = {True: 1800, False: 600}  # of a startup probe, with and without a GPU; health-check guide, 2026
DEADLINE_MARGIN_S = 60  # a rollout also schedules and pulls
READY_TIMEOUT = "VLLM_ENGINE_READY_TIMEOUT_S"
READY_TIMEOUT_S = 600  # where nobody set it; vllm/envs.py of 0.32.0


def longer_start(
    service: str, diagnosis: Diagnosis, live: Live, fits: Capacity, *, had_s: int, who: str
) -> tuple[tuple[Action, ...], str] | None:
    """Probe and engine wait for one start, so neither is left with less than the other; none gets less than it had."""
    config = live.config
    start = fits.start_up(service, config, seen_s=seen_start_s(diagnosis))
    if start is None:
        needed, why = had_s * 2.0, f"twice the {had_s} s that {who} allowed; how long the start takes is not known"
    else:
        needed, why = start.seconds, _start_sum(diagnosis, start, had_s=had_s, who=who)
    longest = LONGEST_START_S[config.accelerator is not None or live.platform != "cloud_run"]
    budget = min(math.ceil(needed * PROBE_MARGIN), longest)
    more = f"{PROBE_MARGIN:g} times that" if budget < longest else "the longest that the platform takes"
    if budget <= had_s:
        return None
    old, patience = config.startup_probe or Probe(), engine_timeout_s(config)
    probe = _probe_for(old, budget) if budget > old.budget_s else old
    actions: tuple[Action, ...] = (SetStartupProbe(probe=probe),) if probe is not old else ()
    if patience is not None and patience < probe.budget_s:
        actions = (*actions, SetEnv(name=READY_TIMEOUT, value=str(probe.budget_s)))
    deadline_s = config.progress_deadline_s
    if deadline_s is not None and deadline_s < probe.budget_s:
        actions = (*actions, SetProgressDeadline(seconds=probe.budget_s + DEADLINE_MARGIN_S))
    return (actions, f"{why}; the plan allows {more}") if actions else None


def engine_timeout_s(config: ServingConfig) -> int | None:
    """How long the engine waits for its parts, seconds; None where a secret says so, or it is no number."""
    said = next((e for e in config.env if e.name == READY_TIMEOUT), None)
    if said is None:
        return READY_TIMEOUT_S
    return int(said.value) if said.value is not None and said.value.isdecimal() else None


def _probe_for(old: Probe, budget_s: int) -> Probe:
    """A probe with that budget: it asks often, so that a start that is ready early is not kept waiting."""
    period = 15
    delay = min(MAX_DELAY_S, budget_s // 4)
    timeout = min(old.timeout_s, 10)
    return old.with_(
        initial_delay_s=delay,
        period_s=period,
        timeout_s=timeout,
        failure_threshold=math.ceil((budget_s - delay) / period),
    )


_SEEN = ("load_seconds", "weights_load_s", "load_s", "compile_s", "compile_seconds", "warm_up_s")


def seen_start_s(diagnosis: Diagnosis) -> float | None:
    """Return how long the parts of the start took that the log printed, seconds; None where it printed none."""
    seen = [p for name in _SEEN if (p := diagnosis.number(name))]
    return sum(seen) if seen else diagnosis.number("start_up_s", "startup_seconds")


def _start_sum(diagnosis: Diagnosis, start: StartUp, *, had_s: int, who: str) -> str:
    """Say how long the start takes with the figures that give it, and how much longer is allowed."""
    printed = [
        f"{field_text(name, value)}{_line_of(diagnosis, name)}"
        for name in (*_SEEN, "start_up_s", "startup_seconds")
        if (value := diagnosis.number(name))
    ]
    seen = f"the log printed {', '.join(printed)}" if printed else ""
    sums = "; ".join(part for part in (start.says, seen) if part)
    said = f" ({sums})" if sums else ""
    return f"the start may take {start.seconds:,.0f} s{said}; {who} allowed {had_s:,} s"


def _line_of(diagnosis: Diagnosis, field: str) -> str:
    place, _, number = diagnosis.field_signals.get(field, "").partition(":")
    return f" in line {number}" if place == "log" and number.isdecimal() else ""
