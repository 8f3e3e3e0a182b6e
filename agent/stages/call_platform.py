"""The stored intent is carried out: the platform is called at most once, or what was called is found."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from agent.core.change.execution import EffectKind, EffectState, Intent
from agent.core.change.verification import Check, Measurement, Verdict, Verification
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.text.safe_text import shortened
from agent.errors import CredentialsRefused, PolicyRefused, SreError
from agent.ports.control import LeaseEnd
from agent.ports.platform import Operation, Platform
from agent.ports.stage_context import StageContext
from agent.stages.shared.approval import check_covered, refused
from agent.stages.shared.approved_plan import check_allowed, check_as_shown, describe_service, platform_order
from agent.stages.shared.budget import check_budget
from agent.stages.shared.commit import save, wait_and_notify_once
from agent.stages.shared.effects import REFUSALS, close_effect, find_effect, note_started, perform, stored_intent
from agent.stages.shared.kill_switch import changes_stopped
from agent.stages.shared.outcome import StageOutcome
from agent.stages.watch_undo import give_up

_STOPPED: Final = "it waits until changes are allowed again: "


def call_platform(context: StageContext, incident: Incident) -> StageOutcome:
    """Make the change whose intent is stored in the control database, or find that it was made already.

    What the incident says of the effect decides nothing. The etag is the one of the intent; it is never read again, so
    that a change by somebody else ends this one. What is half made and refused stays open: it waits while changes are
    stopped, and for as long as a rollout may take while the platform refuses us; people are told once what remains.
    """
    now = context.now_for(incident)

    def started(operation: Operation) -> StageOutcome:
        what = f"revision {incident.require_effect(EffectKind.APPLY).revision} is coming up"
        return note_started(context, _going_on(incident, now), EffectKind.APPLY, operation, what, now=now)

    def call(platform: Platform, intent: Intent, lease_end: LeaseEnd) -> Operation:
        _check_still_approved(context, incident, now)
        return platform.apply(platform_order(intent, lease_end))

    return perform(
        context,
        incident,
        EffectKind.APPLY,
        check=lambda _: _preflight(context, incident, now),
        call=call,
        on_started=started,
        on_refused=lambda error: _refused(context, incident, error, now, started=started),
    )


def _preflight(context: StageContext, incident: Incident, now: datetime) -> Intent | StageOutcome:
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
        try:
            check_covered(context, incident, plan, decision)
        except REFUSALS as error:  # told as it is: an operation that is found would be called again
            return _half_applied(context, _as_found(incident, begun), begun.remains, error, now)
        return intent  # half done by us; the same call does what remains, though the approval ran out meanwhile
    check_allowed(context, incident, plan, now)
    live = describe_service(context, plan)
    if intent.target != live.target:
        why = f"{incident.service!r} changed since the intent was stored (now generation {live.generation})"
        raise refused(plan, why, "look at the new plan and approve it")
    check_as_shown(context, incident, plan, live)
    check_budget(context, plan, live)  # others that began with this one may be made by now
    return intent


def _check_still_approved(context: StageContext, incident: Incident, now: datetime) -> None:
    """Refuse where the approval ran out since ``now``, while others were asked; one of them may have taken long.

    Raises:
        PolicyRefused: It did.
    """
    decision = incident.decision
    if decision is not None and now < decision.expires_at <= context.now_for(incident):
        why = f"the approval expired at {decision.expires_at:%H:%M:%S} UTC, while it was checked"
        raise refused(incident.require_plan(), why, "approve the next plan")


def _refused(
    context: StageContext,
    incident: Incident,
    error: SreError,
    now: datetime,
    *,
    started: Callable[[Operation], StageOutcome],
) -> StageOutcome:
    """Look what of the change stands before it is said that nothing does."""
    effect = incident.require_effect(EffectKind.APPLY)
    try:
        found = find_effect(context, context.require_platform(incident.service), incident, EffectKind.APPLY)
    except REFUSALS:  # nobody can look; what was seen last counts
        if effect.operation is None:
            return _not_called(context, incident, str(error), now)
        return _half_applied(context, incident, effect.message or "what remains is not known", error, now)
    if found is None:
        return _not_called(context, incident, str(error), now)
    if not found.remains:
        return started(found)
    return _half_applied(context, _as_found(incident, found), found.remains, error, now)


def _as_found(incident: Incident, found: Operation) -> Incident:
    return incident.with_effect(EffectKind.APPLY, operation=found.name, message=found.remains)


def _half_applied(
    context: StageContext, incident: Incident, remains: str, error: SreError, now: datetime
) -> StageOutcome:
    """Keep open what is half made: the same call does what remains, once it is allowed."""
    half = f"half applied: {shortened(remains, 300)}"
    stopped = changes_stopped(context)
    if stopped:
        return wait_and_notify_once(context, incident, f"{half}; {_STOPPED}", stopped, now=now)
    incident = _restarted(incident, now) if _STOPPED in incident.stuck else incident
    until = incident.require_effect(EffectKind.APPLY).ends_by(context.rules.times.rollout_limit_s)
    if isinstance(error, PolicyRefused) and now < until:
        head = f"{half}; it is tried again until {until:%H:%M:%S} UTC, because "
        return wait_and_notify_once(context, incident, head, shortened(error.cause, 300), hint=error.hint, now=now)
    why = f"{half}: {shortened(str(error), 500)}"
    failed = _failed(incident, why, now, says=why)
    if not isinstance(error, CredentialsRefused):
        save(context, failed, why, now=now)
        return StageOutcome.MOVED
    judged = failed.require_verification().with_(verdict=Verdict.INCONCLUSIVE, why=why)
    return give_up(context, failed.move(Phase.ROLLING_BACK, now=now, verification=judged), why, now)


def _going_on(incident: Incident, now: datetime) -> Incident:
    """Return it as what stands in nobody's way any more."""
    return _restarted(incident, now).with_(stuck="") if incident.stuck else incident


def _restarted(incident: Incident, now: datetime) -> Incident:
    """Return it with all the time of a rollout before it: while it waited, nothing could come up."""
    return incident.with_effect(EffectKind.APPLY, intended_at=now, started_at=None)


def _not_called(context: StageContext, incident: Incident, why: str, now: datetime) -> StageOutcome:
    close_effect(context, incident, EffectKind.APPLY, why)
    says = f"not applied: {why}"
    save(context, _failed(incident, why, now, says=says), says, now=now)
    return StageOutcome.MOVED


def _failed(incident: Incident, why: str, now: datetime, *, says: str) -> Incident:
    """Return it with a change that ended badly; what stands of it is put back."""
    failed = incident.with_effect(EffectKind.APPLY, state=EffectState.FAILED, message=why, finished_at=now)
    measured = Measurement(check=Check.READY, good=False, says=says, at=now)
    return failed.move(
        Phase.VERIFYING,
        now=now,
        due_at=now,
        verification=Verification(since=now, until=now, measurements=(measured,)),
    )
