"""An execution that has ended is measured until a verdict can be given."""

from collections.abc import Callable, Collection
from datetime import datetime

from agent.core.change.execution import EffectKind
from agent.core.change.expected_speed import compare_with_prediction, judge_by_need
from agent.core.change.startup_figures import with_speed
from agent.core.change.verification import (
    NEEDED,
    NEEDED_TO_END,
    Check,
    Measurement,
    Verdict,
    Verification,
    judge,
)
from agent.core.decision.decision import PersonAct
from agent.core.incident.correlation import Meaning, meaning
from agent.core.incident.incident import KEPT_SIGNALS, Incident
from agent.core.incident.phase import Phase
from agent.core.intake.signal import Signal
from agent.core.plan.action import LifecycleOperation
from agent.core.plan.lifecycle import ends_service, lifecycle_of
from agent.core.planning.replacement import BESIDE_THE_TEMPLATE
from agent.core.text.safe_text import shortened
from agent.errors import DependencyFailed, InputRejected, PolicyRefused
from agent.failures.recovered import NEVER_OVER
from agent.failures.signature import FailureClass
from agent.ports.bus import Message, Topic
from agent.ports.platform import NotDeployed
from agent.ports.stage_context import StageContext
from agent.stages.observe import needs_log
from agent.stages.shared.commit import message_for, poll_again, save
from agent.stages.shared.outcome import StageOutcome

KEPT_MEASUREMENTS = 200
PATIENCE = 10  # a person's work is looked at again after a tenth of the time it has taken, a signal of health at once
PATIENT_S = 900

TRIED_AGAIN = frozenset({FailureClass.IMAGE_PULL_FAILED, FailureClass.PORT_NOT_LISTENING, FailureClass.NETWORK_TIMEOUT})
"""What a platform or a server tries again while it starts: over once the revision is ready (ADR 54)."""


def execution_to_verification(context: StageContext, incident: Incident) -> StageOutcome:
    """Measure once more and give a verdict where one can be given.

    No measurement is no success: what could not be measured by the end of the window is INCONCLUSIVE.
    """
    now = context.now_for(incident)
    verification, plan = incident.require_verification(), incident.require_plan()
    ends = any(map(ends_service, plan.actions))
    fresh = _fresh(context, incident, now, ends=ends)
    kept = (*verification.measurements, *fresh)[-KEPT_MEASUREMENTS:]
    seen = verification.with_(measurements=kept)
    if plan.by_person:
        verdict, why = _judge_person(seen, over=now >= seen.until)
    else:
        good = (ended := seen.latest(Check.ENDED)) is not None and ended.good is True
        needed = NEEDED_TO_END if ends else _needed(context, incident.service)
        verdict, why = judge(seen, over=good or now >= seen.until, needed=needed)
    if verdict is None and incident.task_done is not None and context.platform_of(incident.service) is None:
        return _close_unchecked(context, incident, incident.task_done, seen, now)
    if verdict is None:
        by_hand = plan.by_person and incident.task_done is None
        patient_s = (now - seen.since).total_seconds() / PATIENCE if by_hand else 0
        news = (*verification.measurements, *verification.news(fresh))[-KEPT_MEASUREMENTS:]
        seen = verification.with_(measurements=news)
        return _look_again(context, incident, seen, now, in_s=min(patient_s, PATIENT_S))
    speed = seen.latest(Check.SPEED)
    known = with_speed(seen.observed, speed.value if speed else None, plan.fit_after.report)
    judged = incident.with_(verification=seen.with_(verdict=verdict, why=why, observed=known), due_at=now)
    # what follows from it is told at once, by verification_to_outcome
    save(context, judged, f"verdict {verdict}: {shortened(why, 300)}", now=now, tell=False)
    return StageOutcome.NOTED


def _close_unchecked(
    context: StageContext, incident: Incident, done: PersonAct, seen: Verification, now: datetime
) -> StageOutcome:
    """A person says that the task is done, and nothing here can ask the service."""
    why = f"{done.shown} did the task, and nothing here can check it" + (f": {done.why}" if done.why else "")
    moved = incident.move(Phase.CLOSED, now=now, due_at=None, ended_why=why, closed=done, verification=seen)
    save(context, moved, f"closed: {why}", now=now, by=done.name or done.who)
    return StageOutcome.MOVED


