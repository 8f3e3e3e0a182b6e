"""What a person may do about an incident, in which phase, and what is kept of it."""

from enum import StrEnum
from typing import Any, Final, NamedTuple

from agent.core.change.execution import Change, EffectKind, EffectState, present_change
from agent.core.incident.incident import Incident
from agent.core.incident.phase import ENDS, Phase
from agent.core.plan.action import LifecycleOperation
from agent.core.plan.lifecycle import lifecycle_of
from agent.core.value import Value

TEXT_CHARS: Final = 1000
NAME_CHARS: Final = 80
MOST_COMMENTS: Final = 200
NOBODY: Final = "nobody"
"""Whom an incident is assigned to that is taken from somebody; whoever says ``me`` means themselves."""
MYSELF: Final = "me"


class Command(StrEnum):
    """What a person does about an incident, beside answering its plan."""

    ACKNOWLEDGE = "acknowledge"
    ASSIGN = "assign"
    COMMENT = "comment"
    CLOSE = "close"
    DONE = "done"  # a person's task is done
    REPLAN = "replan"  # another plan is asked for
    ROLL_BACK = "roll_back"  # a decision: the change is put back while it is still verified


class DesiredCommand(Value):
    """What somebody wants to do about an incident; nothing says yet who, and nothing of it was checked.

    Attributes:
        text: The comment, the reason, or to whom it is assigned; untrusted, secrets are taken out before it is kept.
        plan_digest: Of the plan that was shown to who rolls back or did a task, or its beginning; None where nothing
            but the incident is named.
    """

    incident: str
    command: Command
    text: str = ""
    plan_digest: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """What is sent to `decide` to have it carried out."""
        return self.model_dump(mode="json", include=set(DesiredCommand.model_fields))


OF_A_PLAN: Final = frozenset({Command.DONE, Command.ROLL_BACK})
"""Decisions: they name the plan that was shown, and use a token up."""


class Impossible(NamedTuple):
    """Why a command cannot be carried out now, and what can be done instead."""

    why: str
    hint: str


def impossible(incident: Incident, command: Command) -> Impossible | None:
    """Return why a command does not go with the incident as it is, or None where it does."""
    match command:
        case Command.ACKNOWLEDGE | Command.ASSIGN:
            return _is_over(incident)
        case Command.COMMENT:
            return _too_many(incident)
        case Command.CLOSE:
            return _not_closed(incident)
        case Command.REPLAN:
            return _not_planned(incident)
        case Command.DONE:
            return _not_done(incident)
        case Command.ROLL_BACK:
            return _not_rolled_back(incident)


def possible(incident: Incident) -> tuple[Command, ...]:
    """Return what can be done about the incident as it is."""
    return tuple(command for command in Command if impossible(incident, command) is None)


def _look(incident: Incident) -> str:
    return f"see where it stands: sre-agent incidents show {incident.id}"


def _is_over(incident: Incident) -> Impossible | None:
    if incident.phase in ENDS and incident.phase is not Phase.ESCALATED:
        hint = f"add a comment: sre-agent incidents comment {incident.id} TEXT"
        return Impossible(f"it is over: {incident.phase}", hint)
    return None


def _too_many(incident: Incident) -> Impossible | None:
    if incident.comments < MOST_COMMENTS:
        return None
    return Impossible(f"it has {MOST_COMMENTS} comments, and no more are kept", "write the rest into your own report")


def _not_closed(incident: Incident) -> Impossible | None:
    if incident.phase is Phase.ESCALATED:
        return None
    if incident.phase in ENDS:
        return Impossible(f"it is over: {incident.phase}", _look(incident))
    plan = incident.plan
    asked = incident.phase is Phase.ASKED and plan is not None
    hint = f"reject its plan: sre-agent reject {plan.id} --why TEXT" if asked and plan is not None else _look(incident)
    return Impossible(f"it is {incident.phase}, and only what is escalated is closed by a person", hint)


def _not_planned(incident: Incident) -> Impossible | None:
    if incident.request is not None:
        return Impossible("it is a change request, and a request has one plan", "ask for another: sre-agent change")
    if incident.phase is not Phase.ESCALATED:
        plan = incident.plan
        asked = incident.phase is Phase.ASKED and plan is not None
        hint = f"reject it for the next: sre-agent reject {plan.id} --why TEXT" if asked and plan else _look(incident)
        return Impossible(f"it is {incident.phase}, and another plan is asked for once it is escalated", hint)
    if incident.replan is not None:
        return Impossible(f"{incident.replan.shown} asked for another plan, and it is being made", _look(incident))
    return None


def _not_done(incident: Incident) -> Impossible | None:
    plan = incident.plan
    if plan is None or not plan.by_person:
        return Impossible("its plan is no task for a person", _look(incident))
    if incident.task_done is not None:
        return Impossible(f"{incident.task_done.shown} said so already", _look(incident))
    if incident.phase not in {Phase.ASKED, Phase.APPROVED, Phase.VERIFYING, Phase.ESCALATED}:
        return Impossible(f"it is {incident.phase}", _look(incident))
    return None


def _not_rolled_back(incident: Incident) -> Impossible | None:
    plan, change = incident.plan, present_change(incident.execution)
    if incident.phase is not Phase.VERIFYING or plan is None:
        hints = {
            Phase.ASKED: "nothing was changed; reject its plan: sre-agent reject PLAN --why TEXT",
            Phase.APPLYING: "wait until the rollout has ended; to stop what comes after: sre-agent stop --why TEXT",
            Phase.RESOLVED: f"ask for the change back: sre-agent change {incident.service}",
        }
        why = f"it is {incident.phase}, and a change is rolled back while it is being verified"
        return Impossible(why, hints.get(incident.phase, _look(incident)))
    if plan.by_person or change is Change.NONE:
        return Impossible("the agent changed nothing", _look(incident))
    if lifecycle_of(plan.actions) is LifecycleOperation.DELETE:
        return Impossible("a deletion cannot be undone", "create it again: sre-agent change SERVICE --create")
    shift = incident.effect(EffectKind.SHIFT)
    if shift is not None and shift.state in {EffectState.INTENDED, EffectState.STARTED}:
        return Impossible("the traffic is being moved at this moment", "say it again in a minute")
    return None
