"""A signal finds its incident, or opens one; the same signal again changes nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from agent.core.incident.correlation import Meaning, accepts, first_line, is_linked, meaning
from agent.core.incident.incident import KEPT_SIGNALS, CorrelatedSignal, Incident, incident_id
from agent.core.incident.phase import BEFORE_DECISION
from agent.core.incident.requested_ends import asked_by_stop, asked_by_us, stop_scopes
from agent.core.intake.signal import AlertState, End, Signal, Source, alert_key
from agent.core.value import digest
from agent.errors import StateConflict
from agent.failures.finding import Finding
from agent.ports.stage_context import StageContext
from agent.ports.store import change_head, head_key
from agent.ports.tracing import Span
from agent.stages.shared.commit import save, send_outbox
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.spans import incident_span

UNCLAIMED = "unclaimed"  # closings that came before what they close
RIVALS = 5


@dataclass(frozen=True, kw_only=True)
class Opening:
    """How incidents of a run are opened; the live run tells people and may change services."""

    live_replay: bool = False
    notify: bool = True
    started_by: str | None = None


def signal_to_incident(context: StageContext, signal: Signal, opening: Opening | None = None) -> StageOutcome:
    """Store a signal once, in the incident it belongs to.

    Args:
        context: The ports.
        signal: The observation, as intake made it.
        opening: How a new incident of this run is opened.

    Raises:
        StateConflict: Rivals wrote first several times in a row; deliver again.
    """
    signal = _without_secrets(signal, context.rules.redact)
    known = context.store.knows(signal.key)
    if known is not None:
        if known != UNCLAIMED:
            send_outbox(context, known)
        return StageOutcome.DUPLICATE
    finding = context.rules.matcher.classify(signal.text, whole_log=False, platform=signal.platform)
    for _ in range(RIVALS):
        try:
            return _place(context, signal, finding, opening or Opening())
        except StateConflict:
            continue
    raise StateConflict(
        f"signal {signal.key[:12]!r} was not stored",
        why=f"other workers wrote to the incidents of {signal.service!r} {RIVALS} times in a row",
        hint="no action needed: it is delivered again",
    )


def _without_secrets(signal: Signal, redact: Callable[[str], str]) -> Signal:
    """Take the secrets out of all that is kept of it; what its key was made of is kept by its digest only."""
    beside = "\n".join(signal.fields.values())
    fields = signal.fields if redact(beside) == beside else {name: redact(said) for name, said in signal.fields.items()}
    return signal.with_(text=redact(signal.text), fields=fields)


def _place(context: StageContext, signal: Signal, finding: Finding, opening: Opening) -> StageOutcome:
    seen = _seen(context, signal)
    home, before = _home(context, signal, seen)
    signal = _with_asker(context, signal, home or before)
    what = meaning(signal, finding)
    if home is None:
        if what in {Meaning.FAILURE, Meaning.UNEXPLAINED} and not _closed_already(context, signal):
            return _open(context, signal, finding, before, opening=opening, seen=seen)
        if signal.alert_state is not None:
            context.store.accept(signal, UNCLAIMED)
        return _harmless(context, signal)
    if what is Meaning.NOTHING or (what is Meaning.STOP and not _explains(context, home, signal)):
        return _harmless(context, signal)
    if what is Meaning.STOP:
        _keep_stop(context, signal)
    return _join(context, home, signal, finding, what)


def _with_asker(context: StageContext, signal: Signal, newest: Incident | None) -> Signal:
    """Say who asked for an end, where a stop that was told or a change of ours explains it."""
    if signal.end is None or not signal.ends_unasked:
        return signal
    ours = asked_by_us(signal, newest) or asked_by_us(signal, _last_request(context, signal))
    asked = ours or asked_by_stop(
        signal, (stop for scope in stop_scopes(signal) for stop in context.store.signals(scope, KEPT_SIGNALS))
    )
    return signal.with_(end=signal.end.with_(asked_by=asked)) if asked else signal


def _last_request(context: StageContext, signal: Signal) -> Incident | None:
    """Return the request that changed the service last: incidents stand under other keys."""
    found = context.store.head(change_head(signal.run, signal.service))
    return context.store.load(found) if found is not None else None


def _harmless(context: StageContext, signal: Signal) -> StageOutcome:
    """Keep nothing of it but a stop."""
    if signal.stop is not None:
        _keep_stop(context, signal)
    return StageOutcome.HARMLESS


def _keep_stop(context: StageContext, signal: Signal) -> None:
    """Keep a stop for the ends that may follow, under a key of its own: it may stand in an incident as well."""
    context.store.accept(signal.with_(key=digest(["stop", signal.key])), stop_scopes(signal)[0])


def _explains(context: StageContext, incident: Incident, signal: Signal) -> bool:
    """Whether a stop came after the end that it explains."""
    if incident.phase not in BEFORE_DECISION:
        return False
    held = context.store.signals(incident.id)
    return any(s.ends_unasked and asked_by_stop(s, (signal,)) is not None for s in held)


def _seen(context: StageContext, signal: Signal) -> dict[str, str | None]:
    """Return what the signal's revision and its service point at now."""
    keys = dict.fromkeys(head_key(signal.run, signal.service, revision) for revision in (signal.revision, None))
    return {key: context.store.head(key) for key in keys}


