"""The fate of a start in a rehearsal: what the record says, what the arithmetic says, or that nobody knows."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal

from agent.adapters.platform.rehearsal.scenario import LIVE, Basis, Measured, Outcome, Result, Scenario
from agent.adapters.platform.rehearsal.state_file import Fate, RevisionRow
from agent.core.change.verification import Check, Measurement
from agent.core.plan.capacity import Capacity
from agent.core.service.serving import Probe, ServingConfig
from agent.core.value import Value
from agent.ports.clock import Clock
from agent.presentation.measured import COMPUTED as NOT_SEEN


class Computed(Value):
    """What the arithmetic says of a start; ``came_up`` None where it cannot tell."""

    came_up: bool | None
    says: str
    after_s: float = 0
    tokens_per_s: float | None = None


Compute = Callable[[str, str, ServingConfig], Computed]  # of a service on a platform

ONE_REQUEST_FITS = "it came up on record, and vLLM starts only where one request of full length fits"
"""vLLM raises ValueError in check_enough_kv_cache_memory otherwise (vllm/v1/core/kv_cache_utils.py, 0.32.0)."""


def fate_of(scenario: Scenario, config: ServingConfig, compute: Compute | None) -> Fate:
    """Return what will become of a start.

    Args:
        scenario: The record.
        config: What would be started.
        compute: Asked where nothing is on record; None where only records count.
    """
    outcome = scenario.outcome_of(config)
    if outcome is not None:
        return _on_record(outcome)
    if scenario.is_live(config):
        return fate_of_live(scenario)
    computed = compute(scenario.service, scenario.platform, config) if compute is not None else None
    if computed is not None and computed.came_up is not None:
        return Fate(
            result=Result.CAME_UP if computed.came_up else Result.FAILED,
            basis=Basis.COMPUTED,
            after_s=computed.after_s or scenario.unknown_after_s,
            message="" if computed.came_up else f"{NOT_SEEN}: {computed.says}",
            word=f"{NOT_SEEN}: {computed.says}",
            tokens_per_s=computed.tokens_per_s,
        )
    near = scenario.nearest(config)
    differs = f"; the nearest record differs in {', '.join(near[:4])}" if near else ""
    return Fate(
        result=Result.UNKNOWN,
        basis=Basis.NONE,
        after_s=scenario.unknown_after_s,
        word=f"not recorded: no start of this configuration is on record{differs}",
    )


def _on_record(outcome: Outcome) -> Fate:
    how = "recorded" if outcome.basis is Basis.RECORDED else "follows from a record"
    return Fate(
        result=outcome.result,
        basis=outcome.basis,
        after_s=outcome.after_s,
        crashes_after_s=outcome.crashes_after_s,
        message=outcome.message,
        word=f"{how}: {outcome.name}",
        outcome=outcome.name,
    )


def fate_of_live(scenario: Scenario) -> Fate:
    """Return the fate of the revision that stands when the rehearsal opens."""
    results = {True: Result.CAME_UP, False: Result.FAILED, None: Result.UNKNOWN}
    return Fate(
        result=results[scenario.live.ready],
        basis=Basis.RECORDED,
        after_s=scenario.unknown_after_s,
        message=scenario.live.message,
        word="recorded: as the rehearsal opened",
        outcome=LIVE,
    )


def measurements(
    scenario: Scenario, row: RevisionRow, clock: Clock, compression: float, *, by_arithmetic: bool
) -> tuple[Measurement, ...]:
    """Return what the record lets us measure of a revision now.

    Args:
        scenario: The record.
        row: The revision.
        clock: The time.
        compression: Divides every wait.
        by_arithmetic: Whether a completion that is not on record is answered by the arithmetic; None otherwise.
    """
    now = clock.now()
    fate = row.fate
    note = rehearsed(compression)

    def said(check: Check, *, good: bool | None, says: str, value: float | None = None) -> Measurement:
        return Measurement(check=check, good=good, says=f"{says} ({note})", real=False, value=value, at=now)

    if now < row.ends_at:
        return (said(Check.READY, good=None, says=f"{row.name} is starting"),)
    if fate.result == Result.FAILED:
        return (said(Check.READY, good=False, says=f"{row.name} did not come up: {fate.message or fate.word}"),)
    if fate.result == Result.UNKNOWN:
        return tuple(
            said(c, good=None, says=fate.word) for c in (Check.READY, Check.COMPLETION, Check.TOKENS, Check.SPEED)
        )
    if crashed(row, now, compression):
        return (said(Check.READY, good=False, says=f"{row.name} was ready and died: {fate.message or fate.word}"),)
    ready = said(Check.READY, good=True, says=f"{row.name} is ready, {fate.word}")
    if fate.basis == Basis.COMPUTED:
        speed = Measured(check=Check.SPEED, value=fate.tokens_per_s, says=_speed(fate.tokens_per_s))
        return (
            ready,
            *(said(c, good=True, says=fate.word) for c in (Check.COMPLETION, Check.TOKENS)),
            said(Check.SPEED, good=_good(scenario, speed), says=speed.says, value=speed.value),
        )
    return (
        ready,
        *(
            _reported(said(m.check, good=m.good, says=m.says, value=m.value), m)
            for m in _recorded(scenario, row, by_arithmetic=by_arithmetic)
        ),
    )


def _reported(measurement: Measurement, measured: Measured) -> Measurement:
    return measurement.with_(first_token_s=measured.first_token_s)


def crashed(row: RevisionRow, now: datetime, compression: float) -> bool:
    """Whether a revision that came up has died since, as it did on record."""
    after_s = row.fate.crashes_after_s
    return after_s is not None and (now - row.ends_at).total_seconds() >= after_s / compression


def _recorded(scenario: Scenario, row: RevisionRow, *, by_arithmetic: bool) -> tuple[Measured, ...]:
    start = scenario.start(row.fate.outcome)
    kept = start.measured if start is not None else ()
    by_check = {m.check: m.with_(good=_good(scenario, m)) for m in kept}
    wanted: tuple[Literal[Check.COMPLETION, Check.TOKENS, Check.SPEED], ...] = (
        Check.COMPLETION,
        Check.TOKENS,
        Check.SPEED,
    )
    found = [by_check.get(c, Measured(check=c, says=f"no {c} is on record")) for c in wanted]
    return tuple(_computed(m) if by_arithmetic else m for m in found)


def _computed(measured: Measured) -> Measured:
    """A completion that nobody recorded follows from the start that came up; a speed or a counter does not."""
    if measured.check is not Check.COMPLETION or measured.good is not None:
        return measured
    return measured.with_(good=True, says=f"{NOT_SEEN}: {ONE_REQUEST_FITS}")


def _good(scenario: Scenario, measured: Measured) -> bool | None:
    """A speed is judged by what the owner needs, everything else as it was recorded."""
    if measured.check is not Check.SPEED or measured.value is None or scenario.needs_tokens_per_s is None:
        return measured.good
    return measured.value >= scenario.needs_tokens_per_s


def _speed(tokens_per_s: float | None) -> str:
    return f"{NOT_SEEN}: " + (f"{tokens_per_s:.3g} tokens/s" if tokens_per_s is not None else "no speed")


def rehearsed(compression: float) -> str:
    """Return the words that stand beside everything a rehearsal says."""
    return "rehearsal" if compression == 1 else f"rehearsal, time compressed {compression:g} times"


SLOWEST_S = 600.0  # assumed where neither size nor load rate is known


def by_fit(fits: Capacity) -> Compute:
    """Return what simulates the starts of watched services."""

    def compute(service: str, platform: str, config: ServingConfig) -> Computed:
        word = fits.assess(service, config)
        if word.fits is None:
            return Computed(came_up=None, says=word.sentence)
        start_up = fits.start_up(service, config, seen_s=None)
        needed = start_up.seconds if start_up is not None else SLOWEST_S
        budget = _patience_s(platform, config)
        if not word.fits:
            return Computed(came_up=False, says=word.sentence, after_s=min(needed, budget or needed))
        if budget is not None and budget < needed:
            says = f"{word.sentence}; but the start takes up to {needed:,.0f} s and the probe allows {budget:,} s"
            return Computed(came_up=False, says=says, after_s=budget)
        speed = fits.decode_tokens_per_s(service, config)
        return Computed(came_up=True, says=word.sentence, after_s=needed, tokens_per_s=speed)

    return compute


def _patience_s(platform: str, config: ServingConfig) -> int | None:
    """How long a start may take: the probe's budget; Cloud Run has one by default, a host has none."""
    if config.startup_probe is None and platform != "cloud_run":
        return None
    return (config.startup_probe or Probe()).budget_s
