"""What the page of one incident, and of one plan, shows: gathered from the store, nothing decided here."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.core.change.execution import EffectKind, EffectState
from agent.core.change.verification import Check, Measurement
from agent.core.decision.approvals import Approvals
from agent.core.decision.decision import Person
from agent.core.diagnosis.diagnosis import Diagnosis, Evidence
from agent.core.incident.durations import durations, first_sign, is_recorded
from agent.core.incident.impact import severity_of
from agent.core.incident.incident import CorrelatedSignal, Event, Incident, plan_id
from agent.core.incident.phase import Phase
from agent.core.plan.plan import Plan
from agent.core.value import Value
from agent.entrypoints.console.forms import token
from agent.entrypoints.console.permission import (
    has_approved,
    may_break_glass,
    may_not_approve,
    may_not_decide,
    nobody_may_approve,
)
from agent.entrypoints.console.platform_links import PlatformLink, platform_links
from agent.ports.stage_context import StageContext
from agent.presentation.event_text import Step, steps
from agent.presentation.evidence import field_source, log_of, place_of
from agent.presentation.freeze_text import approvals_text, freeze_text, limit_lines, policy_line
from agent.presentation.impact_text import SEVERITY_WORDS, duration_lines, impact_text
from agent.presentation.incident_title import incident_title
from agent.presentation.measured import VERDICTS
from agent.presentation.memory_bar import Bar, memory_bar
from agent.presentation.phase_words import label_of
from agent.presentation.plan_end import outcome, plan_end, plan_standing
from agent.presentation.plan_title import plan_title
from agent.presentation.request_text import request_reason
from agent.presentation.standing import owner_text, standing, way
from agent.stages.request_change import may_withdraw

EARLIER_LIMIT = 8
WITHDRAWAL = "withdrawal"  # what the token of the form that takes a request back is for; no plan is called so

EFFECT_WORDS = {
    EffectKind.APPLY: "Applied",
    EffectKind.SHIFT: "Traffic moved",
    EffectKind.ROLL_BACK: "Put back",
}
STATE_WORDS = {
    EffectState.INTENDED: "ordered; it may have been made already",
    EffectState.STARTED: "under way",
    EffectState.DONE: "done",
    EffectState.FAILED: "failed",
}


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """Who looks, with what a form of theirs is signed with.

    Attributes:
        by_token: Whether somebody without a name may say who they are with a token of the cluster.
    """

    person: Person
    cookie: str
    form_key: bytes
    by_token: bool = False


class Form(Value):
    """What this person may answer; ``objection`` says why not all of it.

    Attributes:
        by_token: Whether the form asks for a token of the cluster, which says who answers.
        policy: What policy asks for, and whether a freeze window or a budget stands in the way, in one line.
        limits: What to read before pressing: approvals, budget, freeze windows, who was told because nobody answered.
    """

    shown: bool = False
    may_approve: bool = False
    may_reject: bool = False
    objection: str = ""
    token: str = ""
    who: str = ""
    verified: bool = False
    by_token: bool = False
    may_withdraw: bool = False
    may_break_glass: bool = False
    policy: str = ""
    limits: tuple[str, ...] = ()


class Bars(Value):
    """The memory before and after; not shown where nothing was computed."""

    shown: bool
    same: bool
    before: Bar | None
    after: Bar | None


class Contact(Value):
    """Whose service it is, who is on call for it, and where its owner's instructions are."""

    owner: str
    rotation: str
    runbook: str


class Earlier(Value):
    """An earlier plan and how it ended."""

    plan: Plan
    title: str
    ended: str


