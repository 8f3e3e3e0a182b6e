"""How far the model's word about an incident has come, what it may cost, and what it has cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import AwareDatetime, Field

from agent.core.diagnosis.diagnosis import Diagnosis, Evidence, ModelExplanation
from agent.core.diagnosis.prompt import Prompt
from agent.core.value import Value, digest


class When(StrEnum):
    """For which incidents the model is asked, and for which a sleeping one is woken."""

    ALWAYS = "always"
    UNCERTAIN = "uncertain"
    NEVER = "never"

    def holds(self, diagnosis: Diagnosis) -> bool:
        """Whether it is so for a diagnosis of the rules."""
        return self is When.ALWAYS or (self is When.UNCERTAIN and not diagnosis.certain)


class Spend(Value):
    """What the model cost.

    Attributes:
        calls: Questions sent.
        tokens: Tokens of questions and answers together.
        tokens_out: Those of the answers among them; 0 in records from before the two were told apart.
        seconds: Seconds of waiting.
    """

    calls: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    tokens_out: int = Field(default=0, ge=0)
    seconds: float = Field(default=0.0, ge=0)

    def plus(self, other: "Spend") -> "Spend":
        """Return both together."""
        return Spend(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            tokens_out=self.tokens_out + other.tokens_out,
            seconds=round(self.seconds + other.seconds, 3),
        )

    def minus(self, other: "Spend") -> "Spend":
        """Return what is left, never below nothing."""
        return Spend(
            calls=max(0, self.calls - other.calls),
            tokens=max(0, self.tokens - other.tokens),
            tokens_out=max(0, self.tokens_out - other.tokens_out),
            seconds=max(0.0, round(self.seconds - other.seconds, 3)),
        )

    def within(self, cap: "Spend") -> bool:
        """Whether no part of it is above the cap."""
        return self.calls <= cap.calls and self.tokens <= cap.tokens and self.seconds <= cap.seconds


INCIDENT_CAP = Spend(calls=24, tokens=24_000, seconds=960)
ROUND_CAP = Spend(calls=3, tokens=8_000, seconds=60)
"""One round: the question, and one more when the model asks for evidence or answered wrongly."""

ASK_AGAIN_S = 60
GIVE_UP_S = 900
_LEASE_S = ROUND_CAP.seconds + 15


class ModelPrice(Value):
    """Prices of the configured endpoints, USD per million tokens; an endpoint of one's own may cost 0."""

    usd_per_million_in: float = Field(ge=0)
    usd_per_million_out: float = Field(ge=0)

    def usd(self, *, tokens_in: int, tokens_out: int) -> float:
        """Return what so many tokens cost, USD."""
        return (tokens_in * self.usd_per_million_in + tokens_out * self.usd_per_million_out) / 1_000_000

    def of(self, spent: Spend) -> float:
        """Return what was spent, USD; records that do not tell answers apart count as questions."""
        return self.usd(tokens_in=spent.tokens - spent.tokens_out, tokens_out=spent.tokens_out)


class Explanation(StrEnum):
    """How far it is."""

    WANTED = "wanted"
    SAID = "said"
    DROPPED = "dropped"


