"""Sweeps that wait for a person: asked for on the record, and answered there once, through whichever channel."""

from collections.abc import Callable
from typing import Final

from pydantic import AwareDatetime, ValidationError

from agent.core.decision.audit import AuditRow
from agent.core.decision.decision import Choice, Person
from agent.core.sweep.grant import SweepGrant
from agent.core.sweep.sweep import Sweep
from agent.core.value import Value
from agent.errors import NotFound, PolicyRefused
from agent.ports.stage_context import StageContext
from agent.stages.grant_sweep import (
    APPROVED,
    ASKED,
    REJECTED,
    GivenAnswer,
    answer_once,
    grant_sweep,
    may_not_answer,
    sweep_rows,
)

WHY_CHARS: Final = 1000
MOST_ASKED: Final = 50


class AskedSweep(Value):
    """A sweep that was asked for, and what became of it.

    Attributes:
        given: Who approved it so far, where several people must.
        needed: How many different people must.
        grant: Its approval; None while nobody approved it, or not enough people.
        rejected_by: Who rejected it; empty where nobody did.
        why: The reason of whoever rejected it.
    """

    sweep: Sweep
    asked_at: AwareDatetime
    given: tuple[str, ...] = ()
    needed: int = 1
    grant: SweepGrant | None = None
    rejected_by: str = ""
    why: str = ""

    @property
    def waits(self) -> bool:
        """Whether an answer still counts."""
        return self.grant is None and not self.rejected_by


class SweepAnswer(Value):
    """One person's answer to one sweep.

    Attributes:
        sweep: Its id, which stands for every byte of the request.
        by: Whose it is.
        why: Of a rejection; untrusted text.
    """

    sweep: str
    answer: Choice
    by: Person
    why: str = ""


def ask_sweep(context: StageContext, sweep: Sweep) -> bool:
    """Put a sweep on record for whoever may approve it; return whether it is new there.

    Raises:
        PolicyRefused: Too many wait already.
        DependencyFailed: It could not be recorded.
    """
    known = asked_sweeps(context)
    if any(each.sweep.request.id == sweep.request.id for each in known):
        return False
    if sum(each.waits for each in known) >= MOST_ASKED:
        raise PolicyRefused(
            f"sweep {sweep.request.id!r} was not asked for",
            why=f"{MOST_ASKED} sweeps wait for an answer",
            hint="answer them first: the page /sweeps of the console lists them",
        )
    request = sweep.request
    context.control_store().append(
        at=context.clock.now(),
        kind=ASKED,
        incident=request.id,
        who=request.asker,
        body=sweep.model_dump_json(),
        once=True,
    )
    return True


def asked_sweeps(context: StageContext) -> tuple[AskedSweep, ...]:
    """Return what was asked for recently, the newest first; what is older than an approval is valid for is left out.

    Raises:
        DependencyFailed: The record cannot be read.
    """
    found: dict[str, AskedSweep] = {}
    for row in reversed(tuple(sweep_rows(context))):
        if row.kind == ASKED:
            sweep = _sweep_of(row)
            if sweep is not None:
                needed = context.rules.policy.sweep_requirement(sweep.request.service).approvals
                found.setdefault(row.incident, AskedSweep(sweep=sweep, asked_at=row.at, needed=needed))
        elif row.incident in found and found[row.incident].waits:
            found[row.incident] = _answered(found[row.incident], row)
    return tuple(reversed(found.values()))


def asked_sweep(context: StageContext, sweep_id: str) -> AskedSweep:
    """Return one of them.

    Raises:
        NotFound: There is none of that id, or it is too old.
        DependencyFailed: The record cannot be read.
    """
    found = next((each for each in asked_sweeps(context) if each.sweep.request.id == sweep_id), None)
    if found is None:
        raise NotFound(
            f"sweep {sweep_id[:80]!r} is not there",
            why="nobody asked for it in the last 24 hours",
            hint="plan it again: sre-agent sweep --out ANOTHER-FOLDER",
        )
    return found


def answer_sweep(
    context: StageContext, word: SweepAnswer, *, is_awaited: Callable[[], bool] = lambda: True
) -> AskedSweep:
    """Record one answer: an approval is signed by the gate of changes, a rejection ends the asking.

    Args:
        context: Of the owner `decide`.
        word: The answer.
        is_awaited: Whether who answers still waits; asked last.

    Raises:
        NotFound: There is no such sweep.
        PolicyRefused: It was answered before, or this person may not, or no sweep may run now.
        DependencyFailed: Nobody knows, or it could not be recorded.
    """
    asked = asked_sweep(context, word.sweep)
    request = asked.sweep.request
    if not asked.waits:
        by = asked.grant.approver if asked.grant is not None else asked.rejected_by
        done = "approved" if asked.grant is not None else "rejected"
        raise PolicyRefused(
            f"sweep {request.id!r} was not answered again",
            why=f"{by!r} {done} it",
            hint="plan it again with another --out to ask again",
        )
    if not is_awaited():
        raise PolicyRefused(
            f"sweep {request.id!r} was not answered", why="it took longer than you wait", hint="press again"
        )
    if word.answer is Choice.APPROVE:
        approval = grant_sweep(context, request, person=word.by)
        return asked.with_(given=approval.given, needed=approval.needed, grant=approval.grant)
    return _reject(context, asked, word)


def _reject(context: StageContext, asked: AskedSweep, word: SweepAnswer) -> AskedSweep:
    """Whoever may approve may reject, and whoever asked may take it back."""
    request = asked.sweep.request
    own = word.by.who.casefold() == request.asker.casefold() and (word.by.verified or context.local)
    why = ""
    if not own:
        why = may_not_answer(context, request, person=word.by, approves=False)
    if why:
        hint = "who may approve stands in policy.toml"
        raise PolicyRefused(f"sweep {request.id!r} was not rejected", why=why, hint=hint)
    body = context.rules.redact(word.why)[:WHY_CHARS]
    given = GivenAnswer(kind=REJECTED, **dict(word.by), body=body)
    return asked.with_(rejected_by=word.by.who, why=answer_once(context, request, given).body)


def _sweep_of(row: AuditRow) -> Sweep | None:
    """Return the sweep of a row; none where it is not one, or shows other cells than would be approved."""
    try:
        sweep = Sweep.model_validate_json(row.body)
    except ValidationError:
        return None
    return sweep if sweep.request.id == row.incident and sweep.shows_what_it_asks else None


def _answered(asked: AskedSweep, row: AuditRow) -> AskedSweep:
    if row.kind == APPROVED:
        return asked.with_(given=(*asked.given, row.who))
    if row.kind == REJECTED:
        return asked.with_(rejected_by=row.who, why=row.body)
    try:
        return asked.with_(grant=SweepGrant.model_validate_json(row.body))
    except ValidationError:
        return asked
