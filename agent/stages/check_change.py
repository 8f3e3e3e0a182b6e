"""Whether a change could begin now: what stops it, how much of the limits is used, its budget and its proof."""

from datetime import datetime

from agent.core.decision.decision import Channel, Person
from agent.core.decision.limit_use import longest_window
from agent.core.decision.policy import Policy
from agent.core.plan.action import Action
from agent.core.value import Value
from agent.errors import InputRejected, PolicyRefused, SreError
from agent.ports.control import Limits
from agent.ports.stage_context import StageContext
from agent.stages.plan_request import OverBudget
from agent.stages.preview_change import preview_change
from agent.stages.request_change import ChangeAsked
from agent.stages.shared.approved_plan import described
from agent.stages.shared.budget import over_budget
from agent.stages.shared.kill_switch import changes_stopped


class ChangeCheck(Value):
    """What is true of a change now, beside what the policy says.

    Attributes:
        policy: In force there; None where only who asks has one.
        stopped: Why no change may begin at all, or nothing.
        changes: Those that began recently, as far back as the limits count.
        over_budget: Why it would break a budget, or nothing; None where prices cannot be had from here.
        unproved: Why it cannot be made or nothing proves that it fits, or nothing; None where that was not computed.
    """

    policy: Policy | None = None
    stopped: str = ""
    changes: Limits = Limits()
    over_budget: str | None = None
    unproved: str | None = None


def check_change(
    context: StageContext, service: str, actions: tuple[Action, ...], *, asker: str | None, at: datetime
) -> ChangeCheck:
    """Look at everything that would be looked at before a change; nothing is stored.

    Args:
        context: Of an owner that has the control database; what it cannot describe or compute stays unknown.
        service: What would be changed.
        actions: What would be done.
        asker: Who asks for it, to compute its proof; None of a plan, which carries one.
        at: When it would begin.

    Raises:
        DependencyFailed: The control database did not answer.
    """
    policy = context.rules.policy
    return ChangeCheck(
        policy=policy,
        stopped=changes_stopped(context),
        changes=context.control_store().limits(service, at - longest_window(policy, service)),
        over_budget=_over_budget(context, service, actions),
        unproved=_unproved(context, service, actions, asker) if asker is not None else None,
    )


def _over_budget(context: StageContext, service: str, actions: tuple[Action, ...]) -> str | None:
    try:
        live = described(context, service, actions)
    except SreError:
        return None
    return over_budget(context, service, live.config)(actions) if live is not None else None


def _unproved(context: StageContext, service: str, actions: tuple[Action, ...], asker: str) -> str | None:
    """Say what planning would refuse it for; nothing where it would make a plan."""
    if context.rules.services.watched(service) is None:
        return None
    asked = ChangeAsked(
        service=service, actions=actions, why="-", by=Person(who=asker, channel=Channel.COMMAND_LINE, verified=False)
    )
    try:
        return preview_change(context, asked).plan.unproved
    except OverBudget:
        return ""  # its own row says so
    except (InputRejected, PolicyRefused) as refused:
        return refused.why
    except SreError:
        return None
