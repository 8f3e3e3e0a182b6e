"""A verdict ends the incident well, or orders the way back; a roll-back is verified like any change."""

from datetime import datetime, timedelta

from agent.core.execution import Effect, EffectKind, EffectState, Execution, effect_key, revision_name
from agent.core.foreign import changed_since
from agent.core.incident import Incident
from agent.core.joining import joined
from agent.core.phase import Phase
from agent.core.plan import Rollout
from agent.core.verification import Verdict
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, StateConflict
from agent.ports.control import Lease
from agent.ports.platform import Operation, Platform, Restore
from agent.ports.world import World
from agent.stages.commit import save
from agent.stages.effects import check_way_back, kill_switch_says, put_on_record, why_not
from agent.stages.reason import Did
from agent.stages.remedies import tried
from agent.stages.told import told
from agent.stages.turn import at_the_brink, turn, unchanged


def verification_to_outcome(world: World, incident: Incident) -> Did:
    """Resolve what recovered; order the roll-back of everything else."""
    now = max(world.clock.now(), incident.phase_at)
    verification, plan = incident.verification, incident.plan
    assert verification is not None
    assert plan is not None
    if verification.verdict is Verdict.RECOVERED:
        if plan.rollout is Rollout.STAGED and not _shifted(incident):
            return _order_shift(world, incident, now)
        ended = incident.move(
            Phase.RESOLVED,
            now=now,
            due_at=None,
            ended_why=verification.why,
            remedies=tried(incident, now),
            joined=joined(world.store.signals(incident.id), world.knowledge.matcher, cause=incident.cause),
        )
        save(world, ended, f"resolved: {verification.why}", now=now)
        return Did.MOVED
    moved = incident.move(Phase.ROLLING_BACK, now=now, due_at=now)
    save(world, moved, f"rolling back: {verification.why[:300]}", now=now)
    return Did.MOVED


def _shifted(incident: Incident) -> bool:
    effect = incident.execution.effect(EffectKind.SHIFT) if incident.execution else None
    return effect is not None and effect.state is EffectState.DONE


def _order_shift(world: World, incident: Incident, now: datetime) -> Did:
    assert incident.plan is not None
    assert incident.execution is not None
    assert incident.execution.revision_after is not None
    key = effect_key(incident.id, incident.plan.digest, EffectKind.SHIFT)
    try:
        live = world.live(incident.service)
    except (InputRejected, PolicyRefused) as error:
        return _not_shifted(world, incident, str(error), now)
    assert live is not None
    theirs = changed_since(incident.plan, incident.execution, live)
    if theirs:
        return _not_shifted(world, incident, theirs, now)
    effect = Effect(
        key=key,
        kind=EffectKind.SHIFT,
        etag=live.etag,
        revision=incident.execution.revision_after,
        intended_at=now,
    )
    changed = incident.with_(execution=incident.execution.with_effect(effect), due_at=now)
    save(world, changed, f"{effect.revision} is good; it gets the traffic", now=now)
    return Did.NOTED


def _not_shifted(world: World, incident: Incident, says: str, now: datetime) -> Did:
    assert incident.verification is not None
    why = f"the traffic was not shifted: {says}"
    bad = incident.verification.with_(verdict=Verdict.NOT_RECOVERED, why=why)
    save(world, incident.with_(verification=bad, due_at=now), why[:300], now=now)
    return Did.NOTED


def shift_traffic(world: World, incident: Incident) -> Did:
    """Give the traffic to the revision that was verified without it."""
    now = max(world.clock.now(), incident.phase_at)
    effect = incident.execution.effect(EffectKind.SHIFT) if incident.execution else None
    platform = world.platform_of(incident.service)
    assert effect is not None
    assert platform is not None
    if effect.operation:
        operation = told(platform, effect.operation)
        if operation.says and operation.ok is None:
            return _end_shift(world, incident, effect, None, says=operation.says, now=now)
        return _end_shift(world, incident, effect, operation, says=operation.says, now=now)
    with turn(world, incident.service) as lease:
        if lease is None:
            return Did.WAITING
        unchanged(world, incident)
        stopped = why_not(world, incident, effect) or at_the_brink(world, lease)
        if stopped:
            return _end_shift(world, incident, effect, None, says=stopped, now=now)
        return _shift(world, incident, effect, platform, now)


