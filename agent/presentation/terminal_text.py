"""An incident as lines of text: what terminals, logs and message fallbacks show."""

from datetime import datetime

from agent.core.change.verification import Verification
from agent.core.diagnosis.diagnosis import Diagnosis, DiagnosisSource
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.plan.action import Action, ForPerson, Restart
from agent.core.plan.plan import DIGEST_SHOWN, Plan
from agent.core.text.field_labels import field_text
from agent.core.text.safe_text import shortened, terminal
from agent.presentation.evidence import field_source, place_of
from agent.presentation.freeze_text import limit_lines
from agent.presentation.measured import figure_words, judgement_text
from agent.presentation.plan_cost import hourly_cost_text, token_prices_text
from agent.presentation.plan_title import as_sentence, plan_title
from agent.presentation.proof_text import proof_text
from agent.presentation.request_text import request_reason, request_title
from agent.presentation.standing import SOURCES, moment, responders_text, standing

SIGNAL_CHARS = 160


def headline(incident: Incident, *, now: datetime) -> str:
    """Return one line: service, class, where it stands."""
    return f"{incident.service}: {subject(incident)} - {standing(incident, now).label}"


def subject(incident: Incident) -> str:
    """Return what an incident is about, in a few words: its class, or who asked for a change."""
    if incident.request is not None:
        return request_title(incident.request)
    return incident.cause if incident.diagnosis else "not diagnosed yet"


def lines(incident: Incident, *, now: datetime) -> tuple[str, ...]:
    """Return the incident for a terminal: what broke, why, the plan, what can be done now.

    All outside text is made harmless for terminals; a line may still be long.
    """
    said = [f"incident {incident.id}  {headline(incident, now=now)}"]
    said.append(f"  status     {terminal(standing(incident, now).says)}")
    optional = (("people", responders_text(incident)), ("reason", incident.ended_why))
    said += [f"  {name:<10} {terminal(text)}" for name, text in optional if text]
    if incident.revision:
        said.append(f"  revision   {terminal(incident.revision)}")
    if incident.linked_to:
        said.append(f"  follows    {incident.linked_to}")
    if incident.request is not None:
        said.append(f"  asked      {terminal(request_reason(incident.request))}")
    if incident.diagnosis is not None:
        said += _diagnosis(incident, incident.diagnosis)
    for entry in incident.correlated:
        said.append(f"  signal     {entry.signal}: {terminal(shortened(entry.line, SIGNAL_CHARS))}")
        said.append(f"             {terminal(entry.reason)}")
    asked = incident.phase is Phase.ASKED and incident.plan is not None and now < incident.plan.expires_at
    if incident.plan is not None:
        said += plan_lines(incident.plan, now=now, asked=asked)
    if incident.verification is not None:
        said += _measured(incident.verification)
    if asked and incident.plan is not None:
        said += [f"  note       {terminal(line)}" for line in limit_lines(incident.approvals, now)]
        said += _answers(incident, incident.plan)
    return tuple(said)


def _answers(incident: Incident, plan: Plan) -> list[str]:
    """The commands that would be taken; a replay that changes nothing takes no approval."""
    may_approve = incident.may_change or plan.by_person
    what = "take it on" if plan.by_person else "approve   "
    approve = f"  {what} sre-agent approve {plan.id} --digest {plan.digest[:DIGEST_SHOWN]}"
    return [*([approve] if may_approve else []), f"  reject     sre-agent reject {plan.id} --why TEXT"]


def _measured(verification: Verification) -> list[str]:
    newest = {m.check: m for m in verification.measurements}
    said = [f"  measured   {m.check}: {judgement_text(m)} - {terminal(m.says)}" for m in newest.values()]
    if verification.observed is not None:
        said += [f"  start-up   {figure_words(f)}" for f in verification.observed.figures]
    if verification.verdict is not None:
        said.append(f"  verdict    {verification.verdict}: {terminal(verification.why)}")
    return said


def _diagnosis(incident: Incident, diagnosis: Diagnosis) -> list[str]:
    sure = "certain" if diagnosis.certain else f"confidence {diagnosis.confidence:.0%}"
    first = ", provisional" if diagnosis.provisional else ""
    said = [
        f"  diagnosis  {terminal(diagnosis.root_cause)}",
        f"  class      {diagnosis.class_}, {sure}{first}; source: {SOURCES[diagnosis.voice]}",
    ]
    if diagnosis.decisive is not None:
        place = place_of(diagnosis.decisive.signal, incident.platform)
        said.append(f"  key line   {place}: {terminal(diagnosis.decisive.line)}")
    for name, value in diagnosis.fields.items():
        source = field_source(diagnosis, name, incident.platform)
        said.append(f"  figure     {terminal(field_text(name, value))}" + (f" ({source})" if source else ""))
    said += [f"  changed    {terminal(line)}" for line in diagnosis.changes]
    if diagnosis.unknown:
        said.append(f"  unknown    {'; '.join(map(terminal, diagnosis.unknown))}")
    if diagnosis.model_word is not None:
        differs = " - differs from the rules" if diagnosis.voice is DiagnosisSource.DIFFER else ""
        said.append(f"  model      {terminal(diagnosis.model_word.root_cause)}{differs}")
    return said


def plan_lines(plan: Plan, *, now: datetime, asked: bool) -> list[str]:
    """Return the plan: title, reason, difference, proof, price, risk, way back, and the deadline while it is asked."""
    said = [f"  plan       {plan.id}: {terminal(plan_title(plan))}", f"    reason   {terminal(as_sentence(plan.why))}"]
    said += [f"    change   {terminal(d.path)}: {_value(d.before)} -> {_value(d.after)}" for d in plan.difference]
    said += [f"    do       {terminal(text)}" for action in plan.actions for text in _by_hand(action)]
    said += _memory(plan)
    said += proof_text(plan)
    said += [f"    tradeoff {terminal(plan.takes_away)}"] if plan.takes_away else []
    said.append(f"    cost     {hourly_cost_text(plan)}")
    said += [f"    tokens   {text}"] if (text := token_prices_text(plan)) else []
    if plan.decode_tokens_per_s is not None:
        said.append(f"    speed    about {plan.decode_tokens_per_s:,.1f} tokens/s for one request, computed")
    reasons = f" ({'; '.join(map(terminal, plan.risk_reasons))})" if plan.risk_reasons else ""
    said += [f"    risk     {plan.risk}{reasons}", f"    undo     {terminal(plan.undo)}"]
    said += [f"    note     {terminal(note)}" for note in plan.notes]
    if asked:
        left = (plan.expires_at - now).total_seconds()
        said.append(f"    expires  {moment(plan.expires_at)} (in {left / 60:.0f} min). {plan.if_unanswered}")
    return said


def _memory(plan: Plan) -> list[str]:
    """Return what the memory is before and after; once where nothing of it changes, or nothing is known of it."""
    before, after = terminal(plan.fit_before.sentence), terminal(plan.fit_after.sentence)
    if plan.fit_before != plan.fit_after:
        return [f"    before   {before}", f"    after    {after}"]
    return [f"    memory   {'' if plan.fit_after.fits is None else 'unchanged: '}{after}"]


def _by_hand(action: Action) -> list[str]:
    if isinstance(action, Restart):
        return []
    return [action.instruction, *action.commands] if isinstance(action, ForPerson) else []


def _value(value: str | None) -> str:
    return "(absent)" if value is None else (terminal(value) or "on")
