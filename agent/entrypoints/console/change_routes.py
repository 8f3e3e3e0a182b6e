"""The forms of change requests: one asks for a change, one takes it back; our own page, a known person, typed words."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from flask import Flask, Response, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from agent.core.change.asked_settings import AskedSettings, actions_of
from agent.core.change.request import WHY_CHARS
from agent.core.incident.phase import Phase
from agent.core.service.services import Service
from agent.core.value import Value
from agent.entrypoints.console import answer_result, forms
from agent.entrypoints.console.answer_result import Result
from agent.entrypoints.console.identity import Person
from agent.entrypoints.console.incident_page import WITHDRAWAL
from agent.entrypoints.console.page_context import PageContext, answer_page, load_or_none, page, viewer_of, who_asks
from agent.entrypoints.console.read_routes import Row, row_of
from agent.entrypoints.console.service_routes import service_view
from agent.errors import DependencyFailed, InputRejected, PolicyRefused, SreError, StateConflict
from agent.ports.store import Query
from agent.presentation.drift_text import drift_line
from agent.presentation.standing import Tone
from agent.stages.request_change import ChangeAsked, may_not_ask

SHOWN: Final = 20  # incidents and requests of the service
LINES: Final = 16
FORM: Final = "change"  # what the token of this form is for; no plan is called so

AskChange = Callable[[ChangeAsked], str]
"""Records a request and returns its ID."""

Withdraw = Callable[[str, Person, str], object]
"""Takes the request of an ID back for a person, with their reason; what it returns is not looked at."""

NOT_ASKED: Final = ("Not asked", "The change was not asked for")
NOT_WITHDRAWN: Final = ("Not withdrawn", "The request was not withdrawn")


class ChangeForm(Value):
    """What the form needs; ``objection`` says why this person cannot ask for a change here.

    Attributes:
        open: Whether something is open on the service, which the request may take the place of.
    """

    service: str
    token: str
    objection: str = ""
    flags: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    accelerators: tuple[str, ...] = ()
    open: bool = False


def add_services(app: Flask, console: PageContext, ask: AskChange) -> None:
    """Add the routes."""

    @app.get("/services/<name>")
    def service(name: str) -> Response:
        person, now = who_asks(console), console.world.clock.now()
        watched = console.world.rules.services.watched(name)
        if watched is None:
            return answer_page(console, person, answer_result.missing("service"))
        rows = tuple(row_of(i, now) for i in console.world.store.incidents(Query(service=name, limit=SHOWN)))
        form, view = change_form(console, person, name, rows), service_view(console.world, watched)
        context: dict[str, Any] = {"service": watched, "rows": rows, "change": form, "view": view}
        return page(console, "service.html", person, now, drift_line=drift_line, **context)

    @app.post("/services/<name>/requests")
    def asked(name: str) -> AnyResponse:
        person = who_asks(console)
        watched = console.world.rules.services.watched(name)
        if watched is None:
            return answer_page(console, person, answer_result.missing("service"))
        foreign = _form_refusal(console, person, FORM, name)
        if foreign:
            return answer_page(console, person, _refused(foreign, "Open the page of the service again and ask there."))
        try:
            recorded = ask(_asked(console, person, watched))
        except SreError as error:
            return answer_page(console, person, _failed(error))
        return redirect(f"{request.script_root}/incidents/{recorded}", HTTPStatus.SEE_OTHER)


def add_withdrawal(app: Flask, console: PageContext, withdraw: Withdraw) -> None:
    """Add the route of the form on a request's page."""

    @app.post("/requests/<request_id>/withdrawal")
    def withdrawn(request_id: str) -> AnyResponse:
        person = who_asks(console)
        found = load_or_none(console, request_id)
        if found is None or found.request is None:
            return answer_page(console, person, answer_result.missing("request"))
        foreign = _form_refusal(console, person, WITHDRAWAL, request_id)
        if foreign:
            hint = "Open the page of the request again and withdraw it there."
            return answer_page(console, person, _refused(foreign, hint, words=NOT_WITHDRAWN))
        if not found.ended and found.phase is not Phase.WITHDRAWN:  # pressed twice: its page says how it ended
            try:
                withdraw(request_id, person, request.form.get("why", "").strip()[:WHY_CHARS])
            except SreError as error:
                return answer_page(console, person, _failed(error, words=NOT_WITHDRAWN))
        return redirect(f"{request.script_root}/incidents/{request_id}", HTTPStatus.SEE_OTHER)


