"""A plan is a proposal that can be checked: typed actions, the exact difference, the proof, the price, the way back."""

from enum import StrEnum
from functools import cached_property
from typing import Final, Literal, Self

from pydantic import AwareDatetime, Field

from agent.core.plan.action import Action, Difference, ForPerson, Lifecycle, SetScaling
from agent.core.plan.proof import OFFERED, Proof, ProofFigure
from agent.core.service.serving import Target
from agent.core.value import Value, digest

DIGEST_SHOWN = 16  # characters of a digest that name a plan: nobody can make another plan that begins with them
DIGEST_GIVEN = rf"^[0-9a-f]{{{DIGEST_SHOWN},64}}$"


class Risk(StrEnum):
    """How much could go wrong."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Rollout(StrEnum):
    """How the change comes up."""

    IN_PLACE = "in_place"  # no spare accelerator, or the service is dead anyway
    STAGED = "staged"  # a new revision without traffic first, then the traffic
    BY_PERSON = "by_person"  # we only watch


class FitSummary(Value):
    """What the arithmetic says of one configuration; None everywhere means that it was not computed.

    Attributes:
        report: The report with the keys of the contract, bytes per GPU.
        sentence: The same for a person.
    """

    fits: bool | None = None
    reason: str = "unknown"
    sentence: str = "fit: not computed"
    report: dict[str, object] | None = None


class Plan(Value):
    """What would be done; never changed after it was made.

    Attributes:
        rules: The version of the rules by which it was made; they say what its digest is taken over.
        proof: How it is known that the memory suffices.
        proof_figures: What proves it, as it was when the plan was made.
        takes_away: What it takes away from what runs now, in one line: losses, speed and price.
        proof_missing: What would have to be known; empty unless ``proof`` is ``none``.
        ordinal: The first plan of an incident is 1.
        proposal: The actions alone, as a digest: two plans with one proposal are the same remedy.
        prior_template: Digest of the template that an undo puts back; empty where there is none.
        cost_before_usd_per_h: None where the price is unknown.
        undo: How it will be undone, one sentence.
        if_unanswered: What happens if nobody answers, one sentence.
        policy: Digest of the policy in force.
        asked_by: Who started a live replay or asked for advice; may not approve.
    """

    rules: Literal["0.1.0"] = "0.1.0"
    id: str
    incident: str
    run: str
    ordinal: int
    cause: str
    why: str
    actions: tuple[Action, ...] = Field(min_length=1)
    difference: tuple[Difference, ...]
    target: Target
    prior_template: str = ""
    rollout: Rollout
    fit_before: FitSummary = FitSummary()
    fit_after: FitSummary = FitSummary()
    cost_before_usd_per_h: float | None = None
    cost_after_usd_per_h: float | None = None
    decode_tokens_per_s: float | None = None
    risk: Risk
    risk_reasons: tuple[str, ...] = ()
    undo: str
    if_unanswered: str
    notes: tuple[str, ...] = ()
    proof: Proof
    proof_figures: tuple[ProofFigure, ...] = ()
    proof_missing: tuple[str, ...] = ()
    takes_away: str = ""
    policy: str = ""
    asked_by: str | None = None
    made_at: AwareDatetime
    expires_at: AwareDatetime

    @cached_property
    def digest(self) -> str:
        """What an approval covers: every field of the rules by which the plan was made.

        A later version that adds a field adds rules, so that a stored plan, and what was approved of it, still holds.
        """
        return digest(self.model_dump(mode="json", include=_COVERED[self.rules]))

    def __copy__(self) -> Self:
        copied = super().__copy__()
        copied.__dict__.pop("digest", None)  # of a copy with other fields it would be another one
        return copied

    @property
    def unproved(self) -> str:
        """Why nobody may be asked to approve this change, or nothing; a task for a person is no change of ours."""
        if self.by_person or self.proof in OFFERED:
            return ""
        return f"nothing proves that its memory suffices: {'; '.join(self.proof_missing) or 'it carries no proof'}"

    @property
    def proposal(self) -> str:
        """What would be done, whoever asks and whenever."""
        return digest([a.model_dump(mode="json") for a in self.actions])

    @property
    def offer(self) -> tuple[object, ...]:
        """Which change it offers to which state, why and with what proof; plans equal in it need one answer."""
        fit = (self.fit_after.fits, self.fit_after.reason, self.fit_after.sentence)
        what = (self.actions, self.difference, self.target, self.rollout, self.takes_away)
        return (self.cause, self.why, *what, *fit, self.proof, self.proof_figures, self.proof_missing)

    @property
    def staged(self) -> bool:
        """Whether the new revision gets its traffic only after it was verified."""
        return self.rollout is Rollout.STAGED

    @property
    def scales(self) -> bool:
        """Whether it changes how many instances run; the prices are then those of all of them together."""
        return any(isinstance(action, SetScaling | Lifecycle) for action in self.actions)

    @property
    def by_person(self) -> bool:
        """Whether nothing in it can be done by us."""
        return all(isinstance(action, ForPerson) for action in self.actions)


DIGESTED: Final[dict[str, tuple[str, ...]]] = {
    "0.1.0": (
        *("rules", "id", "incident", "run", "ordinal", "cause", "why", "actions", "difference", "target"),
        *("prior_template", "rollout", "fit_before", "fit_after", "cost_before_usd_per_h", "cost_after_usd_per_h"),
        *("decode_tokens_per_s", "risk", "risk_reasons", "undo", "if_unanswered", "notes"),
        *("proof", "proof_figures", "proof_missing", "takes_away", "policy", "asked_by", "made_at", "expires_at"),
    ),
}
"""Over which fields the digest of a plan is taken, by the version of its rules; an entry is never changed."""
_COVERED: Final = {rules: set(names) for rules, names in DIGESTED.items()}