def _shift(world: World, incident: Incident, effect: Effect, platform: Platform, now: datetime) -> Did:
    try:
        operation = platform.shift(incident.service, revision=effect.revision, etag=effect.etag, effect_key=effect.key)
    except (StateConflict, InputRejected, PolicyRefused) as error:
        return _end_shift(world, incident, effect, None, says=str(error), now=now)
    return _end_shift(world, incident, effect, operation, says=operation.says, now=now)


def _end_shift(
    world: World, incident: Incident, effect: Effect, operation: Operation | None, *, says: str, now: datetime
) -> Did:
    assert incident.execution is not None
    assert incident.verification is not None
    if operation is not None and not operation.done:
        started = effect.with_(state=EffectState.STARTED, operation=operation.name)
        due = now + timedelta(seconds=world.knowledge.times.poll_s)
        changed = incident.with_(execution=incident.execution.with_effect(started), due_at=due)
        save(world, changed, "", now=now, tell=False, wake=False)
        return Did.WAITING
    good = operation is not None and operation.ok is True
    state = EffectState.DONE if good else EffectState.FAILED
    ended = incident.execution.with_effect(effect.with_(state=state, message=says[:2000], finished_at=now))
    verification = incident.verification
    if not good:
        verification = verification.with_(verdict=Verdict.NOT_RECOVERED, why=f"the traffic was not shifted: {says}")
    changed = incident.with_(execution=ended, verification=verification, due_at=now)
    save(world, changed, "the traffic is shifted" if good else f"the traffic was not shifted: {says[:300]}", now=now)
    return Did.NOTED


def undo(world: World, incident: Incident) -> Did:
    """Put the prior template and traffic back; covered by the approval of the change itself.

    Exempt from windows, limits and expiry. The kill switch stops it too, and then a person is told.
    """
    now = max(world.clock.now(), incident.phase_at)
    execution, plan = incident.execution, incident.plan
    assert execution is not None
    assert plan is not None
    platform = world.platform_of(incident.service)
    applied = execution.effect(EffectKind.APPLY)
    if applied is None or platform is None:
        return _rolled_back(world, incident, "nothing was changed by us", now)
    try:
        if applied.operation is None and platform.find(incident.service, applied.key) is None:
            return _rolled_back(world, incident, "the change was never made", now)
        stopped = kill_switch_says(world)
        if stopped:
            return _give_up(world, incident, f"the roll-back was not made: {stopped}", now)
        return _undo(world, incident, platform, execution, now)
    except (InputRejected, PolicyRefused) as error:  # the service is gone, or closed to us
        return _give_up(world, incident, f"the roll-back was not made: {error}", now)


def _undo(world: World, incident: Incident, platform: Platform, execution: Execution, now: datetime) -> Did:
    assert incident.plan is not None
    effect = execution.effect(EffectKind.ROLL_BACK)
    if effect is None:
        key = effect_key(incident.id, incident.plan.digest, EffectKind.ROLL_BACK)
        live = platform.describe(incident.service)
        theirs = changed_since(incident.plan, execution, live)
        if theirs:
            return _give_up(world, incident, f"the roll-back was not made: {theirs}", now)
        effect = Effect(
            key=key,
            kind=EffectKind.ROLL_BACK,
            etag=live.etag,
            revision=revision_name(incident.service, key),
            intended_at=now,
        )
        heads = (f"{incident.run}|{incident.service}|{effect.revision}",)
        intended = incident.with_(execution=execution.with_effect(effect), due_at=now)
        save(world, intended, f"intends to put the prior template back as {effect.revision}", now=now, heads=heads)
        return Did.NOTED
    found = platform.find(incident.service, effect.key)
    if found is not None:
        return _undoing(world, incident, effect, found, now)
    with turn(world, incident.service) as lease:
        if lease is None:
            return Did.WAITING
        unchanged(world, incident)
        return _put_back(world, incident, effect, lease, now)


