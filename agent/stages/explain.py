"""Adds the model's analysis to a diagnosis that was published already; nothing waits for it."""

from datetime import datetime

from agent.core.diagnosis.diagnosing import story
from agent.core.diagnosis.diagnosis import ModelExplanation
from agent.core.diagnosis.evidence_pack import Line, ModelInput
from agent.core.diagnosis.model_answer import FitOf
from agent.core.diagnosis.model_request import Explanation, ModelRequest, Spend, round_cap
from agent.core.diagnosis.rules_and_model import add_explanation, combine
from agent.core.incident.incident import Incident
from agent.core.incident.phase import BEFORE_DECISION, Phase
from agent.core.intake.signal import in_order
from agent.core.service.container_args import with_flag
from agent.core.service.serving import Live
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, StateConflict
from agent.ports.stage_context import StageContext
from agent.stages.conversation import Conversation, Lookups, ModelReply, Subject
from agent.stages.incident_to_diagnosis import read_log, withdraw, without_secrets
from agent.stages.shared.commit import save
from agent.stages.shared.outcome import StageOutcome

RIVALS = 8
EARLIER_LINES = 200


def explain(context: StageContext, incident: Incident) -> StageOutcome:
    """Ask the model about a diagnosis of the rules.

    The round is paid for in advance and settled afterwards, so that no crash and no second worker asks for more than an
    incident's caps allow.

    Raises:
        StateConflict: Somebody else began at the same moment.
    """
    now = context.now_for(incident)
    model_request = incident.require_model_request()
    use = context.rules.model_use
    reserved = model_request.reserved(now) if context.model is not None and use is not None else None
    if reserved is None or context.model is None or use is None:
        why = "no model is configured" if context.model is None else model_request.why or "its cap is reached"
        _save_quietly(context, incident, model_request.give_up(why), now)
        return StageOutcome.NOTED
    cap = round_cap(model_request)
    _save_quietly(context, incident, reserved, now)
    talk = Conversation(context.model, use, matcher=context.rules.matcher, redact=context.rules.redact)
    reply = talk.about(_subject(context, incident, model_request, cap))
    return _settled(context, incident.id, model_request.about, cap, reply)


def _save_quietly(context: StageContext, incident: Incident, model_request: ModelRequest, now: datetime) -> None:
    save(context, _with(incident, model_request), "", now=now, tell=False, wake=False)


def _with(incident: Incident, model_request: ModelRequest) -> Incident:
    if incident.phase is not Phase.ASKED or incident.plan is None:
        return incident.with_(model_request=model_request)
    asked = incident.with_(model_request=model_request)
    return asked.with_(due_at=asked.answer_due_at)


def _settled(
    context: StageContext, incident_id: str, about: str, reservation: Spend, reply: ModelReply
) -> StageOutcome:
    """Write the reply into the incident as it is by now; rivals may have written meanwhile."""
    for _ in range(RIVALS):
        incident = context.store.load(incident_id)
        held = incident.model_request
        if held is None or incident.ended:
            return StageOutcome.NOTED
        now = context.now_for(incident)
        paid = held.settled(held.spent.minus(reservation).plus(reply.spent))
        try:
            if held.about != about or held.state is not Explanation.WANTED:
                _save_quietly(context, incident, paid, now)
                return StageOutcome.NOTED
            return _written(context, incident, paid, reply, now)
        except StateConflict:
            continue
    return StageOutcome.WAITING  # the reservation stays paid, and the tick asks again when its lease is over


