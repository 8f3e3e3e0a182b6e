"""A roll-back is watched until it ends, and what serves is compared with what served before."""

from datetime import datetime

from agent.core.change.execution import EffectKind, EffectState
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.text.safe_text import shortened
from agent.errors import CredentialsRefused, DependencyFailed, InputRejected, PolicyRefused, SreError
from agent.ports.platform import Operation, Platform
from agent.ports.stage_context import StageContext
from agent.stages.shared.commit import poll_again, save, wait_and_notify_once
from agent.stages.shared.effects import call_again, poll_operation
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.remedies import tried_remedies


def watch_undo(context: StageContext, incident: Incident) -> StageOutcome:
    """Wait for the roll-back to end, then compare what serves with what served before."""
    now = context.now_for(incident)
    execution, effect = incident.require_execution(), incident.require_effect(EffectKind.ROLL_BACK)
    platform = context.require_platform(incident.service)
    operation = poll_operation(platform, effect.operation)
    late = now >= effect.ends_by(context.rules.times.rollout_limit_s)
    if operation.remains and not late:
        return call_again(context, incident, EffectKind.ROLL_BACK, operation.remains, now=now)
    if not operation.done and not late:
        return poll_again(context, incident, now=now)
    try:
        same = platform.restored(incident.service, template=execution.prior_template, traffic=execution.prior_traffic)
    except (InputRejected, PolicyRefused) as error:
        why = f"nobody can say whether the prior template is back: {error}"
        until = effect.ends_by(context.rules.times.rollout_limit_s)
        return await_credentials(context, incident, error, now, until=until) or give_up(context, incident, why, now)
    if not same:
        return give_up(context, incident, f"the prior template is not back: {shortened(operation.says, 300)}", now)
    done = incident.with_effect(EffectKind.ROLL_BACK, state=EffectState.DONE, finished_at=now)
    if operation.ok is not True and execution.prior_ready is not False:
        return give_up(
            context, done, f"the prior template is back but does not come up: {shortened(operation.says, 300)}", now
        )
    return rolled_back(context, done, _is_back(done, operation, platform), now)


def await_credentials(
    context: StageContext, incident: Incident, error: SreError, now: datetime, *, until: datetime
) -> StageOutcome | None:
    """Wait where the platform does not accept our credentials; people are told once how long it is tried again.

    Args:
        context: Of the owner of the step.
        incident: Whose change is put back.
        error: What the platform said.
        now: The time of the step.
        until: When the roll-back has had all the time of a rollout.

    Returns:
        None where something else is the matter, or the time is over: a person must look.
    """
    if not isinstance(error, CredentialsRefused) or now >= until:
        return None
    head = f"the roll-back is tried again until {until:%H:%M:%S} UTC, because "
    return wait_and_notify_once(context, incident, head, shortened(error.cause, 300), hint=error.hint, now=now)


def _is_back(incident: Incident, operation: Operation, platform: Platform) -> str:
    execution = incident.require_execution()
    if not execution.prior_template:
        return "what the change created is removed again"
    if execution.prior_ready is not False or operation.ok is True:
        return "the prior template serves again"
    older = execution.served_by_older
    if older is not None and _serves(platform, incident.service, older):
        return f"the prior template is back; it did not come up before either, and {older} serves as before"
    if older is not None:
        gone = f"{older}, which served before, was ended by the change and is not known to serve again"
        return f"the prior template is back; it did not come up before either; {gone}"
    return "the prior template is back; it did not serve before either, so the service is still down"


def _serves(platform: Platform, service: str, revision: str) -> bool:
    """Whether that revision serves now, as far as the platform says."""
    try:
        return platform.describe(service).latest_ready_revision == revision
    except (DependencyFailed, InputRejected, PolicyRefused):
        return False


def rolled_back(context: StageContext, incident: Incident, what: str, now: datetime) -> StageOutcome:
    """The prior state stands again."""
    moved = incident.move(Phase.ROLLED_BACK, now=now, due_at=now, ended_why=what)
    save(context, moved, what, now=now)
    return StageOutcome.MOVED


def give_up(context: StageContext, incident: Incident, why: str, now: datetime) -> StageOutcome:
    """A person must look at it."""
    moved = incident.move(Phase.ESCALATED, now=now, due_at=None, ended_why=why, remedies=tried_remedies(incident, now))
    save(context, moved, f"escalated: {why}", now=now)
    return StageOutcome.MOVED
