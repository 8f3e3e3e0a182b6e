"""How a plan comes to be: the first candidate that fits, is allowed, changes something and was not tried."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from agent.core.change.verification import Verdict
from agent.core.decision.policy import Policy
from agent.core.decision.rule import Mode
from agent.core.diagnosis.diagnosis import Diagnosis
from agent.core.incident.incident import INVALID, TAKEN_BACK, Incident
from agent.core.incident.phase import Phase
from agent.core.plan.action import (
    NO_SERVICE,
    Action,
    Difference,
    ForPerson,
    LifecycleOperation,
    Restart,
    SetFlag,
    SetInstanceType,
    SetModel,
    applied,
    difference,
)
from agent.core.plan.capacity import Capacity, ContainerFit
from agent.core.plan.lifecycle import ends_service, lifecycle_of, risk_of, stops_answering, undo_of
from agent.core.plan.plan import FitSummary, Risk, Rollout
from agent.core.plan.printed_memory import Printed
from agent.core.plan.proof import Proof, ProofFigure, affected_memory
from agent.core.planning.candidates import Candidate, LoggedConfig, candidates
from agent.core.planning.proving import Proven, prove
from agent.core.planning.replacement import for_writer, release_note, with_room
from agent.core.service.container_args import starts_in_shell
from agent.core.service.serving import Live, ServingConfig
from agent.core.value import digest
from agent.errors import PolicyRefused

MACHINE_STOPS: Final = (
    "its machine is stopped first, so nothing answers until it has started as the new type and the server has loaded"
    " the model; where the cloud has no room for the type, or the vCPU quota is too small, the old type is put back"
)
NEVER_AGAIN = frozenset({Verdict.NOT_RECOVERED, Verdict.INCONCLUSIVE, Phase.REJECTED, INVALID, TAKEN_BACK})


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A candidate with its proof, price and risk; what a plan is made of."""

    actions: tuple[Action, ...]
    difference: tuple[Difference, ...]
    why: str
    rollout: Rollout
    fit_before: FitSummary
    fit_after: FitSummary
    cost_before_usd_per_h: float | None
    cost_after_usd_per_h: float | None
    decode_tokens_per_s: float | None
    risk: Risk
    risk_reasons: tuple[str, ...]
    undo: str
    notes: tuple[str, ...]
    proof: Proof
    proof_figures: tuple[ProofFigure, ...] = ()
    proof_missing: tuple[str, ...] = ()
    takes_away: str = ""
    misses: str = ""

    @property
    def for_approval(self) -> bool:
        """Whether a change of ours is offered; what only a person does is a task."""
        return self.rollout is not Rollout.BY_PERSON


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a proposal is made from; ``printed`` only where the engine printed it about this very configuration."""

    incident: Incident
    live: Live | None
    fits: Capacity
    policy: Policy
    printed: Printed | None


def propose(
    incident: Incident,
    live: Live | None,
    fits: Capacity,
    policy: Policy,
    over_budget: Callable[[tuple[Action, ...]], str] = lambda _: "",
) -> Proposal | None:
    """Return the best proposal, or None where nothing is left.

    What was tried for this cause and failed, or was rejected, does not come again. What helped once and did
    not last comes after everything else. What does not fit never comes. What takes memory and is not proved is no
    change of ours: the task that a person gets instead says what would have to be known. What is over budget is not
    offered either; the plan that is taken instead says so.

    Args:
        incident: Diagnosed.
        live: The service as it is; None where nobody describes it to us.
        fits: The arithmetic.
        policy: What may be changed.
        over_budget: Returns why actions would break a budget, or nothing.
    """
    diagnosis = incident.require_diagnosis()
    own = [r for r in incident.remedies if r.cause == incident.cause]
    never = {r.proposal for r in own if r.ended in NEVER_AGAIN}
    last = {r.proposal for r in own if r.ended == Verdict.RECOVERED}
    kept: list[tuple[int, Proposal]] = []
    config = incident.logged_config
    logged = LoggedConfig(config=config, platform=incident.platform) if config is not None else None
    about = Known(incident=incident, live=live, fits=fits, policy=policy, printed=_printed(incident, live))
    unproved: list[str] = []
    dear: list[str] = []
    known = candidates(
        incident.service, diagnosis, live, fits, logged=logged, platform=incident.platform, printed=about.printed
    )
    for candidate in (_suited(about, c) for c in known):
        key = digest([a.model_dump(mode="json") for a in candidate.actions])
        if key in never:
            continue
        proposal = proposal_of(about, candidate)
        if proposal is None:
            continue
        if proposal.for_approval and proposal.proof is Proof.NONE:
            unproved.append(_not_offered(proposal))
        elif proposal.for_approval and (over := over_budget(proposal.actions)):
            dear.append(f"not offered, because of the budget: {_change(proposal)} ({over})")
        else:
            kept.append((_rank(proposal, tried=key in last), proposal))
    best = min(kept, key=lambda pair: pair[0])[1] if kept else None
    if best is None:
        return None
    more = dear if best.for_approval else [*unproved, *dear]
    return replace(best, notes=(*best.notes, *dict.fromkeys(more)))


def _printed(incident: Incident, live: Live | None) -> Printed | None:
    """What the engine printed, if it was this very configuration that it printed it about."""
    printed, config = incident.printed, live.config if live is not None else incident.logged_config
    revision = live.latest_created_revision if live is not None else None
    return printed if printed is not None and config is not None and printed.is_of(config, revision) else None


def _not_offered(proposal: Proposal) -> str:
    """What could have been done, and what would have to be known to offer it."""
    missing = "; ".join(proposal.proof_missing)
    return f"not offered, because nothing proves that its memory suffices: {_change(proposal)} ({missing})"


def _change(proposal: Proposal) -> str:
    return ", ".join(f"{d.path} {d.before or 'not set'} -> {d.after or 'removed'}" for d in proposal.difference)


def _rank(proposal: Proposal, *, tried: bool) -> int:
    """A change that keeps the needs, a person's task that is proved, a change that misses a need, a runbook."""
    if proposal.for_approval:
        place = 2 if proposal.misses else 0
    else:
        place = 1 if proposal.proof in {Proof.COMPUTED, Proof.MEASURED} else 3
    return 10 * tried + place


