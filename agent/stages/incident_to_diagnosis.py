"""An incident gets its diagnosis: the rules over every signal and the instance's own log, in milliseconds."""

from datetime import datetime

from agent.core.diagnosis.diagnosing import LogText, diagnose
from agent.core.diagnosis.diagnosis import Diagnosis
from agent.core.diagnosis.model_request import start_request
from agent.core.diagnosis.rules_and_model import combine
from agent.core.incident.correlation import Meaning, correlate, meaning
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.incident.requested_ends import asked_by_stop
from agent.core.intake.signal import AlertState, Signal, in_order
from agent.core.plan.printed_memory import Printed, printed
from agent.core.service.logged_config import args_from_log
from agent.core.service.serving import ServingConfig
from agent.errors import DependencyFailed, InputRejected
from agent.ports.logs import InstanceLog
from agent.ports.stage_context import StageContext
from agent.presentation.drift_text import changes_before
from agent.stages.diagnosis_to_plan import next_plan
from agent.stages.shared.change_authors import with_audited_authors
from agent.stages.shared.commit import save
from agent.stages.shared.outcome import StageOutcome


def incident_to_diagnosis(context: StageContext, incident: Incident) -> StageOutcome:
    """Diagnose from all signals; the first diagnosis is published at once.

    A plan that nobody has answered yet is withdrawn where the cause is another one, or another plan would follow.
    """
    now = context.now_for(incident)
    signals = context.store.signals(incident.id)
    weighed = rediagnose(context, incident, signals, now)
    why = _asked(context, signals) or _recovered(weighed, signals)
    if why:
        save(context, weighed.move(Phase.SELF_RECOVERED, now=now, due_at=None, ended_why=why), why, now=now)
        return StageOutcome.MOVED
    return _next(context, incident, weighed, now)


def rediagnose(context: StageContext, incident: Incident, signals: tuple[Signal, ...], now: datetime) -> Incident:
    """Return the incident with a diagnosis from all signals so far, the model's analysis included."""
    log = read_log(context, incident, signals)
    text = without_secrets(context, log) if log is not None and log.lines else None
    rules = _named(context, incident, _diagnosis(context, incident, signals, text, now))
    model_request = incident.model_request
    use = context.rules.model_use
    if context.model is not None and use is not None:
        plan_from = now if rules.certain else context.rules.times.settles_at(incident)
        model_request = start_request(model_request, rules, when=use.when, wake=use.wake, plan_from=plan_from, now=now)
    diagnosis = combine(rules, model_request, use.fixes if use is not None else {})
    diagnosis = diagnosis.with_(changes=_changes(context, incident))
    return incident.with_(
        diagnosis=diagnosis,
        model_request=model_request,
        diagnosed_count=incident.received,
        correlated=correlate(signals, context.rules.matcher, cause=diagnosis.class_),
        alerts_open=_open_alerts(signals),
        logged_config=_logged_args(context, log, signals) or incident.logged_config,
        printed=_printed(text, log.revision if log is not None else None) or incident.printed,
    )


def _changes(context: StageContext, incident: Incident) -> tuple[str, ...]:
    """What somebody changed of the service shortly before the trouble; it explains nothing by itself."""
    if context.service_records is None:
        return ()
    try:
        record = context.service_records.service_record(incident.service)
    except DependencyFailed:
        return incident.diagnosis.changes if incident.diagnosis is not None else ()
    at, known = incident.opened_at, incident.diagnosis.changes if incident.diagnosis is not None else ()
    seen = changes_before(record, at)
    if len(known) == len(seen) and context.audit_log is not None:
        return known  # the audit log was asked about them; its calls are counted
    return changes_before(with_audited_authors(record, context.audit_log, at), at)


def _next(context: StageContext, incident: Incident, weighed: Incident, now: datetime) -> StageOutcome:
    before, after = incident.diagnosis, weighed.require_diagnosis()
    if incident.phase is Phase.OPEN or before is None:
        due = context.rules.times.settles_at(weighed)
        save(context, weighed.move(Phase.DIAGNOSED, now=now, due_at=due), after.sentence, now=now)
        return StageOutcome.MOVED
    why = "" if incident.phase is Phase.DIAGNOSED else _withdrawn(context, incident, weighed, now)
    if why:
        withdraw(context, weighed, why, now)
        return StageOutcome.MOVED
    rests = incident.phase is Phase.ASKED and weighed.plan is not None
    noted = weighed.with_(due_at=weighed.answer_due_at) if rests else weighed
    says = "" if after.sentence == before.sentence else after.sentence
    save(context, noted, says, now=now, tell=bool(says) or after.says != before.says)
    return StageOutcome.NOTED


def _withdrawn(context: StageContext, incident: Incident, weighed: Incident, now: datetime) -> str:
    """Say why the plan does not hold any more, or nothing; more evidence for the same plan is no reason."""
    before, after = incident.require_diagnosis(), weighed.require_diagnosis()
    if before.says == after.says:
        return ""
    if not before.same_cause(after):
        return f"new cause: {after.sentence}"
    plan = next_plan(context, weighed, now)
    same = plan is not None and incident.plan is not None and incident.plan.offer == plan.offer
    return "" if same else "it no longer follows from what is known"


