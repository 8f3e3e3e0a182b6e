"""The model: one question with a schema, one answer or none, inside a budget."""

from typing import Protocol

from agent.core.value import Value


class Question(Value):
    """What is asked.

    Attributes:
        prompt: Name, version and digest of the prompt file.
        answer_schema: JSON schema of the answer, as JSON text.
        patient: The service in trouble; an endpoint that is the patient is skipped first.
    """

    system: str
    user: str
    answer_schema: str
    prompt: str
    patient: str
    may_wake: bool
    max_tokens: int = 1024
    limit_s: float = 60


class Reply(Value):
    """What came back, unread: raw text that must still be checked."""

    text: str
    model: str
    endpoint: str
    tokens_in: int
    tokens_out: int
    took_s: float
    finished: bool


class Model(Protocol):
    """Any OpenAI-compatible endpoint, or a list of them."""

    def ask(self, question: Question) -> Reply:
        """Return one answer.

        Raises:
            DependencyFailed: Nobody answered in time; the rules decide alone.
            ModelMisbehaved: The answer is cut off, too large or not text.
        """
        ...
