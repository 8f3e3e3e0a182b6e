"""The lives of an incident and of a change request as tables: which phase may follow which, and what is true."""

from enum import StrEnum


class Phase(StrEnum):
    """Where an incident or a request stands; the comment says what is already true in the world."""

    OPEN = "OPEN"  # at least one signal, or the signed request, is stored; nobody has been told
    DIAGNOSED = "DIAGNOSED"  # people have the first word; it may be provisional
    PLANNED = "PLANNED"  # a plan is stored with its digest; nobody has been asked
    ASKED = "ASKED"  # people can see the plan and answer until it expires
    APPROVED = "APPROVED"  # a signed decision is stored; nothing has been changed
    APPLYING = "APPLYING"  # the intent is stored; the platform may have been called
    VERIFYING = "VERIFYING"  # the platform finished, well or badly; we are measuring
    RESOLVED = "RESOLVED"  # the service answers real completions; the end
    ROLLING_BACK = "ROLLING_BACK"  # the change did not help; putting the prior template back is ordered
    ROLLED_BACK = "ROLLED_BACK"  # the prior template and traffic are back, read back and compared
    REFUSED = "REFUSED"  # approved, but something differed at the last look; nothing was changed
    REJECTED = "REJECTED"  # a person said no; nothing was changed
    EXPIRED = "EXPIRED"  # nobody answered in time; nothing was changed
    SUPERSEDED = "SUPERSEDED"  # a better diagnosis withdrew the plan before anybody answered
    ESCALATED = "ESCALATED"  # a person has it with everything known; we do no more until they say so; an end
    SELF_RECOVERED = "SELF_RECOVERED"  # healthy again or the alert closed before a decision; the end
    WITHDRAWN = "WITHDRAWN"  # the asker took the request back, or a newer one took its place; nothing was changed
    CLOSED = "CLOSED"  # a person is done with it, or the request ended without the change; the end


_P = Phase

NEXT: dict[Phase, frozenset[Phase]] = {
    _P.OPEN: frozenset({_P.DIAGNOSED, _P.SELF_RECOVERED}),
    _P.DIAGNOSED: frozenset({_P.PLANNED, _P.ESCALATED, _P.SELF_RECOVERED}),
    _P.PLANNED: frozenset({_P.ASKED, _P.SELF_RECOVERED}),
    _P.ASKED: frozenset({_P.APPROVED, _P.REJECTED, _P.EXPIRED, _P.SUPERSEDED, _P.SELF_RECOVERED}),
    _P.APPROVED: frozenset({_P.APPLYING, _P.REFUSED}),
    _P.APPLYING: frozenset({_P.VERIFYING}),
    _P.VERIFYING: frozenset({_P.RESOLVED, _P.ROLLING_BACK, _P.CLOSED}),  # closed: a task that nothing here can check
    _P.ROLLING_BACK: frozenset({_P.ROLLED_BACK, _P.ESCALATED}),
    _P.ROLLED_BACK: frozenset({_P.PLANNED, _P.ESCALATED}),
    _P.REFUSED: frozenset({_P.PLANNED, _P.ESCALATED}),
    _P.REJECTED: frozenset({_P.PLANNED, _P.ESCALATED}),
    _P.EXPIRED: frozenset({_P.PLANNED, _P.ESCALATED}),
    _P.SUPERSEDED: frozenset({_P.PLANNED, _P.ESCALATED}),
    _P.RESOLVED: frozenset(),
    _P.ESCALATED: frozenset({_P.CLOSED, _P.PLANNED}),  # by a person only
    _P.SELF_RECOVERED: frozenset(),
    _P.CLOSED: frozenset(),
}

NEXT_OF_REQUEST: dict[Phase, frozenset[Phase]] = {
    _P.OPEN: frozenset({_P.PLANNED, _P.REFUSED, _P.WITHDRAWN}),
    _P.PLANNED: frozenset({_P.ASKED, _P.WITHDRAWN}),
    _P.ASKED: frozenset({_P.APPROVED, _P.REJECTED, _P.EXPIRED, _P.WITHDRAWN}),
    _P.APPROVED: frozenset({_P.APPLYING, _P.REFUSED}),
    _P.APPLYING: frozenset({_P.VERIFYING}),
    _P.VERIFYING: frozenset({_P.RESOLVED, _P.ROLLING_BACK}),
    _P.ROLLING_BACK: frozenset({_P.ROLLED_BACK, _P.ESCALATED}),
    _P.ROLLED_BACK: frozenset({_P.CLOSED}),
    _P.REFUSED: frozenset({_P.CLOSED}),
    _P.REJECTED: frozenset({_P.CLOSED}),
    _P.EXPIRED: frozenset({_P.CLOSED}),
    _P.WITHDRAWN: frozenset({_P.CLOSED}),
    _P.RESOLVED: frozenset(),
    _P.ESCALATED: frozenset({_P.CLOSED}),  # by a person only
    _P.CLOSED: frozenset(),
}
"""Of a change that a person asked for: what did not come about is closed, never planned anew by us."""

ENDS = frozenset({_P.RESOLVED, _P.ESCALATED, _P.SELF_RECOVERED, _P.CLOSED})  # nothing leads on but a person
BEFORE_DECISION = frozenset({_P.OPEN, _P.DIAGNOSED, _P.PLANNED, _P.ASKED})
CHANGED = frozenset({_P.APPLYING, _P.VERIFYING, _P.ROLLING_BACK})  # a change of ours may stand in the world
UNDER_WAY = CHANGED | {_P.APPROVED}  # a newer request of the service waits until it is over


class EventKind(StrEnum):
    """What happened without a change of the phase, where others are told of it."""

    VOTE_GIVEN = "vote_given"  # one approval of several
    VOTE_WITHDRAWN = "vote_withdrawn"
    REMINDED = "reminded"  # nobody answered, and the next group of approvers was told
    SUPERSEDED = "superseded"  # a newer request took the place of this one; the phase is WITHDRAWN
    ACKNOWLEDGED = "acknowledged"  # a person has seen it
    ASSIGNED = "assigned"
    COMMENTED = "commented"
    TASK_DONE = "task_done"  # a person says that their task is done
    REPLAN_ASKED = "replan_asked"  # a person asks for another plan
    NO_PLAN_LEFT = "no_plan_left"  # and there is none
    STUCK = "stuck"  # the agent cannot go on with it as things are
    UNACKNOWLEDGED = "unacknowledged"  # it waits for a person, nobody reacted, and people are told again
