"""What must hold, at every change, at every commit and at the end, as code."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

from agent.adapters.platform.rehearsal.template import template_of
from agent.adapters.store.row_json import from_us
from agent.adapters.store.sqlite.control import SQL
from agent.core.change.execution import EffectKind, EffectState, effect_key
from agent.core.change.verification import Verdict
from agent.core.decision.decision import Channel, Choice, Decision, Vote
from agent.core.decision.roll_back import claim_name
from agent.core.incident.incident import TAKEN_BACK, Incident
from agent.core.incident.phase import Phase
from agent.core.plan.lifecycle import ends_service
from agent.core.plan.plan import Plan
from agent.core.plan.proof import OFFERED, Proof, affected_memory
from agent.errors import DependencyFailed, PolicyRefused, StateConflict
from agent.ports.control import Lease
from agent.ports.store import Query
from tests.simulation.simulated.platform import Fate

if TYPE_CHECKING:
    from tests.simulation.simulated.driver import Simulation
    from tests.simulation.simulated.people import Pressed
    from tests.simulation.simulated.platform import Mutation

READ_AGAIN = 8  # every so many versions of an incident; all of them would take a tenth of a run
UNKEPT = frozenset({Verdict.NOT_RECOVERED, Verdict.INCONCLUSIVE})
FAILED = frozenset({*map(str, UNKEPT), TAKEN_BACK})


def at_a_change(sim: Simulation, mutation: Mutation) -> None:
    """No effect twice, none without a valid decision, none without its turn, none under the kill switch."""
    assert all(m.key != mutation.key for m in sim.platform.mutations), f"effect {mutation.key} was made twice"
    incident = _incident_of(sim, mutation)
    assert incident.plan is not None
    decision = _claimed(sim, incident.plan.id)
    assert decision is not None, f"{mutation.kind} without a decision about {incident.plan.id}"
    assert decision.answer is Choice.APPROVE, f"{mutation.kind} of a rejected plan"
    assert decision.plan_digest == incident.plan.digest
    _enough_voted(sim, incident.plan, decision)
    assert decision.at < decision.expires_at, "an expired plan was approved"
    assert incident.plan.proof in OFFERED, f"{mutation.kind} of a plan with the proof {incident.plan.proof}"
    if mutation.kind == "apply":
        _first_enough(sim, incident)
    else:
        _nobodys_work_undone(sim, incident, mutation)
    if mutation.kind == "restore":
        _failed_or_decided(sim, incident)
    intent = sim.control.intent(mutation.key)
    assert intent is not None, f"{mutation.kind} without an intent"
    assert not intent.closed, f"{mutation.kind} was closed before: {intent.closed}"
    if sim.paused_at_brink:
        return  # it stood still after its last look; only the etag and the end of its lease can stop it now
    assert not sim.control.kill_switch().on, f"{mutation.kind} under the kill switch"
    assert sim.running is not None
    believed = max(sim.running.now(sim.true), sim.store.latest_time() or sim.true)
    if mutation.kind == "apply":
        assert believed < decision.expires_at, "the approval had expired"
    turn = f"service/{mutation.service}"
    rows = sim.control._database.ask(SQL["lease"], {"name": turn})
    assert rows, "nobody had the turn"
    held_by, token, ends_at = rows[0]
    holder = sim.running.app.contexts["on_decision"].holder
    assert held_by.startswith(f"{holder}/"), f"{held_by} has the turn, {holder} made the change"
    held = Lease(name=turn, holder=held_by, token=token, until=from_us(ends_at))
    assert sim.control.holds(held, believed), "the turn was over"


def _enough_voted(sim: Simulation, plan: Plan, decision: Decision) -> None:
    """As many different people as the rules ask for, who pressed and have not taken it back, and not the asker."""
    if sim.course.voters < 2 or plan.by_person:
        return
    ballot = sim.control.ballot(plan.digest)
    assert ballot is not None, "nobody voted"
    people = {vote.person for vote in decision.votes}
    assert len(people) >= sim.course.voters, f"approved by {people} alone"
    assert all(vote in ballot.standing for vote in decision.votes), "a vote that does not stand was counted"
    pressed = {p.who for p in sim.people.pressed if p.plan == plan.id and p.answer is Choice.APPROVE}
    assert {vote.who for vote in decision.votes} <= pressed - {plan.asked_by}


def _nobodys_work_undone(sim: Simulation, incident: Incident, mutation: Mutation) -> None:
    """Roll-back and shift follow our own change; what a person did after it stays."""
    applied = incident.execution.effect(EffectKind.APPLY) if incident.execution is not None else None
    ours = next(m.at for m in sim.platform.mutations if applied is not None and m.key == applied.key)
    touched = sim.touched_by_hand.get(mutation.service)
    assert touched is None or touched <= ours, f"{mutation.kind} after somebody else changed {mutation.service}"


def _failed_or_decided(sim: Simulation, incident: Incident) -> None:
    """A roll-back follows a verification that failed, or the one decision of a person about this very change."""
    if incident.roll_back is None:
        assert incident.verification is not None
        assert incident.verification.verdict in UNKEPT, "rolled back, and nothing had failed"
        return
    assert incident.plan is not None
    applied = effect_key(incident.id, incident.plan.digest, EffectKind.APPLY)
    held = _claim(sim, claim_name(applied))
    assert held == incident.roll_back.model_dump_json(), "rolled back by a decision that was not recorded"


def _first_enough(sim: Simulation, incident: Incident) -> None:
    """At most two failed remedies of a fingerprint, and none that failed before."""
    assert incident.plan is not None
    own = [r for r in incident.remedies if r.cause == incident.cause and r.ended in FAILED]
    asked_again = incident.replanned is not None  # a person may; a machine may not
    assert len(own) < 2 or asked_again, f"a third remedy for {incident.cause}"
    assert not asked_again or incident.require_decision().channel is not Channel.POLICY, "policy went on by itself"
    assert incident.plan.proposal not in {r.proposal for r in own}, "a remedy that failed was tried again"


def _incident_of(sim: Simulation, mutation: Mutation) -> Incident:
    kind = {"apply": EffectKind.APPLY, "restore": EffectKind.ROLL_BACK, "shift": EffectKind.SHIFT}[mutation.kind]
    for incident in sim.store.incidents(Query(limit=1000)):
        if incident.plan is not None and effect_key(incident.id, incident.plan.digest, kind) == mutation.key:
            assert incident.service == mutation.service
            return incident
    raise AssertionError(f"{mutation.kind} {mutation.key} belongs to no plan that stands")


def _claim(sim: Simulation, plan: str) -> str | None:
    rows = sim.control._database.ask(SQL["claim"], {"plan": plan})
    return str(rows[0][0]) if rows else None


def _claimed(sim: Simulation, plan: str) -> Decision | None:
    held = _claim(sim, plan)
    return Decision.model_validate_json(held) if held is not None else None


def at_a_commit(sim: Simulation, incident: Incident) -> None:
    """RESOLVED after RECOVERED only; ROLLED_BACK only when it is so; a decision of ours is the one that was claimed.

    The store gives out what it was given where that is what it holds; another process reads the same from its JSON.
    """
    if incident.version % READ_AGAIN == 0:
        assert Incident.model_validate_json(incident.model_dump_json()) == incident, "it is read otherwise than written"
    if incident.phase is Phase.RESOLVED:
        assert incident.verification is not None
        assert incident.verification.verdict is Verdict.RECOVERED, "resolved without a verdict"
        _really_well(sim, incident)
    if incident.plan is not None:
        _is_proved(incident.plan)
    if incident.decision is not None:
        assert incident.decision == _claimed(sim, incident.decision.plan), "another decision stands than was claimed"
    if incident.phase is Phase.ROLLED_BACK and not _stood_before(sim, incident):
        _really_back(sim, incident)


def _stood_before(sim: Simulation, incident: Incident) -> bool:
    """Whether it was in its phase already: behind a requested change it waits there while that changes the service."""
    same = (incident.id, incident.phase, incident.phase_at)
    return any((i.id, i.phase, i.phase_at) == same for _, i in sim.history[:-1])


def _is_proved(plan: Plan) -> None:
    """T3: what is offered and takes memory is computed or measured; a task that is not proved says what is missing."""
    if not plan.by_person:
        proved = {Proof.COMPUTED, Proof.MEASURED} if affected_memory(plan.actions) else OFFERED
        assert plan.proof in proved, f"{plan.id} is offered with the proof {plan.proof}: {plan.proof_missing}"
    assert bool(plan.proof_missing) == (plan.proof is Proof.NONE), f"{plan.id}: {plan.proof_missing}"


def _really_well(sim: Simulation, incident: Incident) -> None:
    """What crashes or runs out of memory only after the window cannot be known in it; everything else can."""
    service = sim.platform.services[incident.service]
    if incident.plan is not None and any(map(ends_service, incident.plan.actions)):
        stopped = template_of(service.template).config.max_instances == 0
        assert service.deleted or stopped or incident.service in sim.touched_by_hand, "resolved, but it still serves"
        return
    revision = incident.execution.revision_after if incident.execution is not None else None
    fate = service.fates.get(revision or "", Fate.GOOD)
    assert fate in {Fate.GOOD, Fate.CRASHES, Fate.OOM}, f"resolved, but {revision} is {fate}"


def _really_back(sim: Simulation, incident: Incident) -> None:
    execution = incident.execution
    applied = execution.effect(EffectKind.APPLY) if execution is not None else None
    made = applied is not None and any(m.key == applied.key for m in sim.platform.mutations)
    if not made or execution is None or applied is None:
        return
    touched = sim.touched_by_hand.get(incident.service)
    if touched is not None and touched >= applied.intended_at - timedelta(seconds=700):
        return
    assert sim.platform.restored(
        incident.service, template=execution.prior_template, traffic=execution.prior_traffic
    ), "rolled back, says the incident; the prior template is not there"


def at_the_end(sim: Simulation) -> None:
    """Everything ended, everybody was told, nothing is left over, nothing was lost."""
    incidents = sim.store.incidents(Query(limit=1000))
    left = [(i.id, i.phase) for i in incidents if not i.ended]
    assert not left, f"not at an end: {left}"
    assert sim.store.unsent() == (), f"unsent: {sim.store.unsent()}"
    lost = sim.people.requested - {i.id for i in incidents}
    assert not lost, f"requests that were recorded and are gone: {lost}"
    stuck = [e for i in incidents for e in _effects(i) if e.state is EffectState.INTENDED and i.phase is Phase.RESOLVED]
    assert not stuck, f"intended and never made, yet resolved: {stuck}"
    for pressed in sim.people.pressed:
        _was_told(sim, pressed)
    _nothing_lost(sim, incidents)
    _no_oscillation(sim)


def _effects(incident: Incident) -> tuple:
    return incident.execution.effects if incident.execution is not None else ()


def _was_told(sim: Simulation, pressed: Pressed) -> None:
    """Who heard yes has the decision that stands; who lost heard who won, or that it was too late."""
    claimed = _claimed(sim, pressed.plan)
    heard = pressed.heard
    if isinstance(heard, Decision):
        assert claimed is not None
        assert claimed.answer is pressed.answer, "a loser was told that they won"
        assert pressed.who in {claimed.who, *(vote.who for vote in claimed.votes)}, "a loser was told that they won"
        return
    if isinstance(heard, Vote):
        _is_kept(sim, pressed)
        return
    if heard is None or isinstance(heard, DependencyFailed):
        return  # they pressed until they gave up, and know that they do not know
    assert isinstance(heard, PolicyRefused | StateConflict), f"{pressed.who} heard {heard!r}"
    if claimed is not None and claimed.who != pressed.who and isinstance(heard, StateConflict):
        named = claimed.shown in str(heard) or (pressed.withdraw and str(claimed.answer) in str(heard))
        assert named or "not recorded yet" in str(heard), f"the loser heard {heard}"


def _is_kept(sim: Simulation, pressed: Pressed) -> None:
    """A vote that somebody heard of is in the control database; it stands unless its person took one back."""
    plan = next(i.plan for _, i in sim.history if i.plan is not None and i.plan.id == pressed.plan)
    ballot = sim.control.ballot(plan.digest)
    votes = [vote for vote in ballot.votes if vote.who == pressed.who] if ballot is not None else []
    assert len(votes) == 1, f"{pressed.who} heard of a vote, and {votes} are kept"
    took_back = any(p.withdraw for p in sim.people.pressed if (p.plan, p.who) == (pressed.plan, pressed.who))
    assert took_back or votes[0].withdrawn_at is None, f"the vote of {pressed.who} was taken back by nobody"


def _nothing_lost(sim: Simulation, incidents: tuple[Incident, ...]) -> None:
    """Every log entry of a failure is in an incident, or was put aside with a reason."""
    from agent.entrypoints.pubsub.handlers import read_signals
    from agent.ports.bus import Delivery, Topic

    aside = {row["data"] for row in sim.stores.quarantine.rows(10_000)}
    for body in sim.entries.values():
        if any(_same_entry(body, data) for data in aside):
            continue
        delivery = Delivery(topic=Topic.LOG_EVENTS, message_id="x", data=body.encode())
        for signal in read_signals(sim.processes[0].app.contexts["on_log_event"], delivery):
            finding = sim.processes[0].app.rules.matcher.classify(
                signal.text, whole_log=False, platform=signal.platform
            )
            if finding.certain and not finding.benign:
                assert sim.store.knows(signal.key) is not None, f"lost: {signal.text[:80]!r}"
    keys = Counter(s.key for i in incidents for s in sim.store.signals(i.id))
    assert all(n == 1 for n in keys.values()), "a signal is in two incidents"


def _same_entry(body: str, data: str) -> bool:
    import json

    return json.loads(body)["insertId"] in data


def _no_oscillation(sim: Simulation) -> None:
    """No service is changed to and fro: a template that we took back is not applied again for the same cause."""
    undone: set[tuple[str, str, str]] = set()
    for _, incident in sim.history:
        if incident.plan is None or incident.execution is None:
            continue
        key = (incident.service, incident.cause, incident.plan.proposal)
        applied = incident.execution.effect(EffectKind.APPLY)
        if applied is None or applied.operation is None:
            continue
        if incident.phase is Phase.ROLLED_BACK:
            undone.add((*key, incident.plan.id))
        again = [u for u in undone if u[:3] == key and u[3] != incident.plan.id]
        assert not (again and incident.phase is Phase.APPLYING), f"{key} was tried again"