def _fresh(context: StageContext, incident: Incident, now: datetime, *, ends: bool) -> tuple[Measurement, ...]:
    if incident.require_plan().by_person:
        return _by_person(context, incident, now)
    if not ends:
        return _measured(context, incident, now)
    failed = (newest := incident.require_verification().latest(Check.READY)) is not None and newest.good is False
    return () if failed else (_ended(context, incident, now),)


def _ended(context: StageContext, incident: Incident, now: datetime) -> Measurement:
    """Whether nothing serves any more; a deletion is over when the platform does not have the service."""
    service, over = incident.service, now >= incident.require_verification().until
    stop = lifecycle_of(incident.require_plan().actions) is LifecycleOperation.STOP
    try:
        live = context.require_platform(service).describe(service)
    except NotDeployed:
        return Measurement(check=Check.ENDED, good=True, says=f"the platform does not have {service} any more", at=now)
    except (DependencyFailed, InputRejected, PolicyRefused) as error:
        return Measurement(check=Check.ENDED, good=None, says=str(error), at=now)
    if stop and live.config.max_instances == 0 and not live.reconciling and live.ready is not True:
        return Measurement(check=Check.ENDED, good=True, says=f"no instance of {service} serves", at=now)
    says = f"{service} is still there" if not stop else f"{service} still serves"
    return Measurement(check=Check.ENDED, good=False if over else None, says=says, at=now)


def _look_again(
    context: StageContext, incident: Incident, seen: Verification, now: datetime, *, in_s: float
) -> StageOutcome:
    also: tuple[Message, ...] = ()
    if needs_log(seen):  # who may read logs reads this one
        seen = seen.with_(log_asked=True)
        also = (message_for(incident, Topic.INCIDENTS, "observe"),)
    return poll_again(context, incident, now=now, seen=incident.with_(verification=seen), in_s=in_s, also=also)


def _measured(context: StageContext, incident: Incident, now: datetime) -> tuple[Measurement, ...]:
    revision = incident.execution.revision_after if incident.execution else None
    newest = incident.require_verification().latest(Check.READY)
    if revision is None or (newest is not None and newest.good is False):
        return ()
    return (*_asked(context, incident, revision, now), _silence(context, incident, revision, now))


def _asked(context: StageContext, incident: Incident, revision: str, now: datetime) -> tuple[Measurement, ...]:
    try:
        found = context.require_platform(incident.service).measure(incident.service, revision)
    except (DependencyFailed, InputRejected, PolicyRefused) as error:
        found = (Measurement(check=Check.COMPLETION, good=None, says=str(error), at=now),)
    redact = context.rules.redact  # a server may say anything, its own key too
    return _judged(context, incident, tuple(m.with_(says=redact(m.says)) for m in found), now)


def _judged(
    context: StageContext, incident: Incident, found: tuple[Measurement, ...], now: datetime
) -> tuple[Measurement, ...]:
    """Hold a speed against what the owner needs, then against what the approved plan predicted."""
    speed = next((m for m in found if m.check is Check.SPEED), None)
    if speed is None:
        return found
    need = _need(context, incident.service)
    others = tuple(m for m in found if m is not speed)
    return (
        *others,
        judge_by_need(speed, need),
        compare_with_prediction(speed, incident.require_plan().fit_after.report, at=now),
    )


def _need(context: StageContext, service: str) -> float | None:
    watched = context.rules.services.watched(service)
    return watched.needs.tokens_per_s if watched is not None else None


def _needed(context: StageContext, service: str) -> frozenset[Check]:
    """What must be measured for a success; the speed too, where the owner cannot do without."""
    return NEEDED if _need(context, service) is None else NEEDED | {Check.SPEED}


