"""Which step of its life an incident is due for, and nothing else."""

from datetime import datetime
from enum import StrEnum

from agent.core.change.execution import EffectKind, EffectState
from agent.core.incident.incident import Incident
from agent.core.incident.phase import BEFORE_DECISION, Phase
from agent.core.incident.renotify import is_unattended


class Step(StrEnum):
    """What is to be done next; each belongs to one stage and one function."""

    DIAGNOSE = "diagnose"
    EXPLAIN = "explain"  # the first word is out: ask the model, which may take a minute
    PLAN = "plan"
    PLAN_REQUEST = "plan_request"  # a person asks for a change: make its plan, or refuse it
    ASK = "ask"
    EXPIRE = "expire"
    REMIND = "remind"  # nobody answered: tell the next group
    BEGIN = "begin"  # look for the last time, store the intent
    CALL = "call"  # the intent is stored: call the platform, or find what was called
    WATCH = "watch"  # the operation runs
    MEASURE = "measure"
    SHIFT = "shift"  # recovered without traffic: give it the traffic
    CONCLUDE = "conclude"
    UNDO = "undo"
    WATCH_UNDO = "watch_undo"
    REPLAN = "replan"
    PLAN_AGAIN = "plan_again"  # a person asks for another plan
    RENOTIFY = "renotify"  # a person is waited for, and nobody reacted
    CLOSE = "close"  # the change that was asked for did not come about


_PLAIN = {
    Phase.OPEN: Step.DIAGNOSE,
    Phase.DIAGNOSED: Step.PLAN,
    Phase.PLANNED: Step.ASK,
    Phase.APPROVED: Step.BEGIN,
    Phase.REFUSED: Step.REPLAN,
    Phase.REJECTED: Step.REPLAN,
    Phase.EXPIRED: Step.REPLAN,
    Phase.SUPERSEDED: Step.REPLAN,
    Phase.ROLLED_BACK: Step.REPLAN,
}

_OF_REQUEST = {
    Phase.OPEN: Step.PLAN_REQUEST,
    Phase.PLANNED: Step.ASK,
    Phase.APPROVED: Step.BEGIN,
    Phase.REFUSED: Step.CLOSE,
    Phase.REJECTED: Step.CLOSE,
    Phase.EXPIRED: Step.CLOSE,
    Phase.WITHDRAWN: Step.CLOSE,
    Phase.ROLLED_BACK: Step.CLOSE,
}


def due_step(incident: Incident, now: datetime) -> Step | None:  # noqa: PLR0911 - one answer for each phase
    """Return what is to be done next, or None where only a signal, a person or time can bring it on."""
    phase = incident.phase
    requested = incident.request is not None
    if phase is Phase.ESCALATED and incident.replan is not None and not requested:
        return Step.PLAN_AGAIN
    if not requested and phase in BEFORE_DECISION and incident.received > incident.diagnosed_count:
        return Step.DIAGNOSE
    if phase is Phase.ASKED and incident.plan is not None and now >= incident.plan.expires_at:
        return Step.EXPIRE
    if phase is Phase.ASKED and _reminder_due(incident, now):
        return Step.REMIND
    if incident.renotify_at is not None and now >= incident.renotify_at and is_unattended(incident):
        return Step.RENOTIFY
    if _model_due(incident, now):
        return Step.EXPLAIN
    if phase is Phase.APPLYING:
        return Step.CALL if _state(incident, EffectKind.APPLY) is EffectState.INTENDED else Step.WATCH
    if phase is Phase.VERIFYING:
        return _verifying(incident)
    if phase is Phase.ROLLING_BACK:
        return Step.WATCH_UNDO if _state(incident, EffectKind.ROLL_BACK) is EffectState.STARTED else Step.UNDO
    return (_OF_REQUEST if requested else _PLAIN).get(phase)


def _verifying(incident: Incident) -> Step:
    if incident.verification is None or incident.verification.verdict is None:
        return Step.MEASURE
    if _state(incident, EffectKind.SHIFT) in {EffectState.INTENDED, EffectState.STARTED}:
        return Step.SHIFT
    return Step.CONCLUDE


def _state(incident: Incident, kind: EffectKind) -> EffectState | None:
    effect = incident.execution.effect(kind) if incident.execution else None
    return effect.state if effect else None


def _reminder_due(incident: Incident, now: datetime) -> bool:
    reminder = incident.approvals.next_escalation if incident.approvals is not None else None
    return reminder is not None and now >= reminder.at


def _model_due(incident: Incident, now: datetime) -> bool:
    """Whether the model is asked now: before a plan could be made, or while a plan waits for its answer."""
    request = incident.model_request
    if request is None or incident.phase not in {Phase.DIAGNOSED, Phase.ASKED}:
        return False
    return request.due_before_plan(now) if incident.phase is Phase.DIAGNOSED else request.due(now)
