"""Votes about a plan that several people must approve: given and taken back in the control database, then shown."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.core.decision.decision import Ballot, Channel, Decision, Vote
from agent.core.incident.phase import EventKind, Phase
from agent.core.plan.plan import Plan
from agent.errors import PolicyRefused, StateConflict
from agent.ports.control import CastOutcome
from agent.ports.stage_context import StageContext
from agent.stages.shared.commit import save
from agent.stages.shared.database_pair import put_on_record

RIVALS = 5
MOST_VOTERS = 50  # each round that is lost was won by somebody else's vote

Voter = tuple[str, Channel, str]
"""The person, and the channel and identity by which they spoke."""


@dataclass(frozen=True, kw_only=True)
class Cast:
    """A vote that is recorded; ``decision`` is the JSON of the one that holds the plan, empty where none does yet."""

    vote: Vote
    decision: str = ""


def cast_vote(
    context: StageContext,
    plan: Plan,
    *,
    voter: Voter,
    vote_of: Callable[[tuple[Vote, ...]], Vote],
    decision_of: Callable[[tuple[Vote, ...]], Decision | None],
    breaks_glass: bool = False,
) -> Cast | None:
    """Record a vote, and in the same transaction the decision that it makes.

    Args:
        context: The ports.
        plan: What is voted about.
        voter: Who votes.
        vote_of: Makes the signed vote, beside the votes that stand.
        decision_of: Makes the signed decision of the votes that would stand; None where they are not enough.
        breaks_glass: Whether a vote of theirs that stands is given anew where it overrides more freeze windows so.

    Returns:
        The vote with the decision that holds the plan, which may be another one; for a repeated vote of the same
        identity the recorded one. None where rivals kept writing.

    Raises:
        PolicyRefused: This person approved already, under another identity.
    """
    control = context.control_store()
    for _ in range(MOST_VOTERS):
        before = control.ballot(plan.digest)
        ballot = before or Ballot(plan=plan.id, plan_digest=plan.digest, incident=plan.incident)
        own = ballot.of(voter[0])
        if own is not None and (own.channel, own.who) != voter[1:]:
            raise _alias(plan, own, voter)
        said = vote_of(ballot.standing) if own is None or breaks_glass else own
        vote = said if own is None or said.breaks else own
        after = ballot if vote is own else ballot.with_vote(vote)
        decision = decision_of(after.standing)
        held = decision.model_dump_json() if decision is not None else None
        result = control.cast(after, before=before, decision=held)
        if result.outcome is not CastOutcome.STALE:
            return Cast(vote=vote, decision=result.decision)
    return None


def withdraw_vote(context: StageContext, plan: Plan, *, voter: Voter, why: str) -> Vote:
    """Take back the vote of a person, under whichever identity it was given; who heard no answer may say it again.

    Raises:
        StateConflict: The plan is decided.
        PolicyRefused: There is no vote of this person.
    """
    control = context.control_store()
    for _ in range(MOST_VOTERS):
        before = control.ballot(plan.digest)
        own = next((v for v in before.votes if v.person == voter[0]), None) if before is not None else None
        if own is not None and own.withdrawn_at is not None:
            return own
        if before is None or own is None:
            raise PolicyRefused(
                f"no approval of plan {plan.id!r} was withdrawn",
                why=f"{voter[2]!r} has given none that stands",
                hint=f"look at the plan: sre-agent incidents show {plan.incident}",
            )
        back = own.with_(withdrawn_at=max(context.clock.now(), own.at), why=context.rules.redact(why))
        signed = back.signed(context.receipts())
        result = control.cast(before.with_vote(signed), before=before)
        if result.outcome is CastOutcome.DECIDED:
            raise StateConflict(
                f"no approval of plan {plan.id!r} was withdrawn",
                why=f"the plan is decided: {Decision.model_validate_json(result.decision).answer}",
                hint=f"see what happens next: sre-agent incidents show {plan.incident}",
            )
        if result.outcome is CastOutcome.CAST:
            return signed
    raise StateConflict(
        f"no approval of plan {plan.id!r} was withdrawn", why="others are answering it at this moment", hint="try again"
    )


def put_vote_on_record(context: StageContext, vote: Vote, kind: str) -> None:
    """Write the row of a vote that was given or taken back, once."""
    at, body = vote.withdrawn_at or vote.at, vote.model_dump_json()
    put_on_record(context, at=at, kind=kind, incident=vote.incident, who=vote.who, body=body)


def show_votes(context: StageContext, plan: Plan, what: str, *, by: str, kind: EventKind) -> None:
    """Show people the votes that stand now. The control database has them; an incident that went on is left alone."""
    for _ in range(RIVALS):
        incident = context.store.load(plan.incident)
        shown = incident.approvals
        asked = incident.phase is Phase.ASKED and incident.plan is not None and incident.plan.id == plan.id
        ballot = context.control_store().ballot(plan.digest)
        if not asked or shown is None or ballot is None or shown.with_ballot(ballot) == shown:
            return
        try:
            now = context.now_for(incident)
            voted = incident.with_(approvals=shown.with_ballot(ballot))
            save(context, voted, what, now=now, by=by, wake=False, kind=kind)
        except StateConflict:
            continue
        return


def _alias(plan: Plan, own: Vote, voter: Voter) -> PolicyRefused:
    if not own.verified:
        why = f"{own.who!r} approved it, and names that nothing proves count as one person"
        return PolicyRefused(
            f"plan {plan.id!r} was not approved again",
            why=why,
            hint="a second person approves through a channel that proves who they are, such as Slack",
        )
    return PolicyRefused(
        f"plan {plan.id!r} was not approved again",
        why=f"{own.shown!r} approved it as {own.who!r} through {own.channel}, and {voter[2]!r} is the same person",
        hint="another person has to approve it",
    )
