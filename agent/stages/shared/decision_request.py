"""What somebody said about a plan, as a channel received it."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.core.decision.decision import Choice, Person
from agent.errors import StateConflict


class NotRecorded(StateConflict):
    """Nothing stands against the word, and yet it is not recorded: the very same may be said again."""


@dataclass(frozen=True, kw_only=True)
class DecisionRequest:
    """What somebody said about a plan, as the channel received it.

    Attributes:
        why: Their reason, untrusted; secrets are taken out of it before it is kept.
        plan_digest: The digest that was shown to them, or its first ``DIGEST_SHOWN`` characters or more; None where
            the channel shows the plan itself.
        withdraw: Whether they take an approval back; the answer does not matter then.
        break_glass: Whether they approve in spite of a freeze window, for the reason that ``why`` gives.
        is_awaited: Whether somebody still waits for the answer; asked right before it is recorded.
    """

    plan: str
    answer: Choice
    by: Person
    why: str = ""
    plan_digest: str | None = None
    break_glass: bool = False
    withdraw: bool = False
    is_awaited: Callable[[], bool] = lambda: True