def proposal_of(about: Known, candidate: Candidate) -> Proposal | None:
    """Return a candidate with its proof, price and risk; None where it changes nothing, does not fit or may not be."""
    incident, live, fits, candidate = about.incident, about.live, about.fits, _suited(about, candidate)
    if isinstance(candidate.actions[0], ForPerson) or live is None:
        by_person = _for_person(about, candidate)
        return _doubted(_unpinned(by_person, live), incident.diagnosis) if by_person is not None else None
    after = applied(live.config, candidate.actions)
    changed = difference(live.config, after)
    if not _may_be_made(about, live, candidate, changed):
        return None
    fit = candidate.fit or fits.assess(incident.service, after)
    operation, ends = lifecycle_of(candidate.actions), any(map(ends_service, candidate.actions))
    staged = operation is None and bool(live.spare_accelerator) and live.can_stage and live.ready is not False
    starts_other = operation in {None, LifecycleOperation.CREATE}
    if (starts_other and fit.fits is False) or (not staged and not ends and live.pinned_to is not None):
        return None
    before = fits.assess(incident.service, live.config)
    proven = proof_of(incident, live, candidate.actions, fits, fit=fit)
    misses = fits.misses(incident.service, after) if affected_memory(candidate.actions) else ""
    missed = (f"misses a need: {misses}",) if misses else ()
    prices = _prices(incident.service, fits, live.config, after, candidate)
    risk, reasons, undo, takes = _outlook(about, live, candidate, fits=(before, fit), proven=proven, prices=prices)
    return Proposal(
        actions=candidate.actions,
        difference=changed,
        why=candidate.why,
        rollout=Rollout.STAGED if staged else Rollout.IN_PLACE,
        fit_before=before,
        fit_after=fit,
        cost_before_usd_per_h=prices[0],
        cost_after_usd_per_h=prices[1],
        decode_tokens_per_s=candidate.decode_tokens_per_s or fits.decode_tokens_per_s(incident.service, after),
        risk=risk,
        risk_reasons=reasons,
        undo=undo,
        notes=(*candidate.notes, *missed, *release_note(live, candidate.actions), *_when_stopped(live, candidate)),
        proof=proven.proof,
        proof_figures=proven.figures,
        proof_missing=proven.missing,
        takes_away=takes,
        misses=misses,
    )


