"""The page of the queue: what waits, what was given up, and a form that delivers a dead letter once more."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Final

from flask import Flask, Response, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from agent.app import App
from agent.core.decision.decision import Person
from agent.core.value import Value
from agent.entrypoints.console.page_context import PageContext, answer_page, page, viewer_of, who_asks
from agent.entrypoints.console.permission import may_not_operate
from agent.entrypoints.console.posted_form import failed, form_refusal, form_token, operator_of, refused
from agent.errors import SreError, StateConflict
from agent.ports.bus import DeadLetter, DeadLetters, Quarantine, Topic
from agent.ports.stage_context import StageContext
from agent.strict_json import read_object

FORM: Final = "redelivery"
SHOWN: Final = 50
ROW_LIMIT: Final = 1_000_000  # bytes of the attributes of a row
NOT_DELIVERED: Final = ("Not delivered", "The dead letter was not delivered again")
AGAIN: Final = "Open the page of the queue again."
IN_THE_CLOUD: Final = "this console reads, and may not publish; use the command below"


@dataclass(frozen=True, kw_only=True)
class QueueView:
    """What a console sees of the queue.

    Attributes:
        quarantine: What the agent put aside.
        dead_letters: What can be delivered again here; None where the queue stands elsewhere.
        app: Tells what waits; None where the queue stands elsewhere.
    """

    quarantine: Quarantine
    dead_letters: DeadLetters | None = None
    app: App | None = None

    def waiting(self) -> Mapping[str, int]:
        """Return how many messages wait, by subscription."""
        return self.app.queue.waiting() if self.app is not None else {}

    def letters(self, limit: int = SHOWN) -> tuple[DeadLetter, ...]:
        """Return what was given up, newest first."""
        if self.dead_letters is not None:
            return self.dead_letters.letters(limit)
        return tuple(_read_only(row) for row in self.quarantine.rows(limit))


class _Shown(Value):
    """One dead letter with the token of its form; without one it has no form."""

    letter: DeadLetter
    token: str


def queue_view(app: App) -> QueueView:
    """Return what the console of an installation sees of its queue."""
    here = app.dead_letters is not None
    return QueueView(quarantine=app.quarantine, dead_letters=app.dead_letters, app=app if here else None)


def add_queue(app: Flask, console: PageContext, view: QueueView | None) -> None:
    """Add the page and its form; without a view the page says that this console sees no queue."""

    @app.get("/queue")
    def queue() -> Response:
        person, now = who_asks(console), console.context.clock.now()
        viewer = viewer_of(console, person)
        by_token = viewer.by_token and not person.who
        barred = "" if by_token else may_not_operate(console.context, person)
        letters = view.letters() if view is not None else ()
        shown = [
            _Shown(
                letter=letter,
                token="" if letter.kept_because else form_token(console, viewer.cookie, FORM, letter.key, person),
            )
            for letter in letters
        ]
        return page(
            console,
            "queue.html",
            person,
            now,
            view=view,
            waiting=_waiting(view),
            oldest_s=console.queue_age_s(),
            letters=shown,
            bodies=bool(person.who),
            published=command_to_publish,
            barred=barred,
            by_token=by_token,
        )

    @app.post("/queue/redelivery")
    def redelivered() -> AnyResponse:
        person, key = who_asks(console), request.form.get("key", "")
        foreign = form_refusal(console, person, FORM, key)
        if foreign:
            return answer_page(console, person, refused(foreign, AGAIN, words=NOT_DELIVERED))
        try:
            _deliver(console, view, person, key)
        except SreError as error:
            return answer_page(console, person, failed(error, words=NOT_DELIVERED))
        return redirect(f"{request.script_root}/queue", HTTPStatus.SEE_OTHER)


def _deliver(console: PageContext, view: QueueView | None, person: Person, key: str) -> None:
    """Record who asks, then deliver; of two who press at once one delivers.

    Raises:
        PolicyRefused: This person may not.
        StateConflict: It is no dead letter any more, or cannot be delivered from here.
        DependencyFailed: A store did not answer.
    """
    operator = operator_of(console, person)
    letters = view.dead_letters if view is not None else None
    letter = letters.letter(key) if letters is not None else None
    if letters is None or letter is None or letter.kept_because:
        raise _gone(letter.kept_because if letter is not None else "")
    _record(console.context, operator, letter, console.context.clock.now())
    if not letters.deliver_again(key):
        raise _gone("")


def _record(context: StageContext, operator: Person, letter: DeadLetter, at: datetime) -> None:
    incident = letter.attributes.get("incident", "")
    body = f"{letter.topic} {letter.key}: {letter.reason}"
    context.control_store().append(at=at, kind="dead_letter.redelivery", incident=incident, who=operator.who, body=body)


def _gone(why: str) -> StateConflict:
    said = why or "somebody delivered it again, or took it, since the page was shown"
    return StateConflict("the dead letter was not delivered again", why=said, hint="look at the page of the queue")


def _waiting(view: QueueView | None) -> list[tuple[str, int]]:
    found = view.waiting() if view is not None else {}
    return sorted((name.removesuffix("-sub"), count) for name, count in found.items() if "dead-letter" not in name)


def command_to_publish(letter: DeadLetter) -> str:
    """Return the command that publishes such a message again where the queue stands elsewhere."""
    topic = letter.topic or "TOPIC"
    kept = ",".join(f"{name}={value}" for name, value in sorted(letter.attributes.items()) if "," not in value)
    attributes = f" {shlex.join([f'--attribute={kept}'])}" if kept else ""  # what a message says is no shell's text
    return f'{shlex.join(["gcloud", "pubsub", "topics", "publish", topic])} --message="$(cat body.json)"{attributes}'


def _read_only(row: Mapping[str, str]) -> DeadLetter:
    try:
        attributes = {
            name: str(value)
            for name, value in read_object(row.get("attributes", "{}").encode(), what="row", limit=ROW_LIMIT).items()
        }
    except SreError:
        attributes = {}
    named = row.get("topic", "")
    return DeadLetter(
        key=row.get("id", ""),
        topic=Topic(named) if named in set(Topic) else None,
        at=datetime.fromisoformat(row["at"]),
        reason=row.get("reason", ""),
        data=row.get("data", ""),
        attributes=attributes,
        kept_because=IN_THE_CLOUD,
    )