def _written(
    context: StageContext, incident: Incident, paid: ModelRequest, reply: ModelReply, now: datetime
) -> StageOutcome:
    if reply.word is None:
        tried = paid.again(now, reply.why) if reply.again else paid.give_up(reply.why)
        over = tried.state is Explanation.DROPPED
        what = f"the model added nothing: {tried.why[:300]}" if over else ""
        save(context, _with(incident, tried), what, now=now, tell=False, wake=False)
        return StageOutcome.NOTED if over else StageOutcome.WAITING
    said = paid.answered(reply.word, reply.lines)
    known = incident.require_diagnosis()
    use = context.rules.model_use
    if incident.phase not in BEFORE_DECISION:
        late = add_explanation(known, reply.word)
        save(
            context,
            incident.with_(model_request=said, diagnosis=late),
            _line(reply.word, reply.spent),
            now=now,
            wake=False,
        )
        return StageOutcome.NOTED
    diagnosis = combine(known, said, use.fixes if use is not None else {})
    explained = _with(incident, said).with_(diagnosis=diagnosis)
    if diagnosis.says == known.says or incident.phase is Phase.DIAGNOSED:
        save(context, explained, _line(reply.word, reply.spent), now=now)
        return StageOutcome.NOTED
    withdraw(context, explained, f"new cause: {diagnosis.class_}, by the model's word", now)
    return StageOutcome.MOVED


def _line(word: ModelExplanation, spent: Spend) -> str:
    return f"the model ({word.model}) says {word.class_}, in {spent.seconds:.1f} s"


def _subject(context: StageContext, incident: Incident, model_request: ModelRequest, cap: Spend) -> Subject:
    signals = in_order(context.store.signals(incident.id))
    log = read_log(context, incident, signals)
    lines = story(signals, without_secrets(context, log) if log is not None and log.lines else None)
    live = _live(context, incident.service)
    case = ModelInput(
        rules=incident.require_diagnosis(),
        story=tuple(Line(ref=t.ref, text=t.line) for t in lines),
        facts=_facts(context, incident, live),
    )
    return Subject(
        case=case,
        platform=incident.platform,
        patient=incident.service,
        may_wake=model_request.may_wake,
        cap=cap,
        reach=Lookups(fit=lambda asked: _fit(context, live, asked), earlier=lambda: _earlier(context, incident, live)),
    )


def _live(context: StageContext, service: str) -> Live | None:
    try:
        return context.live(service)
    except (DependencyFailed, InputRejected, PolicyRefused):
        return None


def _facts(context: StageContext, incident: Incident, live: Live | None) -> tuple[tuple[str, str], ...]:
    facts = []
    if live is not None:
        words = " ".join([*live.config.command, *live.config.args])
        card = f"{live.config.accelerator_count} x {live.config.accelerator}" if live.config.accelerator else "no card"
        facts.append(("configuration now", f"{card}, container memory {live.config.memory_mib} MiB: {words}"))
        facts.append(("fit of it", context.rules.fits.assess(incident.service, live.config).sentence))
        serving = live.latest_ready_revision or "none"
        facts.append(("revisions", f"in trouble {incident.revision}, last that served {serving}"))
        facts.append(("platform says", live.message))
    numbers = ", ".join(f"{name} {value}" for name, value in incident.require_diagnosis().fields.items())
    facts.append(("numbers in the log", numbers))
    tried = "; ".join(f"{r.cause}: {r.ended}" for r in incident.remedies[-4:])
    facts.append(("tried before", tried))
    return tuple((name, context.rules.redact(text)) for name, text in facts if text)


def _fit(context: StageContext, live: Live | None, asked: FitOf) -> str:
    if live is None:
        return ""
    args = live.config.args
    if asked.max_model_len is not None:
        args = with_flag(args, "max-model-len", str(asked.max_model_len))
    if asked.gpu_memory_utilization is not None:
        args = with_flag(args, "gpu-memory-utilization", f"{asked.gpu_memory_utilization:.2f}")
    return context.rules.fits.assess(live.service, live.config.with_(args=args)).sentence


def _earlier(context: StageContext, incident: Incident, live: Live | None) -> tuple[str, ...]:
    """Read the log of the revision that served before, redacted."""
    revision = live.latest_ready_revision if live is not None else None
    if revision is None or revision == incident.revision:
        return ()
    try:
        log = context.logs.instance_log(
            incident.service, revision=revision, instance=None, until=context.clock.now(), limit=EARLIER_LINES
        )
    except (DependencyFailed, InputRejected):
        return ()
    return tuple(line for _, line in without_secrets(context, log).lines) if log is not None and log.lines else ()
