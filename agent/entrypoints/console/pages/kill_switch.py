"""The page of the kill switch: how it stands, and two forms that turn it, each with a reason."""

from http import HTTPStatus
from typing import Final

from flask import Flask, Response, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from agent.core.decision.decision import Person
from agent.entrypoints.console.page_context import PageContext, answer_page, page, viewer_of, who_asks
from agent.entrypoints.console.permission import may_not_operate
from agent.entrypoints.console.posted_form import failed, form_refusal, form_token, operator_of, refused
from agent.errors import SreError
from agent.ports.control import KillSwitch

FORM: Final = "kill-switch"
WHY_LIMIT: Final = 1000
NOT_TURNED: Final = ("Not turned", "The kill switch was not turned")
AGAIN: Final = "Open the page of the kill switch again and turn it there."


def add_kill_switch(app: Flask, console: PageContext) -> None:
    """Add the page and its form."""

    @app.get("/kill-switch")
    def kill_switch() -> Response:
        return _page(console, who_asks(console))

    @app.post("/kill-switch")
    def turned() -> AnyResponse:
        person = who_asks(console)
        on, why = request.form.get("turn") == "on", request.form.get("why", "").strip()[:WHY_LIMIT]
        try:
            foreign = form_refusal(console, person, FORM, _about(on=on, stands=_stands(console, on=on)))
            if foreign:
                return answer_page(console, person, refused(foreign, AGAIN, words=NOT_TURNED))
            if not why:
                missing = refused("it needs a reason", AGAIN, words=NOT_TURNED, status=HTTPStatus.BAD_REQUEST)
                return answer_page(console, person, missing)
            operator = operator_of(console, person)
            console.control.turn(operator, on=on, why=why, at=console.context.clock.now())
        except SreError as error:
            return answer_page(console, person, failed(error, words=NOT_TURNED))
        return redirect(f"{request.script_root}/kill-switch", HTTPStatus.SEE_OTHER)


def _page(console: PageContext, person: Person) -> Response:
    now, viewer = console.context.clock.now(), viewer_of(console, person)
    try:
        stands, unknown = console.control.kill_switch(), ""
    except SreError as error:
        stands, unknown = KillSwitch(on=False), error.why  # the one form is then the one that stops
    turn = "off" if stands.on else "on"
    about = _about(on=not stands.on, stands=stands)
    barred = "" if viewer.by_token and not person.who else may_not_operate(console.context, person)
    return page(
        console,
        "kill_switch.html",
        person,
        now,
        switch=stands,
        unknown=unknown,
        halted=console.context.halted,
        turn=turn,
        token=form_token(console, viewer.cookie, FORM, about, person),
        barred=barred,
        by_token=viewer.by_token and not person.who,
    )


def _stands(console: PageContext, *, on: bool) -> KillSwitch:
    """Return how it stands by an answer of this moment; who stops changes does not wait for one.

    Raises:
        SreError: Nobody says, and what was stopped is not lifted.
    """
    if on:
        return KillSwitch(on=False)
    console.control.forget()
    return console.control.kill_switch()


def _about(*, on: bool, stands: KillSwitch) -> str:
    """What a form is good for: to stop, always; to allow changes again, only what was stopped when it was shown."""
    return "on" if on else f"off {stands.at.isoformat() if stands.at is not None else ''}"