def change_form(console: PageContext, person: Person, service: str, rows: tuple[Row, ...]) -> ChangeForm:
    """Return the form of a service for the page that includes it."""
    policy = console.world.rules.policy
    viewer = viewer_of(console, person)
    return ChangeForm(
        service=service,
        token=_token(console, viewer.cookie, FORM, service, person),
        objection=may_not_ask(console.world, who=person.name, channel=person.channel, verified=person.verified),
        flags=tuple(sorted(policy.flags)),
        env=tuple(sorted(policy.env)),
        models=policy.models,
        accelerators=policy.accelerators,
        open=any(not row.incident.ended for row in rows),
    )


def _token(console: PageContext, cookie: str, form: str, about: str, person: Person) -> str:
    return forms.token(console.form_key, cookie=cookie, plan=form, plan_digest=about, who=person.name)


def _form_refusal(console: PageContext, person: Person, form: str, about: str) -> str:
    """Return why this post is not our own form for this service or request, person and browser, or nothing."""
    foreign = forms.foreign_post(request.headers, console.origin)
    if foreign:
        return foreign
    cookie = request.cookies.get(forms.COOKIE, "")
    if not cookie or not forms.same(request.form.get("token", ""), _token(console, cookie, form, about, person)):
        return "the page was made for another browser, person or form, or is too old"
    return ""


def _asked(console: PageContext, person: Person, service: Service) -> ChangeAsked:
    """Read the form.

    Raises:
        InputRejected: A word cannot be read.
    """
    said = {name: request.form.get(name, "").strip() for name in ("scale", "concurrency", "resources", "model")}
    asked = AskedSettings(
        set_flag=_lines("set_flag"),
        unset_flag=_lines("unset_flag"),
        set_env=_lines("set_env"),
        accelerator=request.form.get("accelerator", "").strip(),
        restart=request.form.get("restart") == "1",
        **said,
    )

    def shape_of(accelerator: str) -> tuple[float, int] | None:
        from agent.app.catalogues import read_capacity

        return read_capacity(console.world.rules.services).usual_shape(service.name, accelerator)

    return ChangeAsked(
        service=service.name,
        actions=actions_of(asked, shape_of=shape_of),
        why=request.form.get("why", "").strip(),
        who=person.name,
        channel=person.channel,
        verified=person.verified,
        supersede=request.form.get("supersede") == "1",
    )


def _lines(name: str) -> tuple[str, ...]:
    found = tuple(line.strip() for line in request.form.get(name, "").splitlines() if line.strip())
    if len(found) > LINES:
        raise InputRejected(
            "the change was not understood", why=f"more than {LINES} settings at once", hint="ask in two requests"
        )
    return found


def _refused(why: str, hint: str, *, status: int = 403, words: tuple[str, str] = NOT_ASKED) -> Result:
    label, title = words
    return Result(
        status=status,
        label=label,
        title=title,
        says=f"{why[:1].upper()}{why[1:].rstrip('.')}. Nothing was stored or changed.",
        hint=hint,
        tone=Tone.BAD,
    )


def _failed(error: SreError, *, words: tuple[str, str] = NOT_ASKED) -> Result:
    if isinstance(error, DependencyFailed):
        return answer_result.not_recorded(error)
    kinds = ((StateConflict, 409), (PolicyRefused, 403), (InputRejected, 400))
    status = next((status for kind, status in kinds if isinstance(error, kind)), 500)
    return _refused(error.why, f"{error.hint[:1].upper()}{error.hint[1:]}.", status=status, words=words)