def withdraw(context: StageContext, weighed: Incident, why: str, now: datetime) -> None:
    """Take back a plan that nobody has answered yet."""
    asked = weighed if weighed.phase is Phase.ASKED else weighed.move(Phase.ASKED, now=now)
    withdrawn = asked.move(Phase.SUPERSEDED, now=now, due_at=now)
    save(context, withdrawn, f"plan withdrawn, {why}", now=now)


def read_log(context: StageContext, incident: Incident, signals: tuple[Signal, ...]) -> InstanceLog | None:
    """Read the log of the instance that failed first; without it the diagnosis stays provisional."""
    ordered = in_order(signals)
    speaker = next((s for s in ordered if s.instance), next((s for s in ordered if s.revision), None))
    if speaker is None:
        return None
    try:
        return context.logs.instance_log(
            incident.service, revision=speaker.revision, instance=speaker.instance, until=ordered[-1].at
        )
    except (DependencyFailed, InputRejected):
        return None


def _logged_args(context: StageContext, log: InstanceLog | None, signals: tuple[Signal, ...]) -> ServingConfig | None:
    """What the server says of its own arguments, in its log or in a signal."""
    said = [line.text for line in log.lines] if log is not None else []
    received = [line for signal in signals for line in signal.text.splitlines()]
    lines = tuple(line for line in (*said, *received) if "non-default args" in line)
    return args_from_log(tuple(context.rules.redact(line) for line in lines[-5:]))


def _printed(text: LogText | None, revision: str | None) -> Printed | None:
    """What the engine printed about its memory in the instance's own log; signals may be of several instances."""
    if text is None:
        return None
    return printed(tuple(line for _, line in text.lines), revision=revision, ref=text.ref)


def _diagnosis(
    context: StageContext, incident: Incident, signals: tuple[Signal, ...], text: LogText | None, now: datetime
) -> Diagnosis:
    return diagnose(
        signals,
        text,
        platform=incident.platform,
        matcher=context.rules.matcher,
        titles=dict(context.rules.titles),
        now=now,
    )


def without_secrets(context: StageContext, log: InstanceLog) -> LogText:
    """Take secrets out of the log as a whole: one may be split over lines."""
    clean = context.rules.redact("\n".join(line.text.replace("\n", " ") for line in log.lines)).split("\n")
    if len(clean) != len(log.lines):  # a secret of several lines became one word: its lines share the first one's time
        clean = (clean + [""] * len(log.lines))[: len(log.lines)]
    lines = tuple(zip((line.at for line in log.lines), clean, strict=True))
    return LogText(
        lines=lines,
        complete=log.complete,
        instance=log.instance,
        cut_after=log.cut_after,
        cut_lines=log.cut_lines,
        numbers=tuple(line.number or 0 for line in log.lines) if any(n.number is not None for n in log.lines) else (),
    )


def _named(context: StageContext, incident: Incident, diagnosis: Diagnosis) -> Diagnosis:
    """Add which tensor a failed allocation was, where its size tells."""
    gib = diagnosis.fields.get("requested_gib")
    if not isinstance(gib, int | float) or not diagnosis.class_.startswith(("gpu_oom", "tpu_hbm")):
        return diagnosis
    name = context.rules.fits.allocation(incident.service, None, float(gib))
    return diagnosis.with_(root_cause=f"{diagnosis.root_cause} {name}") if name else diagnosis


def _open_alerts(signals: tuple[Signal, ...]) -> tuple[str, ...]:
    closed = {s.alert_id for s in signals if s.alert_state is AlertState.CLOSED}
    return tuple(sorted({s.alert_id for s in signals if s.alert_id and s.alert_id not in closed}))


def _asked(context: StageContext, signals: tuple[Signal, ...]) -> str:
    """Say that a stop, told of after the end, explains every end, and that nothing else is wrong; or nothing."""
    ends = [s for s in signals if s.ends_unasked]
    asked = [by for s in ends if (by := asked_by_stop(s, signals)) is not None]
    if not ends or len(asked) < len(ends) or any(_troubles(context, s) for s in signals if s.end is None):
        return ""
    return f"the end was asked for ({asked[0].replace('_', ' ')}): nothing is wrong"


def _troubles(context: StageContext, signal: Signal) -> bool:
    finding = context.rules.matcher.classify(signal.text, whole_log=False, platform=signal.platform)
    return meaning(signal, finding) in {Meaning.FAILURE, Meaning.UNEXPLAINED}


def _recovered(incident: Incident, signals: tuple[Signal, ...]) -> str:
    """Say why the trouble is over by itself, or nothing.

    A closed alert ends what an alert opened. A rollout that failed in the log stays in trouble though a
    metric calmed down: its bad template is still in the service. A server that ended unasked stays in trouble too.
    """
    if any(s.ends_unasked for s in signals):
        return ""
    alerts = [s for s in signals if s.alert_state is not None]
    if not alerts or incident.alerts_open or in_order(signals)[0].alert_state is None:
        return ""
    closed_at = max(s.at for s in alerts)
    if any(s.at > closed_at for s in signals if s.alert_state is None):
        return ""
    return "every alert of this incident closed before anything was decided; the plan is withdrawn"
