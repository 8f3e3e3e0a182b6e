"""The model: one question with a schema, one answer or none, inside a budget."""

from typing import Protocol

from agent.core.diagnosis.model_request import Spend
from agent.core.value import Value
from agent.errors import DependencyFailed


class Question(Value):
    """What is asked.

    Attributes:
        user: The part with the evidence.
        shorter: The same with less evidence, for endpoints with a smaller window; the longest first.
        answer_schema: JSON schema of the answer, as JSON text.
        prompt: Name, version and digest of the prompt file.
        patient: The service in trouble; an endpoint that is the patient is skipped first.
        may_wake: Whether an endpoint that may sleep is asked at all.
        max_tokens: The most tokens of the answer.
        limit_calls: The most questions sent, over all endpoints and tries; looking whether one is awake is none.
        limit_tokens: The most tokens of questions and answers together, over all endpoints and tries.
        limit_s: The most seconds, over all endpoints and tries.
    """

    system: str
    user: str
    shorter: tuple[str, ...] = ()
    answer_schema: str
    prompt: str
    patient: str
    may_wake: bool
    max_tokens: int = 700
    limit_calls: int = 3
    limit_tokens: int = 8_000
    limit_s: float = 60


class Reply(Value):
    """What came back, unread: raw text that must still be checked.

    Attributes:
        tokens_in: As the server counted, or our bound where it did not.
        took_s: Seconds over everything that was tried for it.
        finished: Whether the model ended by itself; False for text that was cut off.
        used: Which text was sent: 0 is ``user``, 1 the first of ``shorter``.
        spent: What the question cost, failed tries at other endpoints included.
    """

    text: str
    model: str
    endpoint: str
    tokens_in: int
    tokens_out: int
    took_s: float
    finished: bool
    used: int = 0
    spent: Spend


class NoAnswer(DependencyFailed):
    """Nobody answered; the rules decide alone.

    Attributes:
        spent: What it cost nevertheless.
        again: Whether asking again in a minute may help: an endpoint that sleeps, is busy or is down may come back.
    """

    def __init__(self, what: str, *, why: str, hint: str, spent: Spend, again: bool) -> None:
        super().__init__(what, why=why, hint=hint)
        self.spent = spent
        self.again = again


class Model(Protocol):
    """Any OpenAI-compatible endpoint, or a list of them."""

    def ask(self, question: Question) -> Reply:
        """Return one answer.

        It never takes longer than the question's ``limit_s`` and never costs more than ``limit_tokens``. A reply may be
        cut off, empty or no JSON at all: the reader refuses it.

        Raises:
            NoAnswer: Nobody answered in time, or nobody may be asked.
        """
        ...

    def judged(self, reply: Reply, *, usable: bool) -> None:
        """Hear whether an answer could be used; an endpoint whose answers cannot is not asked for a while."""
        ...
