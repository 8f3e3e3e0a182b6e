"""A verdict ends the incident well, or orders the traffic for a staged revision, or the way back."""

from datetime import datetime

from agent.core.change.execution import Effect, EffectKind, EffectState
from agent.core.change.verification import Verdict
from agent.core.incident.correlation import correlate
from agent.core.incident.incident import CorrelatedSignal, Incident
from agent.core.incident.phase import Phase
from agent.core.text.safe_text import shortened
from agent.ports.stage_context import StageContext
from agent.stages.shared.commit import save
from agent.stages.shared.effects import key_of
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.remedies import tried_remedies


def verification_to_outcome(context: StageContext, incident: Incident) -> StageOutcome:
    """Resolve what recovered; order the roll-back of everything else."""
    now = context.now_for(incident)
    verification = incident.require_verification()
    if verification.verdict is Verdict.RECOVERED:
        if incident.require_plan().staged and not _shifted(incident):
            return _order_shift(context, incident, now)
        ended = incident.move(
            Phase.RESOLVED,
            now=now,
            due_at=None,
            ended_why=verification.why,
            remedies=tried_remedies(incident, now),
            correlated=_correlated(context, incident),
        )
        save(context, ended, f"resolved: {verification.why}", now=now)
        return StageOutcome.MOVED
    moved = incident.move(Phase.ROLLING_BACK, now=now, due_at=now)
    save(context, moved, f"rolling back: {shortened(verification.why, 300)}", now=now)
    return StageOutcome.MOVED


def _correlated(context: StageContext, incident: Incident) -> tuple[CorrelatedSignal, ...]:
    """Weigh the signals of a trouble once more; a change that was asked for has no cause to weigh them against."""
    if incident.request is not None:
        return incident.correlated
    return correlate(context.store.signals(incident.id), context.rules.matcher, cause=incident.cause)


def _shifted(incident: Incident) -> bool:
    effect = incident.effect(EffectKind.SHIFT)
    return effect is not None and effect.state is EffectState.DONE


def _order_shift(context: StageContext, incident: Incident, now: datetime) -> StageOutcome:
    """Wake whoever may change services; it looks at service and revision itself before it does anything."""
    applied = incident.require_effect(EffectKind.APPLY)
    effect = Effect(
        key=key_of(incident, EffectKind.SHIFT),
        kind=EffectKind.SHIFT,
        etag="",
        revision=applied.revision,
        intended_at=now,
    )
    changed = incident.with_(execution=incident.require_execution().with_effect(effect), due_at=now)
    save(context, changed, f"{effect.revision} is good; it gets the traffic", now=now)
    return StageOutcome.NOTED
