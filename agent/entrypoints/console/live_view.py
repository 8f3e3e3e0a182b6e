"""What a platform and a log say of a change under way: asked for at most every few seconds, by one thread at a time."""

import threading
import time
from collections.abc import Callable
from datetime import datetime

from agent.core.change.execution import Effect, EffectKind
from agent.core.incident.incident import Incident
from agent.core.incident.phase import CHANGED
from agent.core.planning.longer_start import seen_start_s
from agent.core.service.serving import Live, Probe
from agent.core.value import Value, digest
from agent.errors import SreError
from agent.ports.platform import Platform
from agent.ports.stage_context import Owner, StageContext
from agent.presentation.rollout_progress import Progress, probe_text, progress_of
from agent.stages.incident_to_diagnosis import without_secrets

KEPT_S = 2.0
KEPT = 64  # incidents of which the last look is kept
MARKED_S = 15.0  # a page is not read anew for less than this on its clock
LINES = 8
READ_LINES = 200


class Look(Value):
    """What was seen of a change under way.

    Attributes:
        conditions: What the platform says of the rollout; outside text.
        lines: The last lines of the new revision's log, without secrets; outside text.
        start_s: How long its start may take, seconds.
        note: Why there is less than that.
    """

    conditions: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    start_s: float | None = None
    probe: Probe | None = None
    note: str = ""


class LiveProgress(Value):
    """What the page of an incident shows while a change is under way."""

    progress: Progress
    look: Look
    probe: str = ""

    @property
    def mark(self) -> str:
        """Another one as soon as the page would show something else; of a step that goes on, every few seconds."""
        steps = self.progress.steps
        seen = tuple(s.with_(took_s=s.took_s // MARKED_S) if s.took_s is not None else s for s in steps)
        return digest(self.with_(progress=Progress(steps=seen)))[:16]


class LiveView:
    """Looks at changes under way, so that pages that many people watch cost what one costs.

    Args:
        context: The ports. In the cloud the console may read databases alone, so only what is stored is shown.
        faster: How many times faster than life a rehearsal runs.
        monotonic: Seconds that never go back.
    """

    def __init__(
        self, context: StageContext, *, faster: float = 1.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._context, self._faster, self._monotonic = context, max(1.0, faster), monotonic
        self._seen: dict[str, tuple[float, Look]] = {}
        self._asking: set[str] = set()
        self._lock = threading.Lock()

    def of(self, incident: Incident, now: datetime) -> LiveProgress | None:
        """Return how far its change has come; None where none is under way."""
        unseen = progress_of(incident, now)
        if unseen is None:
            return None
        look = self._look(incident, now)
        start_s = look.start_s / self._faster if look.start_s is not None else None
        progress = progress_of(incident, now, start_s=start_s) or unseen
        applied = incident.effect(EffectKind.APPLY)
        starting = applied is not None and applied.finished_at is None
        started_s = (now - applied.began_at).total_seconds() if applied is not None else 0.0
        probe = probe_text(look.probe, started_s, faster=self._faster) if starting else ""
        return LiveProgress(progress=progress, look=look, probe=probe)

    def _look(self, incident: Incident, now: datetime) -> Look:
        """Look, or return what was seen last where that is fresh or another thread is just looking."""
        with self._lock:
            at, seen = self._seen.get(incident.id, (float("-inf"), Look()))
            if self._monotonic() - at < KEPT_S or incident.id in self._asking:
                return seen
            self._asking.add(incident.id)
        try:
            seen = look_at(self._context, incident, now)
        finally:
            with self._lock:
                self._asking.discard(incident.id)
                self._seen[incident.id] = (self._monotonic(), seen)
                while len(self._seen) > KEPT:
                    self._seen.pop(next(iter(self._seen)))
        return seen


def look_at(context: StageContext, incident: Incident, now: datetime) -> Look:
    """Ask the platform and the log about the change of an incident; what does not answer is named and left out."""
    platform = context.platform_of(incident.service) if context.owner is Owner.DECIDE else None
    effect = incident.effect(EffectKind.ROLL_BACK) or incident.effect(EffectKind.APPLY)
    if incident.phase not in CHANGED or effect is None:
        return Look()
    if platform is None:
        return Look(note="This console does not ask the platform; what is stored is shown.")
    try:
        live = platform.describe(incident.service)
        conditions = _conditions(platform, effect, live)
    except SreError as error:
        return Look(note=f"The platform did not answer: {error.why}.")
    start = context.rules.fits.start_up(
        incident.service, live.config, seen_s=seen_start_s(incident.diagnosis) if incident.diagnosis else None
    )
    probe = live.config.startup_probe
    lines, note = _last_lines(context, incident, effect, now)
    start_s = start.seconds if start is not None else float(probe.budget_s) if probe is not None else None
    return Look(conditions=conditions, lines=lines, start_s=start_s, probe=probe, note=note)


def _conditions(platform: Platform, effect: Effect, live: Live) -> tuple[str, ...]:
    ready = {True: "ready", False: "not ready", None: "starting"}[live.ready]
    said = [f"{live.latest_created_revision}: {ready}" if live.latest_created_revision else ready, live.message]
    if effect.operation is not None and effect.finished_at is None:
        said.append(platform.operation(effect.operation).says)
    return tuple(
        dict.fromkeys(part for part in said if part and not any(part in more for more in said if more != part))
    )


def _last_lines(
    context: StageContext, incident: Incident, effect: Effect, now: datetime
) -> tuple[tuple[str, ...], str]:
    try:
        log = context.logs.instance_log(
            incident.service, revision=effect.revision, instance=None, until=now, limit=READ_LINES
        )
    except SreError as error:
        return (), f"The log of the new revision could not be read: {error.why}."
    if log is None or not log.lines:
        return (), ""
    return tuple(text for _, text in without_secrets(context, log).lines[-LINES:]), ""