class ModelRequest(Value):
    """The model's word about one incident, on its way or there.

    Attributes:
        about: Digest of what the rules said when it was asked; another class of theirs needs another word.
        may_wake: Whether a sleeping endpoint may be woken for it.
        next_at: When it is asked (again).
        give_up_at: When nothing more is tried; the rules stand alone.
        plan_from: From then on a plan is made without it.
        spent: What the incident cost so far, reservations of a question under way included.
        before_round: What it had cost before the question under way; None where none is.
        word: What the model said, checked.
        lines: The lines that it cites, by the signal they stand in.
        why: Why it is dropped, or how the last try ended.
    """

    state: Explanation = Explanation.WANTED
    about: str
    may_wake: bool = False
    next_at: AwareDatetime
    give_up_at: AwareDatetime
    plan_from: AwareDatetime
    spent: Spend = Spend()
    before_round: Spend | None = None
    word: ModelExplanation | None = None
    lines: tuple[Evidence, ...] = ()
    why: str = ""

    def due(self, now: datetime) -> bool:
        """Whether the model is to be asked now."""
        return self.state is Explanation.WANTED and now >= self.next_at

    def due_before_plan(self, now: datetime) -> bool:
        """Whether asking comes before planning; a plan that could be made never waits for it."""
        return self.due(now) and now < self.plan_from

    def wake_at(self, other: datetime) -> datetime:
        """Return the earlier of another time and the time of the next question."""
        return min(other, self.next_at) if self.state is Explanation.WANTED else other

    def reserved(self, now: datetime) -> "ModelRequest | None":
        """Return it with the next round paid in advance, so that no crash asks more than was allowed.

        None where a cap leaves no room, or the time is over.
        """
        left = INCIDENT_CAP.minus(self.spent)
        if now >= self.give_up_at or left.calls < 1 or left.tokens < ROUND_CAP.tokens or left.seconds < 1:
            return None
        return self.with_(
            spent=self.spent.plus(_round(left)),
            before_round=self.spent,
            next_at=now + timedelta(seconds=_LEASE_S),
        )

    def settled(self, spent: Spend) -> "ModelRequest":
        """Return it with what the round really cost instead of what was reserved for it."""
        return self.with_(spent=spent, before_round=None)

    @property
    def settled_spend(self) -> Spend:
        """What it cost so far, without a question under way; one that was lost costs its reservation."""
        return self.spent if self.before_round is None else self.before_round

    def again(self, now: datetime, why: str) -> "ModelRequest":
        """Return it to be asked again with a later tick, or dropped where its time is over."""
        later = now + timedelta(seconds=ASK_AGAIN_S)
        if later >= self.give_up_at:
            return self.give_up(f"nobody answered in time: {why}")
        return self.with_(next_at=later, why=why)

    def give_up(self, why: str) -> "ModelRequest":
        """Return it given up; the rules stand alone."""
        return self.with_(state=Explanation.DROPPED, why=why)

    def answered(self, word: ModelExplanation, lines: tuple[Evidence, ...]) -> "ModelRequest":
        """Return it with the model's word."""
        return self.with_(state=Explanation.SAID, word=word, lines=lines, why="")


def round_cap(before: ModelRequest) -> Spend:
    """Return what the next round may cost: the rest of the incident's caps, one round's at most."""
    return _round(INCIDENT_CAP.minus(before.spent))


def _round(left: Spend) -> Spend:
    return Spend(
        calls=min(left.calls, ROUND_CAP.calls),
        tokens=min(left.tokens, ROUND_CAP.tokens),
        seconds=min(left.seconds, ROUND_CAP.seconds),
    )


def about(rules: Diagnosis) -> str:
    """Return a digest of what the rules hold, without numbers: another line of the same trouble asks nothing anew."""
    return digest([rules.class_, rules.certain])


def start_request(
    held: ModelRequest | None, rules: Diagnosis, *, when: When, wake: When, plan_from: datetime, now: datetime
) -> ModelRequest | None:
    """Return the explanation that a diagnosis of the rules needs.

    Args:
        held: What stands so far; what was spent is never forgotten.
        rules: What the rules say now.
        when: For which diagnoses the model is asked.
        wake: For which a sleeping endpoint is woken.
        plan_from: When a plan will be made without it.
        now: The time of this run.
    """
    topic = about(rules)
    if held is not None and held.about == topic:
        return held.with_(plan_from=plan_from)
    if not when.holds(rules):
        return None if held is None else held.with_(about=topic, word=None, lines=()).give_up("the rules are certain")
    return ModelRequest(
        about=topic,
        may_wake=wake.holds(rules),
        next_at=now,
        give_up_at=now + timedelta(seconds=GIVE_UP_S),
        plan_from=plan_from,
        spent=held.spent if held is not None else Spend(),
    )


@dataclass(frozen=True, kw_only=True)
class ModelUse:
    """What was read once.

    Attributes:
        classes: The names that an answer may give, ``unknown`` among them.
        fixes: The catalogue's fixes by class, best first.
        when: For which diagnoses the model is asked.
        wake: For which a sleeping endpoint is woken.
        may_ask: Whether the model may ask for more evidence, once.
    """

    prompt: Prompt
    classes: tuple[str, ...]
    fixes: Mapping[str, tuple[str, ...]]
    when: When = When.ALWAYS
    wake: When = When.UNCERTAIN
    may_ask: bool = True
