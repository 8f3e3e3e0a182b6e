"""What the page of one incident, and of one plan, shows: gathered from the store, nothing decided here."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.core.diagnosis import Diagnosis
from agent.core.execution import EffectKind, EffectState
from agent.core.incident import Event, Incident, plan_id
from agent.core.phase import Phase
from agent.core.plan import Plan
from agent.core.value import Value
from agent.core.verification import Check, Measurement, Verdict
from agent.entrypoints.web import wording
from agent.entrypoints.web.fate import Fate, fate_of
from agent.entrypoints.web.forms import token
from agent.entrypoints.web.identity import Person
from agent.entrypoints.web.memory_bar import Bar, memory_bar
from agent.entrypoints.web.permission import may_not_approve, may_not_decide
from agent.ports.world import World

EARLIER_LIMIT = 8
_LOG_PLACE = re.compile(r"log:(\d+)")

EFFECT_WORDS = {
    EffectKind.APPLY: "Applied",
    EffectKind.SHIFT: "Traffic moved",
    EffectKind.ROLL_BACK: "Put back",
}
STATE_WORDS = {
    EffectState.INTENDED: "about to be called",
    EffectState.STARTED: "under way",
    EffectState.DONE: "done",
    EffectState.FAILED: "failed",
}
VERDICT_WORDS = {
    Verdict.RECOVERED: "recovered",
    Verdict.NOT_RECOVERED: "not recovered",
    Verdict.INCONCLUSIVE: "inconclusive, which does not count as success",
}


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """Who looks, with what a form of theirs is signed with."""

    person: Person
    cookie: str
    form_key: bytes


class Form(Value):
    """What this person may answer; ``objection`` says why not all of it."""

    shown: bool = False
    may_approve: bool = False
    may_reject: bool = False
    objection: str = ""
    token: str = ""
    who: str = ""
    verified: bool = False
    open: bool = False


class Bars(Value):
    """The memory before and after; not shown where nothing was computed."""

    shown: bool
    same: bool
    before: Bar | None
    after: Bar | None


class Earlier(Value):
    """An earlier plan and how it ended."""

    plan: Plan
    ended: str


def incident_context(world: World, incident: Incident, viewer: Viewer, now: datetime) -> dict[str, Any]:
    """Return what the incident's page is made of."""
    timeline = world.store.timeline(incident.id)
    plan, diagnosis = incident.plan, incident.diagnosis
    return {
        "incident": incident,
        "words": wording.words_of(incident, now),
        "cause": cause_of(incident),
        "way": wording.way(incident),
        "decisive": diagnosis.decisive if diagnosis else None,
        "diagnosis": diagnosis,
        "unknown": _unknown(diagnosis),
        "plan": plan,
        "plan_state": plan_state(plan, incident, timeline, now)[0].lower() if plan else "",
        "form": form_for(world, incident, plan, viewer, now) if plan else Form(),
        "bars": bars_of(plan) if plan else None,
        "changed": incident.execution is not None or incident.phase is Phase.APPROVED,
        "measurements": _newest(incident),
        "earlier": tuple(_earlier(world, incident, timeline)),
        "elsewhere": tuple(r for r in incident.remedies if r.incident != incident.id),
        "timeline": timeline,
        "evidence_place": evidence_place,
        "effect_words": EFFECT_WORDS,
        "state_words": STATE_WORDS,
        "verdict_words": VERDICT_WORDS,
    }


def plan_context(world: World, incident: Incident, plan: Plan, viewer: Viewer, now: datetime) -> dict[str, Any]:
    """Return what a plan's own page is made of."""
    timeline = world.store.timeline(incident.id)
    state, says, tone = plan_state(plan, incident, timeline, now)
    current = incident.plan is not None and incident.plan.id == plan.id
    return {
        "incident": incident,
        "plan": plan,
        "cause": cause_of(incident),
        "plan_state": state,
        "state_says": says,
        "state_tone": tone,
        "decisive": incident.diagnosis.decisive if incident.diagnosis and current else None,
        "form": form_for(world, incident, plan, viewer, now),
        "bars": bars_of(plan),
    }


