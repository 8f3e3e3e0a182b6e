"""Recorded answers: replayed word by word without the model; new ones are added where a model stands behind them."""

import json
import threading
from pathlib import Path

from agent.core.diagnosis.model_request import Spend
from agent.core.value import digest
from agent.errors import DependencyFailed, SettingsRejected
from agent.ports.model import Model, NoAnswer, Question, Reply


class RecordedModel:
    """Answers that were given before, by the exact question. For many threads of one process.

    Args:
        path: JSON lines with ``question`` (a digest) and ``reply``; made when the first answer is added.
        inner: Who answers what is not recorded; None replays only.

    Raises:
        SettingsRejected: The file is none of ours, or is missing and nobody could fill it.
    """

    def __init__(self, path: Path, *, inner: Model | None = None) -> None:
        self._path = path
        self._inner = inner
        self._lock = threading.Lock()
        self._replies = _read(path) if path.exists() or inner is None else {}

    def ask(self, question: Question) -> Reply:
        """Return the recorded answer, with what it cost when it was given; see :class:`agent.ports.model.Model`."""
        key = key_of(question)
        kept = self._replies.get(key)
        if kept is not None:
            return kept
        if self._inner is None:
            raise NoAnswer(
                "the model did not answer",
                why="this question is not among the recorded ones",
                hint="record it: name an endpoint beside the file",
                spent=Spend(),
                again=False,
            )
        reply = self._inner.ask(question)
        with self._lock:
            self._replies[key] = reply
            self._keep(key, reply)
        return reply

    def judged(self, reply: Reply, *, usable: bool) -> None:
        """Tell whoever answered."""
        if self._inner is not None:
            self._inner.judged(reply, usable=usable)

    def _keep(self, key: str, reply: Reply) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"question": key, "reply": reply.model_dump(mode="json")}) + "\n")
        except OSError as error:
            raise DependencyFailed(
                f"an answer was not added to {str(self._path)!r}",
                why=str(error),
                hint="name a file that can be written",
            ) from error


def key_of(question: Question) -> str:
    """Return what names a question: its texts and its schema; budgets and patients do not matter."""
    return digest([question.system, question.user, *question.shorter, question.answer_schema])


def _read(path: Path) -> dict[str, Reply]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines if line.strip()]  # not strict: a recording of ours
        return {str(row["question"]): Reply.model_validate(row["reply"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SettingsRejected(
            f"the recorded answers {str(path)!r} were not read",
            why=f"{type(error).__name__}: {str(error)[:200]}",
            hint="give a file that an earlier run has written, or name an endpoint beside it",
        ) from error
