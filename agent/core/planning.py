"""How a plan comes to be: the first candidate that fits, is allowed, changes something and was not tried."""

from dataclasses import dataclass, replace

from agent.core.action import Action, Difference, ForPerson, Restart, SetFlag, SetModel, applied, difference
from agent.core.candidates import Candidate, Told, candidates
from agent.core.diagnosis import Diagnosis
from agent.core.fitting import Fits
from agent.core.incident import INVALID, Incident
from agent.core.phase import Phase
from agent.core.plan import FitWord, Risk, Rollout
from agent.core.policy import Mode, Policy
from agent.core.serving import Live, ServingConfig
from agent.core.value import digest
from agent.core.verification import Verdict
from agent.core.words import in_a_shell
from agent.errors import PolicyRefused

NEVER_AGAIN = frozenset({Verdict.NOT_RECOVERED, Verdict.INCONCLUSIVE, Phase.REJECTED, INVALID})


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A candidate with its proof, price and risk; what a plan is made of."""

    actions: tuple[Action, ...]
    difference: tuple[Difference, ...]
    why: str
    rollout: Rollout
    fit_before: FitWord
    fit_after: FitWord
    cost_before_usd_per_h: float | None
    cost_after_usd_per_h: float | None
    decode_tokens_per_s: float | None
    risk: Risk
    risk_reasons: tuple[str, ...]
    undo: str
    notes: tuple[str, ...]


def propose(incident: Incident, live: Live | None, fits: Fits, policy: Policy) -> Proposal | None:
    """Return the best proposal, or None where nothing is left.

    What was tried for this cause and failed, or was rejected, does not come again. What helped once and did
    not last comes after everything else. What does not fit never comes.
    """
    diagnosis = incident.diagnosis
    assert diagnosis is not None
    own = [r for r in incident.remedies if r.cause == incident.cause]
    never = {r.proposal for r in own if r.ended in NEVER_AGAIN}
    last = {r.proposal for r in own if r.ended == Verdict.RECOVERED}
    kept: list[tuple[int, Proposal]] = []
    told = Told(config=incident.told, platform=incident.platform) if incident.told is not None else None
    known = candidates(incident.service, diagnosis, live, fits, told=told, platform=incident.platform)
    for candidate in known:
        key = digest([a.model_dump(mode="json") for a in candidate.actions])
        if key in never:
            continue
        proposal = _proposal(incident, live, candidate, fits, policy)
        if proposal is not None:
            kept.append((_rank(proposal, tried=key in last), proposal))
    return min(kept, key=lambda pair: pair[0])[1] if kept else None


def _rank(proposal: Proposal, *, tried: bool) -> int:
    by_person = isinstance(proposal.actions[0], ForPerson)
    return 10 * tried + 4 * by_person + 2 * (proposal.fit_after.fits is None)


def _proposal(
    incident: Incident, live: Live | None, candidate: Candidate, fits: Fits, policy: Policy
) -> Proposal | None:
    if isinstance(candidate.actions[0], ForPerson) or live is None:
        known = live.config if live is not None else incident.told
        by_person = _for_person(known, candidate, fits, incident.service)
        return _doubted(_unpinned(by_person, live), incident.diagnosis) if by_person is not None else None
    after = applied(live.config, candidate.actions)
    changed = difference(live.config, after)
    restart = any(isinstance(a, Restart) for a in candidate.actions)
    if (not changed and not restart) or policy.mode(incident.service, candidate.actions) is Mode.NEVER:
        return None
    if any(isinstance(a, SetFlag | SetModel) for a in candidate.actions) and in_a_shell(
        live.config.command, live.config.args
    ):
        return None  # nobody can set a flag there safely; a person is told which
    try:
        policy.check(candidate.actions)
    except PolicyRefused:
        return None
    word = candidate.word or fits.word(incident.service, after)
    staged = bool(live.spare_accelerator) and live.ready is not False
    if word.fits is False or (not staged and live.pinned_to is not None):
        return None
    before = fits.word(incident.service, live.config)
    risk, reasons = _risk(incident, live, word, before, computed=candidate.word is not None)
    return Proposal(
        actions=candidate.actions,
        difference=changed,
        why=candidate.why,
        rollout=Rollout.STAGED if staged else Rollout.IN_PLACE,
        fit_before=before,
        fit_after=word,
        cost_before_usd_per_h=fits.cost_usd_per_h(live.config),
        cost_after_usd_per_h=_cost(fits, after, candidate),
        decode_tokens_per_s=candidate.decode_tokens_per_s or fits.decode_tokens_per_s(incident.service, after),
        risk=risk,
        risk_reasons=reasons,
        undo=_undo(live),
        notes=candidate.notes,
    )


def _cost(fits: Fits, after: ServingConfig, candidate: Candidate) -> float | None:
    own = fits.cost_usd_per_h(after)
    return own if own is not None else candidate.cost_usd_per_h


def _for_person(config: ServingConfig | None, candidate: Candidate, fits: Fits, service: str) -> Proposal | None:
    if not isinstance(candidate.actions[0], ForPerson):
        return None
    before = fits.word(service, config) if config is not None else FitWord()
    cost = fits.cost_usd_per_h(config) if config is not None else None
    return Proposal(
        actions=candidate.actions,
        difference=(),
        why=candidate.why,
        rollout=Rollout.BY_PERSON,
        fit_before=before,
        fit_after=candidate.word or before,
        cost_before_usd_per_h=cost,
        cost_after_usd_per_h=candidate.cost_usd_per_h if candidate.word is not None else cost,
        decode_tokens_per_s=candidate.decode_tokens_per_s,
        risk=Risk.MEDIUM,
        risk_reasons=("a person does it",),
        undo=candidate.actions[0].undo or "as the person who did it sees fit",
        notes=candidate.notes,
    )


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
    incident: Incident, live: Live, word: FitWord, before: FitWord, *, computed: bool
) -> tuple[Risk, tuple[str, ...]]:
    reasons = []
    diagnosis = incident.diagnosis
    assert diagnosis is not None
    unproven = word.fits is None and (before.fits is not True or word.report is None)
    if unproven:
        reasons.append(word.sentence)
    if not diagnosis.certain:
        reasons.append("the cause is not certain")
    if computed:
        reasons.append("computed, not tried on this hardware")
    if live.ready:
        reasons.append("the service answers now and is replaced in place" if not live.spare_accelerator else "")
    reasons = [r for r in reasons if r]
    if unproven or not diagnosis.certain:
        return Risk.HIGH, tuple(reasons)
    return (Risk.MEDIUM if reasons else Risk.LOW), tuple(reasons)


def _undo(live: Live) -> str:
    serving, older = live.latest_ready_revision, live.served_by_older
    state = f"{serving} served before it" if serving and live.ready else "it did not serve before either"
    state = f"it did not come up before either, and {older} serves meanwhile" if older else state
    return f"the template of generation {live.generation} is put back byte by byte, and the traffic as it was; {state}"