def cause_of(incident: Incident) -> str:
    """Return the cause in a sentence, or that it is not known yet."""
    if incident.diagnosis is None:
        return f"Something is wrong with {incident.service}; the cause is not known yet"
    return incident.diagnosis.root_cause


def evidence_place(signal: str) -> str:
    """Say where a line stands, for people."""
    found = _LOG_PLACE.fullmatch(signal)
    return f"line {found[1]} of the instance's own log" if found else f"signal {signal}"


def form_for(world: World, incident: Incident, plan: Plan, viewer: Viewer, now: datetime) -> Form:
    """Return what may be answered here and now; not shown for a plan that nobody is asked about."""
    current = incident.plan is not None and incident.plan.id == plan.id
    if incident.phase is not Phase.ASKED or not current or now >= plan.expires_at:
        return Form()
    person = viewer.person
    barred = may_not_decide(world, person, plan)
    half = barred or may_not_approve(world, person, incident, plan)
    return Form(
        shown=True,
        may_approve=not half,
        may_reject=not barred,
        objection=half,
        token=token(viewer.form_key, cookie=viewer.cookie, plan=plan.id, plan_digest=plan.digest, who=person.name),
        who=person.name,
        verified=person.verified,
        open=bool(half) and not barred,
    )


def plan_state(
    plan: Plan, incident: Incident, timeline: tuple[Event, ...], now: datetime
) -> tuple[str, str, wording.Tone]:
    """Return the state of a plan: a label, a sentence and a tone."""
    fate = fate_of(plan, incident, timeline)
    if fate is not None:
        return wording.label_of(fate.phase), _ended(fate), wording.tone_of(fate.phase)
    if now >= plan.expires_at:
        return "Expired", "Nobody answered in time. Nothing was changed.", wording.Tone.BAD
    if incident.phase is Phase.ASKED:
        return "Waits for you", "It waits for an answer. Nothing has been changed.", wording.Tone.WAITING
    return "Not offered yet", "It is about to be offered.", wording.Tone.QUIET


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


def _ended(fate: Fate) -> str:
    at = f"{fate.at:%Y-%m-%d %H:%M:%S} UTC"
    proven = " (not verified)" if fate.verified is False else ""
    why = f" {fate.why}" if fate.why else ""
    match fate.phase:
        case Phase.APPROVED:
            return f"Approved by {fate.by}{proven} at {at}."
        case Phase.REJECTED:
            return f"Rejected by {fate.by}{proven} at {at}.{why}"
        case Phase.EXPIRED:
            return f"Nobody answered until {at}. Nothing was changed."
        case Phase.SUPERSEDED:
            return f"More was learned, so it was withdrawn at {at}. Nothing was changed."
        case _:
            return f"The service recovered by itself at {at}. Nothing was changed."


def _earlier(world: World, incident: Incident, timeline: tuple[Event, ...]) -> Iterator[Earlier]:
    """The plans before the present one, newest first, each with its end as far as it got."""
    last = incident.plan.ordinal if incident.plan else incident.plans_made + 1
    for ordinal in range(last - 1, max(0, last - 1 - EARLIER_LIMIT), -1):
        plan = world.store.plan(plan_id(incident.id, ordinal))
        if plan is not None:
            yield Earlier(plan=plan, ended=_outcome(incident, plan, timeline))


def _outcome(incident: Incident, plan: Plan, timeline: tuple[Event, ...]) -> str:
    """How it ended, not only how it was answered: a verdict says more than an approval."""
    tried = [r for r in incident.remedies if r.incident == incident.id and r.proposal == plan.proposal]
    verdicts: dict[str, str] = {str(v): words for v, words in VERDICT_WORDS.items()}
    if tried and tried[-1].ended in verdicts:
        return f"approved, then {verdicts[tried[-1].ended]}"
    if tried and tried[-1].ended == Phase.REFUSED:
        return "approved, then refused at the last look"
    fate = fate_of(plan, incident, timeline)
    return wording.label_of(fate.phase).lower() if fate else "not answered"


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
