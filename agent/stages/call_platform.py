"""The stored intent is carried out: the platform is called at most once, or what was called is found."""

from datetime import datetime

from agent.core.change.execution import EffectKind, EffectState, Intent
from agent.core.change.verification import Check, Measurement, Verification
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.ports.platform import Operation
from agent.ports.stage_context import StageContext
from agent.stages.shared.approval import check_covered, refused
from agent.stages.shared.approved_plan import check_allowed, check_as_shown, describe_service, platform_order
from agent.stages.shared.budget import check_budget
from agent.stages.shared.commit import save
from agent.stages.shared.effects import close_effect, find_effect, note_started, perform, stored_intent
from agent.stages.shared.outcome import StageOutcome


def call_platform(context: StageContext, incident: Incident) -> StageOutcome:
    """Make the change whose intent is stored in the control database, or find that it was made already.

    What the incident says of the effect decides nothing. The etag is the one of the intent; it is never read again, so
    that a change by somebody else ends this one.
    """
    now = context.now_for(incident)

    def started(operation: Operation) -> StageOutcome:
        what = f"revision {incident.require_effect(EffectKind.APPLY).revision} is coming up"
        return note_started(context, incident, EffectKind.APPLY, operation, what, now=now)

    return perform(
        context,
        incident,
        EffectKind.APPLY,
        check=lambda _: _preflight(context, incident, now),
        call=lambda platform, intent, lease_end: platform.apply(platform_order(intent, lease_end)),
        on_started=started,
        on_refused=lambda error: _not_called(context, incident, str(error), now),
    )


def _preflight(context: StageContext, incident: Incident, now: datetime) -> Intent:
    """Return the intent that may be carried out now: open, approved, and made for the state that stands.

    What is half made is finished where the signed approval covers it: expiry, freeze and policy say what may begin.

    Raises:
        PolicyRefused: It may not.
        InputRejected: The platform does not have the service.
        DependencyFailed: Somebody who must be asked did not answer; nothing follows.
    """
    plan, decision = incident.require_plan(), incident.decision
    intent = stored_intent(context, incident, EffectKind.APPLY)
    look = "look at who writes to the store"
    if intent is None:
        raise refused(plan, "the control database holds no intent of it", look)
    if intent.closed:
        raise refused(plan, f"it was refused before: {intent.closed}", "approve the next plan")
    if not intent.etag:
        raise refused(plan, "its approval was given to an earlier version of this program", "approve the next plan")
    if decision is None or intent.decision != decision.id:
        raise refused(plan, "the approval was used before, for another effect", look)
    begun = find_effect(context, context.require_platform(incident.service), incident, EffectKind.APPLY)
    if begun is not None and begun.remains:
        check_covered(context, incident, plan, decision)
        return intent  # half done by us; the same call does what remains, though the approval ran out meanwhile
    check_allowed(context, incident, plan, now)
    live = describe_service(context, plan)
    if intent.target != live.target:
        why = f"{incident.service!r} changed since the intent was stored (now generation {live.generation})"
        raise refused(plan, why, "look at the new plan and approve it")
    check_as_shown(context, incident, plan, live)
    check_budget(context, plan, live)  # others that began with this one may be made by now
    return intent


def _not_called(context: StageContext, incident: Incident, why: str, now: datetime) -> StageOutcome:
    close_effect(context, incident, EffectKind.APPLY, why)
    failed = incident.require_effect(EffectKind.APPLY).with_(state=EffectState.FAILED, message=why, finished_at=now)
    measured = Measurement(check=Check.READY, good=False, says=f"not applied: {why}", at=now)
    moved = incident.move(
        Phase.VERIFYING,
        now=now,
        due_at=now,
        execution=incident.require_execution().with_effect(failed),
        verification=Verification(since=now, until=now, measurements=(measured,)),
    )
    save(context, moved, f"not applied: {why}", now=now)
    return StageOutcome.MOVED