def incident_context(context: StageContext, incident: Incident, viewer: Viewer, now: datetime) -> dict[str, Any]:
    """Return what the incident's page is made of."""
    timeline = context.store.timeline(incident.id)
    plan, diagnosis = incident.plan, incident.diagnosis
    evidence, signals = _each_line_once(incident)
    return {
        "incident": incident,
        "standing": standing(incident, now),
        "cause": cause_of(incident),
        "headline": incident_title(incident, now),
        "severity": SEVERITY_WORDS[severity_of(incident)],
        "impact": impact_text(incident),
        "contact": contact_of(context, incident.service),
        "took": duration_lines(durations(incident, timeline)),
        "way": way(incident),
        "decisive": diagnosis.decisive if diagnosis else None,
        "diagnosis": diagnosis,
        "unknown": _unknown(diagnosis),
        "evidence": evidence,
        "signals": signals,
        "first_sign": first_sign(incident),
        "is_recorded": is_recorded(incident),
        "links": links_of(context, incident),
        "plan": plan,
        "plan_state": plan_standing(plan, incident, timeline, now).label.lower() if plan else "",
        "title": plan_title(plan) if plan else "",
        "asked": is_asked(incident, plan, now),
        "form": form_for(context, incident, plan, viewer, now) if plan else Form(),
        "bars": bars_of(plan) if plan else None,
        "withdrawal": withdrawal_token(incident, viewer),
        "changed": incident.execution is not None or incident.phase is Phase.APPROVED,
        "measurements": _newest(incident),
        "earlier": tuple(_earlier(context, incident, timeline)),
        "elsewhere": tuple(r for r in incident.remedies if r.incident != incident.id),
        "timeline": tuple(_without_lines(step, incident) for step in steps(timeline, incident)),
        "place": lambda signal: place_of(signal, incident.platform),
        "log_name": log_of(incident.platform),
        "field_source": lambda name: field_source(diagnosis, name, incident.platform) if diagnosis else "",
        "effect_words": EFFECT_WORDS,
        "state_words": STATE_WORDS,
        "verdict_words": VERDICTS,
    }


def plan_context(
    context: StageContext, incident: Incident, plan: Plan, viewer: Viewer, now: datetime
) -> dict[str, Any]:
    """Return what a plan's own page is made of."""
    timeline = context.store.timeline(incident.id)
    current = incident.plan is not None and incident.plan.id == plan.id
    return {
        "incident": incident,
        "plan": plan,
        "cause": cause_of(incident),
        "standing": plan_standing(plan, incident, timeline, now),
        "title": plan_title(plan),
        "asked": is_asked(incident, plan, now),
        "decisive": incident.diagnosis.decisive if incident.diagnosis and current else None,
        "form": form_for(context, incident, plan, viewer, now),
        "bars": bars_of(plan),
    }


def _each_line_once(incident: Incident) -> tuple[tuple[Evidence, ...], tuple[CorrelatedSignal, ...]]:
    """Return further evidence and the signals, a line that stands above them left out: each is shown once."""
    decisive = incident.diagnosis.decisive if incident.diagnosis is not None else None
    shown = {decisive.line} if decisive is not None else set()
    evidence = []
    for item in incident.diagnosis.evidence if incident.diagnosis is not None else ():
        if item.line not in shown:
            evidence.append(item)
            shown.add(item.line)
    signals = []
    for signal in incident.correlated:
        signals.append(signal.with_(line="") if signal.line in shown else signal)
        shown.add(signal.line)
    return tuple(evidence), tuple(signals)


def _without_lines(step: Step, incident: Incident) -> Step:
    """Return a step of the timeline without a note that repeats a line of the log."""
    return step.with_(note="") if any(signal.line in step.note for signal in incident.correlated) else step


def links_of(context: StageContext, incident: Incident) -> tuple[PlatformLink, ...]:
    """Return where its log and revision can be looked at; the simulated platform of a rehearsal has no such place."""
    watched = context.rules.services.watched(incident.service)
    if watched is None or watched.scenario is not None:
        return ()
    return platform_links(watched, incident.revision, incident.opened_at)


def contact_of(context: StageContext, service: str) -> Contact | None:
    """Return whose service it is, as services.toml says; None where it is not watched."""
    watched = context.rules.services.watched(service)
    if watched is None:
        return None
    return Contact(owner=owner_text(watched.owner), rotation=watched.rotation or "", runbook=watched.runbook or "")


