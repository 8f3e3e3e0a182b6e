"""What a start that came up printed is read back from its log and kept beside the plan's prediction."""

import shlex

from agent.core.change.startup_figures import Observed, compare_figures
from agent.core.change.verification import Check, Verification
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.plan.plan import Plan
from agent.core.service.container_args import served_model
from agent.core.service.serving import ServingConfig
from agent.errors import DependencyFailed, InputRejected, PolicyRefused
from agent.failures.measure import measure
from agent.ports.logs import InstanceLog
from agent.ports.stage_context import StageContext
from agent.stages.incident_to_diagnosis import without_secrets
from agent.stages.shared.commit import save
from agent.stages.shared.outcome import StageOutcome
from agent.stages.shared.spans import incident_span


def needs_log(verification: Verification) -> bool:
    """Whether the start came up and nobody was sent for its log yet."""
    answer = verification.latest(Check.COMPLETION)
    return not verification.log_asked and answer is not None and answer.good is True


def observe(context: StageContext, incident_id: str) -> StageOutcome:
    """Read the start-up log of the revision under verification, once.

    It adds to what is known and decides nothing: a verdict does not wait for it, and an incident that has gone on
    meanwhile is left as it is.

    Raises:
        DependencyFailed: The log or the platform did not answer; deliver again.
        StateConflict: Somebody else wrote first; deliver again.
    """
    incident = context.store.load(incident_id)
    verification, plan = incident.verification, incident.plan
    revision = incident.execution.revision_after if incident.execution else None
    if incident.phase is not Phase.VERIFYING or verification is None or plan is None or revision is None:
        return StageOutcome.WAITING
    if verification.observed is not None:
        return StageOutcome.WAITING
    now = context.now_for(incident)
    with incident_span(context, observe.__name__, incident) as span:
        log = context.logs.instance_log(incident.service, revision=revision, instance=None, until=now)
        found = read_figures(context, incident, plan, revision, log) if log is not None else None
        if found is None:
            span.drop()
            return StageOutcome.WAITING
        save(context, incident.with_(verification=verification.with_(observed=found)), "", now=now, wake=False)
        return StageOutcome.NOTED


def read_figures(
    context: StageContext, incident: Incident, plan: Plan, revision: str, log: InstanceLog
) -> Observed | None:
    """Return the figures of a log beside the plan's; None where it prints none of them."""
    lines = [text for _, text in without_secrets(context, log).lines]
    measured = measure(context.rules.printed, lines, 0).values
    version = measured.get("vllm")
    printed = {n: float(value) for n, value in measured.items() if isinstance(value, int | float) and n != "vllm"}
    if not printed:
        return None
    config = _config(context, incident.service, revision)
    watched = context.rules.services.watched(incident.service)
    return Observed(
        at=context.now_for(incident),
        revision=revision,
        model=watched.model if watched else served_model(config.command, config.args) if config else None,
        accelerator=(config.accelerator if config else None) or (watched.accelerator if watched else None),
        accelerator_count=config.accelerator_count if config and config.accelerator else None,
        vllm=str(version) if version is not None else watched.vllm if watched else None,
        flags=context.rules.redact(shlex.join(config.args)) if config else None,
        figures=compare_figures(printed, plan.fit_after.report),
    )


def _config(context: StageContext, service: str, revision: str) -> ServingConfig | None:
    """What the revision runs, where it is still the newest; somebody's later change tells nothing of it."""
    try:
        live = context.live(service)
    except (DependencyFailed, InputRejected, PolicyRefused):
        return None
    return live.config if live is not None and live.latest_created_revision == revision else None
