"""People see a load measurement that waits for them, and in the same place how it was answered; telling fails open."""

from contextlib import suppress

from agent.errors import SreError
from agent.ports.notifier import SweepNotifier
from agent.ports.stage_context import StageContext
from agent.stages.decide_sweep import AskedSweep, asked_sweep


def tell_sweep(context: StageContext, sweep_id: str) -> None:
    """Show a load measurement as the record has it now through every notifier that can.

    One that was answered before anybody was told of it is not shown. A notifier that fails is not tried again.
    """
    for name, notifier in context.notifiers.items():
        if not isinstance(notifier, SweepNotifier):
            continue
        with suppress(SreError):
            before = context.cards.card(sweep_id, name)
            asked = asked_sweep(context, sweep_id)
            if asked.waits != (before is None):
                continue  # it stands there already, or never did
            reference = notifier.tell_sweep(asked.sweep, answered=answer_text(context, asked), reference=before)
            context.cards.keep_card(sweep_id, name, reference)


def answer_text(context: StageContext, asked: AskedSweep) -> str:
    """Return the sentence of who answered and how; empty while an answer still counts."""
    if asked.waits:
        return ""
    by = asked.grant.approver if asked.grant is not None else asked.rejected_by
    known = (a.name for a in context.rules.policy.approvers if by.casefold() in a.identities)
    name = next(known, by)
    return f"Rejected by {name}." if asked.grant is None else f"Approved by {name}; it starts when its command runs."