def cause_of(incident: Incident) -> str:
    """Return the cause in a sentence, or that it is not known yet; of a request who asks for it, and why."""
    if incident.request is not None:
        return request_reason(incident.request)
    if incident.diagnosis is None:
        return f"Something is wrong with {incident.service}; the cause is not known yet."
    return incident.diagnosis.root_cause


def is_asked(incident: Incident, plan: Plan | None, now: datetime) -> bool:
    """Whether somebody may still answer this plan."""
    current = plan is not None and incident.plan is not None and incident.plan.id == plan.id
    return incident.phase is Phase.ASKED and current and plan is not None and now < plan.expires_at


def form_for(context: StageContext, incident: Incident, plan: Plan, viewer: Viewer, now: datetime) -> Form:
    """Return what may be answered here and now; not shown for a plan that nobody is asked about."""
    if not is_asked(incident, plan, now):
        return Form()
    person = viewer.person
    if person.who:
        barred = may_not_decide(context, person, plan)
        half = barred or may_not_approve(context, person, incident, plan)
    else:
        half = nobody_may_approve(incident, plan, by_token=viewer.by_token)
        barred = half if not viewer.by_token else ""
    return Form(
        shown=True,
        may_approve=not half,
        may_reject=not barred,
        objection="" if _is_said(half, incident.approvals) else half,
        token=token(viewer.form_key, cookie=viewer.cookie, plan=plan.id, plan_digest=plan.digest, who=person.who),
        who=person.who,
        verified=person.verified,
        by_token=viewer.by_token,
        may_withdraw=has_approved(context, person, incident),
        may_break_glass=may_break_glass(context, person, incident, plan),
        policy=policy_line(incident.approvals),
        limits=tuple(filter(None, (approvals_text(incident.approvals), *limit_lines(incident.approvals, now)))),
    )


def _is_said(objection: str, approvals: Approvals | None) -> bool:
    """Whether the lines about freeze windows and budgets say the objection already."""
    if approvals is None:
        return False
    reasons = (approvals.over_budget, *map(freeze_text, approvals.freezes))
    return any(reason and reason in objection for reason in reasons)


def withdrawal_token(incident: Incident, viewer: Viewer) -> str:
    """Return the token of the form that takes a request back, or nothing where this person cannot do that now."""
    person = viewer.person
    if not may_withdraw(incident, person):
        return ""
    return token(viewer.form_key, cookie=viewer.cookie, plan=WITHDRAWAL, plan_digest=incident.id, who=person.who)


def bars_of(plan: Plan) -> Bars:
    """Return the memory bars of a plan."""
    before, after = plan.fit_before, plan.fit_after
    known = before.report is not None or after.report is not None
    return Bars(
        shown=known or not plan.by_person,
        same=before == after,
        before=memory_bar(before.report),
        after=memory_bar(after.report),
    )


def _earlier(context: StageContext, incident: Incident, timeline: tuple[Event, ...]) -> Iterator[Earlier]:
    """The plans before the present one, newest first, each with its end as far as it got."""
    last = incident.plan.ordinal if incident.plan else incident.plans_made + 1
    for ordinal in range(last - 1, max(0, last - 1 - EARLIER_LIMIT), -1):
        plan = context.store.plan(plan_id(incident.id, ordinal))
        if plan is not None:
            yield Earlier(plan=plan, title=plan_title(plan), ended=_outcome(incident, plan, timeline))


def _outcome(incident: Incident, plan: Plan, timeline: tuple[Event, ...]) -> str:
    """How it ended, not only how it was answered: a verdict says more than an approval."""
    came = outcome(plan, incident)
    end = plan_end(plan, incident, timeline)
    return f"approved, then {came}" if came else label_of(end.phase).lower() if end else "not answered"


def _unknown(diagnosis: Diagnosis | None) -> tuple[str, ...]:
    if diagnosis is None:
        return ()
    more = diagnosis.model_word.unknown if diagnosis.model_word else ()
    return tuple(dict.fromkeys((*diagnosis.unknown, *more)))


def _newest(incident: Incident) -> tuple[Measurement, ...]:
    if incident.verification is None:
        return ()
    newest = (incident.verification.latest(check) for check in Check)
    return tuple(m for m in newest if m is not None)
