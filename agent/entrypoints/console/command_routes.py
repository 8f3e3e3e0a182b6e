"""The forms with which people act on an incident: acknowledge, assign, comment, close, done, plan again, roll back."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from flask import Flask, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from agent.core.decision.decision import Person
from agent.core.incident.command import OF_A_PLAN, TEXT_CHARS, Command, possible
from agent.core.incident.incident import Incident
from agent.core.value import Value
from agent.entrypoints.console.page_context import PageContext, answer_page, incident_or_404, viewer_of, who_asks
from agent.entrypoints.console.permission import READ_ONLY
from agent.entrypoints.console.posted_form import failed, form_refusal, form_token, refused, speaker_of
from agent.errors import SreError
from agent.presentation.standing import responders_text, task_holder
from agent.stages.incident_command import CommandRequest
from agent.stages.shared.approval import refusal_of_person

FORM: Final = "command"  # what the token of these forms is for; no plan is called so
NOT_DONE: Final = ("Not done", "Nothing was done")

CarryOut = Callable[[CommandRequest], object]
"""Carries a command out; what it returns is not looked at, the store is."""


class CommandForms(Value):
    """What somebody may do about an incident on its page.

    Attributes:
        possible: The commands that go with its phase, for this person.
        objection: Why this person may do nothing; empty where they may.
        by_token: Whether a token that is typed in says who they are.
        people: Who acknowledged it and to whom it is assigned.
    """

    token: str
    possible: tuple[Command, ...] = ()
    objection: str = ""
    by_token: bool = False
    people: str = ""
    plan_digest: str = ""


def add_commands(app: Flask, console: PageContext, carry_out: CarryOut) -> None:
    """Add the route."""

    @app.post("/incidents/<incident_id>/commands")
    def command(incident_id: str) -> AnyResponse:
        person = who_asks(console)
        found = incident_or_404(console, incident_id)
        wrong = form_refusal(console, person, FORM, incident_id)
        said = request.form.get("command", "")
        if wrong or said not in set(Command):
            hint = "Open the page of the incident again and say it there."
            result = refused(wrong or "the form names nothing that can be done", hint, words=NOT_DONE)
            return answer_page(console, person, result, plan=found.plan)
        try:
            carry_out(_asked(found, Command(said), speaker_of(console, person)))
        except SreError as error:
            return answer_page(console, person, failed(error, words=NOT_DONE), plan=found.plan)
        return redirect(f"{request.script_root}/incidents/{found.id}#people", HTTPStatus.SEE_OTHER)


def command_forms(console: PageContext, person: Person, incident: Incident) -> CommandForms:
    """Return the forms of an incident's page."""
    viewer = viewer_of(console, person)
    objection = ""
    if not person.who:
        objection = "" if viewer.by_token else READ_ONLY
    elif barred := refusal_of_person(console.context, incident.service, person=person):
        objection = f"{barred[:1].upper()}{barred[1:]}."
    return CommandForms(
        token=form_token(console, viewer.cookie, FORM, incident.id, person),
        possible=() if objection else _offered(incident),
        objection=objection,
        by_token=viewer.by_token,
        people=responders_text(incident),
        plan_digest=incident.plan.digest if incident.plan is not None else "",
    )


def _offered(incident: Incident) -> tuple[Command, ...]:
    """What goes with its phase; whoever took the task on need not say that they saw the incident."""
    return tuple(c for c in possible(incident) if c is not Command.ACKNOWLEDGE or not task_holder(incident))


def _asked(incident: Incident, command: Command, person: Person) -> CommandRequest:
    digest = request.form.get("digest", "")
    return CommandRequest(
        incident=incident.id,
        command=command,
        by=person,
        text=request.form.get("text", "").strip()[: TEXT_CHARS + 1],
        plan_digest=digest or None if command in OF_A_PLAN else None,
    )
