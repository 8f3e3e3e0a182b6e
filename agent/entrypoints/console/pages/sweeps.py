"""The pages of load measurements: what was asked for recently, one with its plan, and the form that answers it."""

from http import HTTPStatus
from typing import Final

from flask import Flask, Response, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from agent.core.decision.decision import Choice, Person
from agent.entrypoints.console.page_context import PageContext, answer_page, not_found, page, viewer_of, who_asks
from agent.entrypoints.console.posted_form import failed, form_refusal, form_token, operator_of, refused
from agent.errors import NotFound, SreError
from agent.ports.stage_context import Owner
from agent.presentation.sweep.plan_text import plan_lines
from agent.stages.decide_sweep import WHY_CHARS, AskedSweep, SweepAnswer, answer_sweep, asked_sweep, asked_sweeps
from agent.stages.grant_sweep import may_not_answer
from agent.stages.tell_sweep import tell_sweep

FORM: Final = "sweep"
NOT_ANSWERED: Final = ("Not answered", "The load measurement was not answered")
AGAIN: Final = "Open the page of the sweep again and answer there."


def add_sweeps(app: Flask, console: PageContext) -> None:
    """Add the pages; in the cloud the console has no record of sweeps, and says where they are answered."""
    here = console.context.owner is Owner.DECIDE

    @app.get("/sweeps")
    def sweeps() -> Response:
        person = who_asks(console)
        found = asked_sweeps(console.context) if here else None
        return page(console, "sweeps.html", person, console.context.clock.now(), sweeps=found)

    if here:
        _add_one(app, console)


def _add_one(app: Flask, console: PageContext) -> None:
    @app.get("/sweeps/<sweep_id>")
    def one_sweep(sweep_id: str) -> Response:
        person = who_asks(console)
        try:
            asked = asked_sweep(console.context, sweep_id)
        except NotFound:
            not_found(console, "sweep")
        return _page(console, person, asked)

    @app.post("/sweeps/<sweep_id>/decision")
    def sweep_decision(sweep_id: str) -> AnyResponse:
        person = who_asks(console)
        answer = request.form.get("answer", "")
        foreign = form_refusal(console, person, FORM, sweep_id)
        if foreign or answer not in set(Choice):
            why = foreign or "it says neither yes nor no"
            return answer_page(console, person, refused(why, AGAIN, words=NOT_ANSWERED))
        try:
            answer_sweep(console.context, _word(console, person, sweep_id, Choice(answer)))
        except SreError as error:
            return answer_page(console, person, failed(error, words=NOT_ANSWERED))
        tell_sweep(console.context, sweep_id)
        return redirect(f"{request.script_root}/sweeps/{sweep_id}", HTTPStatus.SEE_OTHER)


def _word(console: PageContext, person: Person, sweep_id: str, answer: Choice) -> SweepAnswer:
    if not person.who:
        person = operator_of(console, person)
    return SweepAnswer(sweep=sweep_id, answer=answer, by=person, why=request.form.get("why", "").strip()[:WHY_CHARS])


def _page(console: PageContext, person: Person, asked: AskedSweep) -> Response:
    context, asking, viewer = console.context, asked.sweep.request, viewer_of(console, person)
    by_token, objection = viewer.by_token and not person.who, ""
    if asked.waits and not by_token:
        objection = may_not_answer(context, asking, person=person)
    return page(
        console,
        "sweep.html",
        person,
        context.clock.now(),
        asked=asked,
        plan=context.rules.redact("\n".join(plan_lines(asked.sweep))),
        objection=objection,
        own=bool(person.who) and person.who.casefold() == asking.asker.casefold(),
        token=form_token(console, viewer.cookie, FORM, asking.id, person),
        by_token=by_token,
    )