def _home(
    context: StageContext, signal: Signal, seen: dict[str, str | None]
) -> tuple[Incident | None, Incident | None]:
    """Return the incident that the signal belongs to, and the one before it; a request that is over is neither."""
    cool_off_s = context.rules.times.cool_off_s
    own = seen[head_key(signal.run, signal.service, signal.revision)]
    if own is not None:
        incident = context.store.load(own)
        if accepts(incident, signal, cool_off_s=cool_off_s):
            return incident, None
        if incident.request is None:
            return None, incident
    latest = seen[head_key(signal.run, signal.service, None)]
    if latest is None:
        return None, None
    incident = context.store.load(latest)
    adopts = incident.revision is None and accepts(incident, signal, cool_off_s=cool_off_s)
    return (incident, None) if adopts else (None, incident)


def _closed_already(context: StageContext, signal: Signal) -> bool:
    if signal.alert_state is not AlertState.OPEN or signal.alert_id is None:
        return False
    started = signal.fields.get("started_at", "")
    closed = alert_key(signal.run, alert_id=signal.alert_id, state=AlertState.CLOSED, started_at=started)
    return context.store.knows(closed) is not None


def _open(
    context: StageContext,
    signal: Signal,
    finding: Finding,
    before: Incident | None,
    *,
    opening: Opening,
    seen: dict[str, str | None],
) -> StageOutcome:
    now = context.clock.now()
    same = before is not None and before.revision == signal.revision
    episode = before.episode + 1 if before is not None and same else 1
    follows = is_linked(before, signal.at, cool_off_s=context.rules.times.cool_off_s)
    incident = Incident(
        id=incident_id(signal.run, signal.service, signal.revision, episode),
        run=signal.run,
        service=signal.service,
        platform=signal.platform,
        revision=signal.revision,
        episode=episode,
        opened_at=now,
        phase_at=now,
        quiet_since=now,
        due_at=now,
        signal_count=1,
        received=1,
        correlated=(_entry(signal, finding),),
        alerts_open=_alerts((), signal),
        linked_to=before.id if before is not None and follows else None,
        remedies=before.remedies if before is not None and follows else (),
        live_replay=opening.live_replay,
        notify=opening.notify,
        started_by=opening.started_by,
    )
    follows_which = f" (follows {incident.linked_to})" if incident.linked_to else ""
    with _span(context, incident, StageOutcome.OPENED):
        save(
            context,
            incident,
            f"opened by: {first_line(signal.text)}{follows_which}",
            now=now,
            tell=False,
            heads=_heads(signal, incident),
            seen=seen,
            signals=(signal,),
        )
    return StageOutcome.OPENED


def _span(context: StageContext, incident: Incident, did: StageOutcome) -> AbstractContextManager[Span]:
    return incident_span(context, signal_to_incident.__name__, incident, reason=did.value)