def _outlook(
    about: Known,
    live: Live,
    candidate: Candidate,
    *,
    fits: tuple[FitSummary, FitSummary],
    proven: Proven,
    prices: tuple[float | None, float | None],
) -> tuple[Risk, tuple[str, ...], str, str]:
    """Return the risk with its reasons, how it is undone, and what it takes away."""
    service, operation = about.incident.service, lifecycle_of(candidate.actions)
    if operation is not None:
        takes = stops_answering(service, candidate.actions)
        return (*risk_of(operation, live), undo_of(service, operation, live), takes)
    risk, reasons = _risk(about.incident, live, fits[1], fits[0], proven, computed=candidate.fit is not None)
    after = applied(live.config, candidate.actions)
    undo = _undo(live, after)
    if _stops_machine(candidate.actions):
        risk, reasons = max(risk, Risk.MEDIUM, key=list(Risk).index), (*reasons, MACHINE_STOPS)
        undo = f"its machine is stopped, made {live.config.instance_type} again and started; {undo}"
    return risk, reasons, undo, about.fits.takes_away(service, live.config, after, usd_per_h=prices)


def _stops_machine(actions: tuple[Action, ...]) -> bool:
    return any(isinstance(action, SetInstanceType) for action in actions)


def _when_stopped(live: Live, candidate: Candidate) -> tuple[str, ...]:
    """What a stop of the machine costs or loses, where the plan stops it."""
    stops = lifecycle_of(candidate.actions) is LifecycleOperation.STOP or _stops_machine(candidate.actions)
    return live.when_stopped if stops else ()


def _suited(about: Known, candidate: Candidate) -> Candidate:
    """Return the candidate with what it needs to come up, or as a patch for whoever else writes the configuration."""
    live, service = about.live, about.incident.service
    if live is None:
        return candidate
    return for_writer(with_room(candidate, service, live, about.fits), service, live, about.fits)


def _may_be_made(about: Known, live: Live, candidate: Candidate, changed: tuple[Difference, ...]) -> bool:
    """Whether it changes something, policy allows it, and the flags are words that can be set."""
    restart = any(isinstance(a, Restart) for a in candidate.actions)
    never = about.policy.mode(about.incident.service, candidate.actions) is Mode.NEVER
    if (not changed and not restart) or never:
        return False
    if any(isinstance(a, SetFlag | SetModel) for a in candidate.actions) and starts_in_shell(
        live.config.command, live.config.args
    ):
        return False  # nobody can set a flag there safely; a person is told which
    try:
        about.policy.check(candidate.actions, about.incident.service)
    except PolicyRefused:
        return False
    return True


def proof_of(incident: Incident, live: Live, actions: tuple[Action, ...], fits: Capacity, *, fit: FitSummary) -> Proven:
    """Prove actions from the live configuration; asked when a plan is made, and again before its effect.

    Args:
        incident: Whose diagnosis and printed figures count.
        live: The service as it is.
        actions: What would be done.
        fits: The arithmetic.
        fit: What it says of the device's memory after the actions.
    """
    after = applied(live.config, actions)
    return prove(actions, fit=fit, container=_container(incident, live, after, fits), printed=_printed(incident, live))


def _container(incident: Incident, live: Live, after: ServingConfig, fits: Capacity) -> ContainerFit:
    """The container's memory after a change; no computation stands that the kill before it contradicts."""
    killed = incident.diagnosis is not None and incident.diagnosis.class_ == "host_oom"
    if killed and fits.container(incident.service, live.config).fits is True:
        return ContainerFit(sentence="container memory: it was computed to suffice and did not; what else takes it")
    return fits.container(incident.service, after)


def _prices(
    service: str, fits: Capacity, before: ServingConfig, after: ServingConfig, candidate: Candidate
) -> tuple[float | None, float | None]:
    """USD of an hour before and after: of one instance, or of all that may run where their number is what changes."""
    was, own = (0.0 if config == NO_SERVICE else fits.cost_usd_per_h(service, config) for config in (before, after))
    new = own if own is not None else candidate.cost_usd_per_h
    if before.max_instances == after.max_instances:
        return was, new
    counts = [1 if c.max_instances is None else c.max_instances for c in (before, after)]
    return _all_of(was, counts[0]), _all_of(new, counts[1])


def _all_of(usd: float | None, count: int) -> float | None:
    return usd * count if usd is not None else None


