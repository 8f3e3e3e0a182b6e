"""Which stage does which step, and the loop that runs what is due and ours."""

import time
from collections.abc import Callable
from contextlib import suppress

from agent.core.incident.incident import Incident
from agent.core.incident.phase import EventKind
from agent.core.incident.step import Step, due_step
from agent.errors import InputRejected, SreError, StateConflict, StoredOtherwise
from agent.ports.stage_context import OWNER_OF, StageContext
from agent.stages.ask import ask, expire, remind, renotify
from agent.stages.call_platform import call_platform
from agent.stages.decision_to_execution import begin_execution
from agent.stages.diagnosis_to_plan import diagnosis_to_plan
from agent.stages.execution_to_verification import execution_to_verification
from agent.stages.explain import explain
from agent.stages.incident_to_diagnosis import incident_to_diagnosis
from agent.stages.outcome_to_plan import close_request, outcome_to_plan, plan_again
from agent.stages.plan_request import plan_request
from agent.stages.shared.commit import save, send_outbox
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.spans import incident_span
from agent.stages.shift_traffic import shift_traffic
from agent.stages.undo import undo
from agent.stages.verification_to_outcome import verification_to_outcome
from agent.stages.watch_operation import watch_operation
from agent.stages.watch_undo import watch_undo
from agent.structured_log import structlog

log = structlog.get_logger(__name__)

Stage = Callable[[StageContext, Incident], StageOutcome]

STAGE_OF: dict[Step, Stage] = {
    Step.DIAGNOSE: incident_to_diagnosis,
    Step.EXPLAIN: explain,
    Step.PLAN: diagnosis_to_plan,
    Step.PLAN_REQUEST: plan_request,
    Step.ASK: ask,
    Step.EXPIRE: expire,
    Step.REMIND: remind,
    Step.RENOTIFY: renotify,
    Step.BEGIN: begin_execution,
    Step.CALL: call_platform,
    Step.WATCH: watch_operation,
    Step.MEASURE: execution_to_verification,
    Step.SHIFT: shift_traffic,
    Step.CONCLUDE: verification_to_outcome,
    Step.UNDO: undo,
    Step.WATCH_UNDO: watch_undo,
    Step.REPLAN: outcome_to_plan,
    Step.PLAN_AGAIN: plan_again,
    Step.CLOSE: close_request,
}

STEPS = 20  # more in one call would be a loop that never rests
RIVALS = 5
_WRITER = "check who writes to the incident database; the agent does nothing more for this incident"


def advance(
    context: StageContext, incident_id: str, *, may_explain: bool = False, unsent: bool = True
) -> tuple[StageOutcome, ...]:
    """Run the stages that are due and ours, one after the other, each in its own transaction.

    What earlier runs committed and did not send is sent first. Where a rival wrote, what it committed is sent too and
    its state is loaded again, so that whoever acknowledges after this leaves nothing unsent.

    Args:
        context: The ports of the function that we are.
        incident_id: Which incident.
        may_explain: Whether this delivery may be held up for a minute by a question to the model: its own deliveries
            and those of the tick may, so that what was just done is told and acknowledged first.
        unsent: Whether an earlier run may have left messages unsent; false where its outbox was just seen to be empty.

    Returns:
        What each run did.

    Raises:
        StateConflict: Rivals wrote first several times in a row; deliver again.
        DependencyFailed: A port did not answer; what was committed stays, deliver again.
        InputRejected: The stored row cannot have been written by us; nothing was done.
    """
    if unsent:
        send_outbox(context, incident_id)
    done: list[StageOutcome] = []
    rivals = 0
    while len(done) < STEPS:
        incident = context.store.load(incident_id)
        step = due_step(incident, context.clock.now())
        if step is None:
            break
        if OWNER_OF[step] is not context.owner:
            done.append(StageOutcome.NOT_OURS)
            break
        if step is Step.EXPLAIN and (done or not may_explain):
            break
        try:
            did = _run(context, incident, step, STAGE_OF[step])
        except StateConflict:
            rivals += 1
            send_outbox(context, incident_id)  # the rival may be dead, or our own first try whose answer was lost
            if rivals >= RIVALS:
                raise
            continue
        done.append(did)
        if did is StageOutcome.WAITING:
            break
    return tuple(done)


def _run(context: StageContext, incident: Incident, step: Step, stage: Stage) -> StageOutcome:
    """Run one stage; write its one event of the log, and its span where it did something."""
    with incident_span(context, stage.__name__, incident, step=step.value) as span:
        did = _measured(context, incident, step, stage)
        span.note({"sre_agent.reason": did.value})
        if did is StageOutcome.WAITING:
            span.drop()
        return did


def _measured(context: StageContext, incident: Incident, step: Step, stage: Stage) -> StageOutcome:
    began = time.perf_counter()
    about = {"incident": incident.id, "service": incident.service, "run": incident.run, "stage": stage.__name__}
    try:
        did = stage(context, incident)
    except StateConflict:
        log.debug("stage.rival", **about, step=step.value)
        raise
    except (AssertionError, StoredOtherwise) as error:
        log.exception("incident.impossible", **about, step=step.value, phase=incident.phase.value)
        why, hint = f"its stored row says {incident.phase} and lacks what every incident there has", _WRITER
        if isinstance(error, StoredOtherwise):
            why, hint = error.cause, error.hint
        _tell_once(context, incident, why)
        raise InputRejected(f"incident {incident.id!r} cannot go on", why=why, hint=hint) from error
    except Exception as error:
        took_s = round(time.perf_counter() - began, 3)
        log.warning("stage.failed", **about, step=step.value, error=type(error).__name__, took_s=took_s)
        raise
    write = log.debug if did is StageOutcome.WAITING else log.info
    write("stage.finished", **about, step=step.value, reason=did.value, took_s=round(time.perf_counter() - began, 3))
    return did


def _tell_once(context: StageContext, incident: Incident, why: str) -> None:
    """Say on the incident that it cannot be gone on with, so that people are told; it stays due, should that mend."""
    if incident.stuck:
        return
    now = context.now_for(incident)
    with suppress(SreError):  # it is tried again, and told then
        stuck = incident.with_(stuck=why)
        save(context, stuck, f"cannot go on: {why}", now=now, wake=False, kind=EventKind.STUCK)
