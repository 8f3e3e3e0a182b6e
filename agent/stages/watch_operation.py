"""A rollout is watched until it ends, well or badly; then measuring begins."""

from datetime import timedelta

from agent.core.change.execution import EffectKind, EffectState
from agent.core.change.verification import Check, Measurement, Verification
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.text.safe_text import shortened
from agent.ports.platform import Operation
from agent.ports.stage_context import StageContext
from agent.ports.store import head_key
from agent.stages.shared.commit import poll_again, save
from agent.stages.shared.effects import call_again, poll_operation
from agent.stages.shared.outcome import StageOutcome


def watch_operation(context: StageContext, incident: Incident) -> StageOutcome:
    """Ask how the rollout is doing; when it has ended, well or badly, begin to measure.

    Where the platform needs another call of the same order, that is made, as long as there is time.
    """
    now = context.now_for(incident)
    effect = incident.require_effect(EffectKind.APPLY)
    operation = poll_operation(context.require_platform(incident.service), effect.operation)
    times = context.rules.times
    late = now >= effect.ends_by(times.rollout_limit_s)
    incident, heads = _named(incident, operation)
    if not operation.done and not late:
        if operation.remains:
            return call_again(context, incident, EffectKind.APPLY, operation.remains, now=now, heads=heads)
        if heads:
            save(context, incident, f"revision {effect.revision} is {operation.revision}", now=now, heads=heads)
            return StageOutcome.NOTED
        return poll_again(context, incident, now=now)
    good = operation.ok if operation.done else None
    says = operation.says or ("the rollout ended" if operation.done else "the rollout did not end in time")
    state = EffectState.FAILED if good is False else EffectState.DONE
    ended = incident.with_effect(EffectKind.APPLY, state=state, message=says, finished_at=now)
    moved = ended.move(
        Phase.VERIFYING,
        now=now,
        due_at=now,
        verification=Verification(
            since=now,
            ready_at=now if good else None,
            until=now + timedelta(seconds=times.verify_s if good else 0),
            measurements=(Measurement(check=Check.READY, good=good, says=says, at=now),),
        ),
    )
    save(context, moved, f"rollout ended: {shortened(says, 300)}", now=now, heads=heads)
    return StageOutcome.MOVED


def _named(incident: Incident, operation: Operation) -> tuple[Incident, tuple[str, ...]]:
    """Keep the platform's own name of the new revision once it is known, and the head by which its signals find us."""
    execution = incident.require_execution()
    if operation.revision is None or execution.revision_native == operation.revision:
        return incident, ()
    named = incident.with_(execution=execution.with_(revision_native=operation.revision))
    return named, (head_key(incident.run, incident.service, operation.revision),)