def _for_person(about: Known, candidate: Candidate) -> Proposal | None:
    if not isinstance(candidate.actions[0], ForPerson):
        return None
    config = about.live.config if about.live is not None else about.incident.logged_config
    before = about.fits.assess(about.incident.service, config) if config is not None else FitSummary()
    proven = _task_proven(candidate, about.printed)
    cost = about.fits.cost_usd_per_h(about.incident.service, config) if config is not None else None
    return Proposal(
        actions=candidate.actions,
        difference=(),
        why=candidate.why,
        rollout=Rollout.BY_PERSON,
        fit_before=before,
        fit_after=candidate.fit or before,
        cost_before_usd_per_h=cost,
        cost_after_usd_per_h=candidate.cost_usd_per_h if candidate.fit is not None else cost,
        decode_tokens_per_s=candidate.decode_tokens_per_s,
        risk=Risk.MEDIUM,
        risk_reasons=("a person does it",),
        undo=candidate.actions[0].undo or "as the person who did it sees fit",
        notes=candidate.notes,
        proof=proven.proof,
        proof_figures=proven.figures,
        proof_missing=proven.missing,
        takes_away=candidate.takes_away,
    )


def _task_proven(candidate: Candidate, printed: Printed | None) -> Proven:
    """The proof of a person's task: of the device's memory; the host that they take for it is theirs to choose.

    A runbook of the catalogue names no value, so nothing proves it.
    """
    if candidate.fit is None:
        fit = FitSummary(sentence="which values fit: neither the log nor the catalogue has the figures for it")
        return prove(candidate.actions, fit=fit, container=ContainerFit())
    return prove(candidate.actions, fit=candidate.fit, container=ContainerFit(fits=True), printed=printed)


def _unpinned(proposal: Proposal, live: Live | None) -> Proposal:
    """Say why we change nothing ourselves where the traffic does not follow what we would make."""
    if live is None or live.pinned_to is None:
        return proposal
    note = (
        f"the traffic, or a share of it, is pinned to {live.pinned_to!r}: a change in place would not serve, or could"
        " not be measured; let all of it follow the latest revision, then we can change the service"
    )
    return replace(proposal, notes=(*proposal.notes, note))


def _doubted(proposal: Proposal, diagnosis: Diagnosis | None) -> Proposal:
    """A class that only the model names makes even a person's errand one of high risk."""
    leads = diagnosis is not None and diagnosis.signature is None and diagnosis.model_word is not None
    if not leads or diagnosis is None or diagnosis.class_ == "unknown":
        return proposal
    return replace(proposal, risk=Risk.HIGH, risk_reasons=(*proposal.risk_reasons, "only the model says so"))


def _risk(
    incident: Incident, live: Live, fit: FitSummary, before: FitSummary, proven: Proven, *, computed: bool
) -> tuple[Risk, tuple[str, ...]]:
    reasons = []
    diagnosis = incident.diagnosis
    certain = diagnosis is None or diagnosis.certain  # what a person asks for has no cause to be wrong about
    measured = proven.proof is Proof.MEASURED
    unsure = not measured and fit.fits is None and (before.fits is not True or fit.report is None)
    if unsure:
        reasons.append(fit.sentence)
    if measured:
        reasons.append("proved by a line of the log alone, which whoever writes to the log can forge")
    if not certain:
        reasons.append("the cause is not certain")
    if computed:
        reasons.append("computed, not tried on this hardware")
    if live.ready:
        reasons.append("the service answers now and is replaced in place" if not live.spare_accelerator else "")
    reasons = [r for r in reasons if r]
    if unsure or not certain:
        return Risk.HIGH, tuple(reasons)
    return (Risk.MEDIUM if reasons else Risk.LOW), tuple(reasons)


def _undo(live: Live, after: ServingConfig) -> str:
    serving, older = live.latest_ready_revision, live.served_by_older
    state = f"{serving} served before it" if serving and live.ready else "that revision was not serving either"
    if older:
        ended = after.strategy != live.config.strategy  # so that its accelerator is free for the new one
        then = "is ended by the change and does not come back by itself" if ended else "serves meanwhile"
        state = f"it did not come up before either, and {older} {then}"
    return f"the template of generation {live.generation} is restored byte by byte, and the traffic as it was; {state}"