def _put_back(world: World, incident: Incident, effect: Effect, lease: Lease, now: datetime) -> Did:
    platform, execution = world.platform_of(incident.service), incident.execution
    assert platform is not None
    assert execution is not None
    try:
        check_way_back(world, incident, execution, effect)
    except PolicyRefused as error:
        return _give_up(world, incident, f"the roll-back was refused: {error}", now)
    stopped = at_the_brink(world, lease)
    if stopped:
        return _give_up(world, incident, f"the roll-back was not made: {stopped}", now)
    try:
        found = _restore(platform, incident, execution, effect)
    except (StateConflict, InputRejected, PolicyRefused) as error:
        return _give_up(world, incident, f"the roll-back was refused: {error}", now)
    return _undoing(world, incident, effect, found, now)


def _undoing(world: World, incident: Incident, effect: Effect, found: Operation, now: datetime) -> Did:
    assert incident.execution is not None
    started = effect.with_(state=EffectState.STARTED, operation=found.name)
    due = now + timedelta(seconds=world.knowledge.times.poll_s)
    changed = incident.with_(execution=incident.execution.with_effect(started), due_at=due)
    put_on_record(world, incident, effect, now)
    save(world, changed, "the prior template is being put back", now=now)
    return Did.NOTED


def _restore(platform: Platform, incident: Incident, execution: Execution, effect: Effect) -> Operation:
    order = Restore(
        service=incident.service,
        incident=incident.id,
        effect_key=effect.key,
        revision=effect.revision,
        etag=effect.etag,
        template=execution.prior_template,
        traffic=execution.prior_traffic,
    )
    try:
        return platform.restore(order)
    except (DependencyFailed, StateConflict):
        found = platform.find(incident.service, effect.key)
        if found is None:
            raise
        return found


def watch_undo(world: World, incident: Incident) -> Did:
    """Wait for the roll-back to end, then compare what serves with what served before."""
    now = max(world.clock.now(), incident.phase_at)
    execution = incident.execution
    effect = execution.effect(EffectKind.ROLL_BACK) if execution else None
    platform = world.platform_of(incident.service)
    assert execution is not None
    assert effect is not None
    assert effect.operation is not None
    assert platform is not None
    operation = told(platform, effect.operation)
    limit = effect.intended_at + timedelta(seconds=world.knowledge.times.rollout_limit_s)
    if not operation.done and now < limit:
        due = now + timedelta(seconds=world.knowledge.times.poll_s)
        save(world, incident.with_(due_at=due), "", now=now, tell=False, wake=False)
        return Did.WAITING
    try:
        same = platform.restored(incident.service, template=execution.prior_template, traffic=execution.prior_traffic)
    except (InputRejected, PolicyRefused) as error:
        return _give_up(world, incident, f"nobody can say whether the prior template is back: {error}", now)
    if not same:
        return _give_up(world, incident, f"the prior template is not back: {operation.says[:300]}", now)
    done = incident.with_(execution=execution.with_effect(effect.with_(state=EffectState.DONE, finished_at=now)))
    if operation.ok is not True and execution.prior_ready is not False:
        return _give_up(world, done, f"the prior template is back but does not come up: {operation.says[:300]}", now)
    return _rolled_back(world, done, _is_back(execution), now)


def _is_back(execution: Execution) -> str:
    if execution.prior_ready is not False:
        return "the prior template serves again"
    older = execution.served_by_older
    if older is not None:
        return f"the prior template is back; it did not come up before either, and {older} serves as before"
    return "the prior template is back; it did not serve before either, so the service is still down"


def _rolled_back(world: World, incident: Incident, what: str, now: datetime) -> Did:
    moved = incident.move(Phase.ROLLED_BACK, now=now, due_at=now, ended_why=what)
    save(world, moved, what, now=now)
    return Did.MOVED


def _give_up(world: World, incident: Incident, why: str, now: datetime) -> Did:
    moved = incident.move(Phase.ESCALATED, now=now, due_at=None, ended_why=why, remedies=tried(incident, now))
    save(world, moved, f"escalated: {why}", now=now)
    return Did.MOVED
