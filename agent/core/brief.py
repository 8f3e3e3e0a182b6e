"""An incident in plain words: the lines that terminals, logs and message fallbacks show."""

from datetime import datetime

from agent.core.action import Action, ForPerson, Restart
from agent.core.diagnosis import Diagnosis, Voice
from agent.core.incident import Incident
from agent.core.observed import Figure
from agent.core.phase import Phase
from agent.core.plan import Plan
from agent.core.safe_text import terminal
from agent.core.verification import TOLD_ONLY, Measurement, Verification

PHASE_WORDS: dict[Phase, str] = {
    Phase.OPEN: "open, not looked at yet",
    Phase.DIAGNOSED: "diagnosed, a plan is being made",
    Phase.PLANNED: "planned, people are about to be asked",
    Phase.ASKED: "waiting for a decision",
    Phase.APPROVED: "approved, not applied yet",
    Phase.APPLYING: "being applied",
    Phase.VERIFYING: "applied, being measured",
    Phase.RESOLVED: "resolved",
    Phase.ROLLING_BACK: "being rolled back",
    Phase.ROLLED_BACK: "rolled back",
    Phase.REFUSED: "approved, but refused at the last look",
    Phase.REJECTED: "rejected",
    Phase.EXPIRED: "expired unanswered",
    Phase.SUPERSEDED: "withdrawn for a better diagnosis",
    Phase.ESCALATED: "escalated: a person has it",
    Phase.SELF_RECOVERED: "recovered by itself",
}


def headline(incident: Incident) -> str:
    """Return one line: service, class, phase."""
    cause = incident.cause if incident.diagnosis else "not diagnosed yet"
    return f"{incident.service}: {cause} - {PHASE_WORDS[incident.phase]}"


def lines(incident: Incident, *, now: datetime) -> tuple[str, ...]:
    """Return the incident for a terminal: what broke, why, the plan, what can be done now.

    All outside text is made harmless for terminals; a line may still be long.
    """
    said = [f"incident {incident.id}  {headline(incident)}"]
    if incident.revision:
        said.append(f"  revision   {terminal(incident.revision)}")
    if incident.linked_to:
        said.append(f"  follows    {incident.linked_to}")
    if incident.diagnosis is not None:
        said += _diagnosis(incident.diagnosis)
    for entry in incident.joined:
        said.append(f"  {entry.signal:<10} {terminal(entry.line[:160])}")
        said.append(f"             {terminal(entry.reason)}")
    if incident.plan is not None:
        said += plan_lines(incident.plan, now=now)
    if incident.verification is not None:
        said += _measured(incident.verification)
    if incident.ended_why:
        said.append(f"  so         {terminal(incident.ended_why)}")
    if incident.phase is Phase.ASKED and incident.plan is not None:
        said += [
            f"  approve    sre-agent approve {incident.plan.id}",
            f"  reject     sre-agent reject {incident.plan.id} --why TEXT",
        ]
    return tuple(said)


def _measured(verification: Verification) -> list[str]:
    newest = {m.check: m for m in verification.measurements}
    said = [f"  measured   {m.check}: {worth(m)} - {terminal(m.says)}" for m in newest.values()]
    if verification.observed is not None:
        said += [f"  start-up   {figure_words(f)}" for f in verification.observed.figures]
    if verification.verdict is not None:
        said.append(f"  verdict    {verification.verdict}: {terminal(verification.why)}")
    return said


def figure_words(figure: Figure) -> str:
    """Return a figure of a start-up beside its prediction, for people."""
    seen = f"{figure.name.replace('_gib', ' GiB').replace('_', ' ')}: {figure.observed:,g}"
    if figure.predicted is None:
        return f"{seen}, nothing was predicted"
    off = f", {figure.off:+.1%} off" if figure.off is not None else ""
    return f"{seen}, predicted {figure.predicted:,g}{off}"


def worth(measurement: Measurement) -> str:
    """Return what a measurement is worth, in words: also that it was made and nothing judges it."""
    if measurement.good is None:
        return "not measured" if measurement.value is None else "not judged"
    if measurement.good:
        return "good"
    return "deviates" if measurement.check in TOLD_ONLY else "bad"


def _diagnosis(diagnosis: Diagnosis) -> list[str]:
    sure = "certain" if diagnosis.certain else f"confidence {diagnosis.confidence:.0%}"
    word = " (provisional)" if diagnosis.provisional else ""
    said = [f"  cause      {terminal(diagnosis.root_cause)}", f"  class      {diagnosis.class_}, {sure}{word}"]
    if diagnosis.decisive is not None:
        said.append(f"  evidence   [{diagnosis.decisive.signal}] {terminal(diagnosis.decisive.line)}")
    if diagnosis.unknown:
        said.append(f"  unknown    {'; '.join(map(terminal, diagnosis.unknown))}")
    if diagnosis.model_word is not None:
        differs = " - differs from the rules" if diagnosis.voice is Voice.DIFFER else ""
        said.append(f"  Gemma      {terminal(diagnosis.model_word.root_cause)}{differs}")
    return said


def plan_lines(plan: Plan, *, now: datetime) -> list[str]:
    """Return the plan: difference, proof, price, risk, way back, expiry."""
    said = [f"  plan       {plan.id}: {terminal(plan.why)}"]
    said += [f"    change   {terminal(d.path)}: {_value(d.before)} -> {_value(d.after)}" for d in plan.difference]
    said += [f"    do       {terminal(text)}" for action in plan.actions for text in _by_hand(action)]
    said += [
        f"    before   {terminal(plan.fit_before.sentence)}",
        f"    after    {terminal(plan.fit_after.sentence)}",
    ]
    said.append(f"    cost     {_cost(plan.cost_before_usd_per_h)} -> {_cost(plan.cost_after_usd_per_h)} per hour")
    if plan.decode_tokens_per_s is not None:
        said.append(f"    speed    about {plan.decode_tokens_per_s:,.1f} tokens/s for one request")
    reasons = f" ({'; '.join(map(terminal, plan.risk_reasons))})" if plan.risk_reasons else ""
    said += [f"    risk     {plan.risk}{reasons}", f"    undo     {terminal(plan.undo)}"]
    said += [f"    note     {terminal(note)}" for note in plan.notes]
    left = (plan.expires_at - now).total_seconds()
    until = f"in {left / 60:.0f} min" if left > 0 else "expired"
    said.append(f"    expires  {plan.expires_at:%Y-%m-%d %H:%M:%S} UTC ({until}). {plan.silence}")
    return said


def _by_hand(action: Action) -> list[str]:
    if isinstance(action, Restart):
        return ["start the same configuration again"]
    return [action.instruction, *action.commands] if isinstance(action, ForPerson) else []


def _value(value: str | None) -> str:
    return "(absent)" if value is None else (terminal(value) or "on")


def _cost(usd: float | None) -> str:
    return "unknown" if usd is None else f"{usd:.2f} USD"