def _silence(context: StageContext, incident: Incident, revision: str, now: datetime) -> Measurement:
    """Whether the new revision has said nothing of a failure that it did not get over; its signals are stored.

    Where the change left the template alone, the platform calls the revision as before, and what it said before the
    change is the trouble that the change was made for. What it waited for until it was ready is no failure either.
    Nor is what was tried again until then, unless the incident is about that failure or a process ended.
    Signals are read only where the incident names one of that revision.
    """
    says = "no failure of the new revision that it did not get over"
    silent = Measurement(check=Check.SILENCE, good=True, says=says, at=now)
    native, ready_at = incident.require_execution().revision_native, incident.require_verification().ready_at
    kept = all(isinstance(action, BESIDE_THE_TEMPLATE) for action in incident.require_plan().actions)
    since = incident.require_effect(EffectKind.APPLY).intended_at if kept else None
    if not _may_have_signals(incident, revision, native):
        return silent

    def is_new(signal: Signal) -> bool:
        if signal.revision is None or signal.revision not in {revision, native}:
            return False
        if signal.waiting is not None and ready_at is not None and signal.at <= ready_at:
            return False
        return signal.revision == revision or since is None or signal.at >= since

    retried = TRIED_AGAIN - {incident.cause}
    new = [s for s in context.store.signals(incident.id) if is_new(s)]
    loud = [s for s in new if _fails(context, s, retried if ready_at is not None and s.at <= ready_at else ())]
    if loud:
        return Measurement(check=Check.SILENCE, good=False, says=f"it failed again: {loud[0].text[:300]}", at=now)
    return silent


def _may_have_signals(incident: Incident, *revisions: str | None) -> bool:
    """Whether signals of these revisions may be stored; the incident names the first of a kind while there is room."""
    named = any(c.revision is not None and c.revision in revisions for c in incident.correlated)
    return named or len(incident.correlated) >= KEPT_SIGNALS


def _fails(context: StageContext, signal: Signal, retried: Collection[str]) -> bool:
    """Whether a signal is of a failure, and of none of the classes that were tried again; an end always is."""
    finding = context.rules.matcher.classify(signal.text, whole_log=False, platform=signal.platform)
    if meaning(signal, finding) is not Meaning.FAILURE:
        return False
    reported = {match.class_ for _, match in context.rules.matcher.troubles(signal.text.splitlines())}
    return signal.end is not None or finding.class_ not in retried or not reported.isdisjoint(NEVER_OVER)


def _by_person(context: StageContext, incident: Incident, now: datetime) -> tuple[Measurement, ...]:
    """A later sign of health, after the last failure."""
    healthy = incident.healthy_at
    if healthy is not None and healthy >= incident.require_verification().since and not incident.alerts_open:
        says = f"a healthy signal came: {_healthy_line(context, incident)}"
        return (Measurement(check=Check.HEALTHY_SIGNAL, good=True, says=says, at=now),)
    return _ready_again(context, incident, now)


def _healthy_line(context: StageContext, incident: Incident) -> str:
    """Return the line of the newest signal of health, which a person may look up."""
    healthy = [s for s in context.store.signals(incident.id) if s.at == incident.healthy_at]
    return shortened(healthy[-1].text, 300) if healthy else f"at {incident.healthy_at:%H:%M:%S} UTC"


def _ready_again(context: StageContext, incident: Incident, now: datetime) -> tuple[Measurement, ...]:
    """Where the platform can be asked: ready now, on another generation than the plan saw."""
    platform = context.platform_of(incident.service)
    if platform is None:
        return ()
    try:
        live = platform.describe(incident.service)
    except (DependencyFailed, InputRejected, PolicyRefused):
        return ()
    if live.ready and live.generation != incident.require_plan().target.generation:
        return (Measurement(check=Check.HEALTHY_SIGNAL, good=True, says="changed by hand, and ready", at=now),)
    if live.ready and incident.task_done is not None and live.latest_ready_revision is not None:
        return _answers(context, incident, platform.measure, live.latest_ready_revision, now)
    return ()


def _answers(
    context: StageContext,
    incident: Incident,
    measure: Callable[[str, str], tuple[Measurement, ...]],
    revision: str,
    now: datetime,
) -> tuple[Measurement, ...]:
    """Whether the service answers, once a person says that the task is done; it may have needed no new generation."""
    try:
        found = measure(incident.service, revision)
    except (DependencyFailed, InputRejected, PolicyRefused):
        return ()
    answer = next((m for m in found if m.check is Check.COMPLETION and m.good), None)
    if answer is None:
        return ()
    says = context.rules.redact(f"it answers a completion: {answer.says}")
    return (Measurement(check=Check.HEALTHY_SIGNAL, good=True, says=says, real=answer.real, at=now),)


def _judge_person(verification: Verification, *, over: bool) -> tuple[Verdict | None, str]:
    newest = verification.latest(Check.HEALTHY_SIGNAL)
    if newest is not None and newest.good:
        return Verdict.RECOVERED, newest.says
    return (Verdict.INCONCLUSIVE, "no healthy signal came in time") if over else (None, "")
