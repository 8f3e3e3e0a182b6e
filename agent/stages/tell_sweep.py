"""People see a load measurement that waits for them, and in the same place how it was answered; telling fails open."""

from contextlib import suppress

from agent.errors import SreError
from agent.ports.notifier import SweepNotifier
from agent.ports.stage_context import StageContext
from agent.stages.decide_sweep import AskedSweep, asked_sweep
from agent.stages.tell import claim, give_back, holder_of


def tell_sweep(context: StageContext, sweep_id: str) -> None:
    """Show a load measurement as the record has it now through every notifier that can.

    One that was answered before anybody was told of it is not shown. A notifier that fails is not tried again.
    """
    for name, notifier in context.notifiers.items():
        if isinstance(notifier, SweepNotifier):
            with suppress(SreError):
                while _show(context, sweep_id, name, notifier):
                    pass  # it may have been answered before the message stood, and whoever answered saw none


def _show(context: StageContext, sweep_id: str, name: str, notifier: SweepNotifier) -> bool:
    """Post it, or say in its place how it was answered, alone; return whether it has to be looked at once more."""
    seen = context.cards.card(sweep_id, name)
    if not _is_due(seen, asked_sweep(context, sweep_id)):
        return False
    holder = holder_of(context)
    before = claim(context, sweep_id, name, holder, seen)
    try:
        asked = asked_sweep(context, sweep_id)
        if not _is_due(before, asked):
            give_back(context, sweep_id, name, holder)
            return True  # somebody may have had to stand back meanwhile
        reference = notifier.tell_sweep(asked.sweep, answered=answer_text(context, asked), reference=before)
    except SreError:
        give_back(context, sweep_id, name, holder)
        raise
    context.cards.keep_card(sweep_id, name, reference)
    return asked.waits


def _is_due(before: str | None, asked: AskedSweep) -> bool:
    """Whether it is to be posted, or its message to be changed; the other two stand there already, or never did."""
    return asked.waits == (before is None)


def answer_text(context: StageContext, asked: AskedSweep) -> str:
    """Return the sentence of who answered and how; empty while an answer still counts."""
    if asked.waits:
        return ""
    by = asked.grant.approver if asked.grant is not None else asked.rejected_by
    known = (a.name for a in context.rules.policy.approvers if by.casefold() in a.identities)
    name = next(known, by)
    return f"Rejected by {name}." if asked.grant is None else f"Approved by {name}; it starts when its command runs."