def _heads(signal: Signal, incident: Incident) -> tuple[str, ...]:
    service = head_key(signal.run, signal.service, None)
    return tuple(dict.fromkeys((service, head_key(signal.run, signal.service, incident.revision))))


def _join(context: StageContext, incident: Incident, signal: Signal, finding: Finding, what: Meaning) -> StageOutcome:
    entry = _entry(signal, finding)
    if incident.request is not None:
        entry = entry.with_(reason="told by the revision that this change made")
    same = any(_same(entry, signal, held) for held in incident.correlated)
    full = what is Meaning.UNEXPLAINED and len(incident.correlated) >= KEPT_SIGNALS
    counted = (same or full) and signal.alert_state is None and what not in {Meaning.HEALTH, Meaning.STOP}
    if incident.ended or counted:
        return _count(context, incident, signal)
    now = max(context.clock.now(), incident.quiet_since)
    adopted = incident.revision is None and signal.revision is not None
    kept = incident.correlated if same else (*incident.correlated, entry)[:KEPT_SIGNALS]
    changed = incident.with_(
        revision=signal.revision if adopted else incident.revision,
        signal_count=incident.signal_count + 1,
        received=incident.received + 1,
        correlated=kept,
        alerts_open=_alerts(incident.alerts_open, signal),
        quiet_since=incident.quiet_since if what is Meaning.HEALTH else now,
        healthy_at=max(signal.at, incident.healthy_at or signal.at) if what is Meaning.HEALTH else incident.healthy_at,
        due_at=now,
    )
    heads = (head_key(signal.run, signal.service, signal.revision),) if adopted else ()
    said = f"signal: {first_line(signal.text)}"
    with _span(context, changed, StageOutcome.JOINED):
        save(context, changed, said, now=now, tell=False, heads=heads, signals=(signal,))
    return StageOutcome.JOINED


def _count(context: StageContext, incident: Incident, signal: Signal) -> StageOutcome:
    """One more of the same costs one row; the incident is written at powers of two only."""
    accepted = context.store.accept(signal, incident.id)
    count = accepted.count
    grown = count is not None and count > incident.signal_count and count & (count - 1) == 0
    if accepted.new and grown and not incident.ended:
        now = max(context.clock.now(), incident.quiet_since)
        save(context, incident.with_(signal_count=count, quiet_since=now), "", now=now, tell=False, wake=False)
    return StageOutcome.COUNTED if accepted.new else StageOutcome.DUPLICATE


def _entry(signal: Signal, finding: Finding) -> CorrelatedSignal:
    if signal.end is not None and signal.ends_unasked and (finding.benign or finding.signature is None):
        return CorrelatedSignal(
            signal=signal.key[:12],
            at=signal.at,
            class_="unknown",
            revision=signal.revision,
            line=_end_line(signal, signal.end),
            reason="not weighed yet",
        )
    line = finding.evidence[0].text if finding.evidence else first_line(signal.text)
    return CorrelatedSignal(
        signal=signal.key[:12],
        at=signal.at,
        class_=finding.class_,
        signature=finding.signature,
        revision=signal.revision,
        line=line,
        reason="not weighed yet",
    )


def _end_line(signal: Signal, end: End) -> str:
    return first_line(signal.text) if signal.source is not Source.APP_LOG else f"it ended {end.sentence}"


def _same(entry: CorrelatedSignal, signal: Signal, held: CorrelatedSignal) -> bool:
    """Whether a line was received before: by its signature, or word for word; classes are only as good as the weighing.

    An end is the same as another by its words alone: its code may say more than the line with the same signature.
    """
    known = entry.signature is not None and entry.signature == held.signature and not signal.ends_unasked
    return entry.revision == held.revision and (known or held.line in {entry.line, first_line(signal.text)})


def _alerts(held: tuple[str, ...], signal: Signal) -> tuple[str, ...]:
    if signal.alert_id is None:
        return held
    if signal.alert_state is AlertState.CLOSED:
        return tuple(a for a in held if a != signal.alert_id)
    return tuple(sorted({*held, signal.alert_id}))
