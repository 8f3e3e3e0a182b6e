"""The forms of change requests: one asks for a change, one takes it back; our own page, a known person, typed words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final

from flask import Flask, Response, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from agent.catalogue.service_price import TYPED
from agent.core.change.asked_settings import ShapeOf, TypeOf
from agent.core.change.request import WHY_CHARS
from agent.core.change.way_back import way_back
from agent.core.decision.decision import Person
from agent.core.plan.action import Action, SetInstanceType
from agent.core.planning.requested import NothingToChange
from agent.core.service.services import Service
from agent.core.service.serving import Live
from agent.entrypoints.console import answer_result
from agent.entrypoints.console.answer_result import Result
from agent.entrypoints.console.change_form import (
    ChangeForm,
    Typed,
    actions_typed,
    commands_of,
    operations_of,
    read_typed,
    target_typed,
    typed_of,
    wrong_of,
)
from agent.entrypoints.console.incident_page import WITHDRAWAL
from agent.entrypoints.console.page_context import (
    PageContext,
    answer_page,
    load_or_none,
    not_found,
    page,
    viewer_of,
    who_asks,
)
from agent.entrypoints.console.posted_form import form_refusal, form_token, refused
from agent.entrypoints.console.read_routes import row_of
from agent.entrypoints.console.service_routes import service_view
from agent.errors import DependencyFailed, SreError
from agent.ports.decide import NoResponse
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.presentation.drift_text import drift_line
from agent.presentation.plan_title import plan_title
from agent.stages.preview_change import ChangePreview
from agent.stages.request_change import ChangeAsked, may_not_ask

SHOWN: Final = 20  # incidents and requests of the service
FORM: Final = "change"  # what the token of this form is for; no plan is called so
AS_DECLARED: Final = "as declared"

AskChange = Callable[[ChangeAsked], str]
"""Records a request and returns its ID."""

PreviewChange = Callable[[ChangeAsked], ChangePreview]
"""Works out what a request would be, and stores nothing."""

Withdraw = Callable[[str, Person, str], object]
"""Takes the request of an ID back for a person, with their reason; what it returns is not looked at."""

NOT_ASKED: Final = ("Not asked", "The change was not asked for")
NOT_WITHDRAWN: Final = ("Not withdrawn", "The request was not withdrawn")


def add_services(app: Flask, console: PageContext, ask: AskChange, preview: PreviewChange) -> None:
    """Add the routes."""

    @app.get("/services/<name>")
    def service(name: str) -> Response:
        watched = console.context.rules.services.watched(name) or not_found(console, "service")
        return _page(console, _Shown(service=watched))

    @app.post("/services/<name>/requests")
    def asked(name: str) -> AnyResponse:
        person = who_asks(console)
        watched = console.context.rules.services.watched(name) or not_found(console, "service")
        foreign = form_refusal(console, person, FORM, name)
        if foreign:
            return answer_page(
                console, person, refused(foreign, "Open the page of the service again and ask there.", words=NOT_ASKED)
            )
        return _answered(console, person, watched, ask, preview)


@dataclass(frozen=True, kw_only=True)
class _Shown:
    """What the page of a service shows in its forms; a page that was only opened shows nothing there."""

    service: Service
    typed: Typed | None = None
    wrong: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    preview: ChangePreview | None = None
    status: int = HTTPStatus.OK


def _answered(
    console: PageContext, person: Person, service: Service, ask: AskChange, preview: PreviewChange
) -> AnyResponse:
    """Work a form out or record it; what is not taken comes back as it was typed, with what is wrong beside it."""
    typed, actions = read_typed(request.form), tuple[Action, ...]()
    shown = _Shown(service=service, typed=typed)
    try:
        shape_of, type_of = _shape_of(console, service), _type_of(console, service)
        actions = actions_typed(typed, _live(console, service), shape_of=shape_of, type_of=type_of)
        asked = _asked(service, person, typed, actions)
        looked = preview(asked) if _previews(console, service) else None
        if request.form.get("do") == "preview":
            return _page(console, replace(shown, preview=looked))
        recorded = ask(asked if asked.target or looked is None else asked.with_(target=looked.plan.target))
    except SreError as error:
        wrong = wrong_of(_as_request_error(error), actions, service.name, console.context.rules.policy)
        return _page(console, replace(shown, wrong=wrong, status=_status(error)))
    return redirect(f"{request.script_root}/incidents/{recorded}", HTTPStatus.SEE_OTHER)


def _page(console: PageContext, shown: _Shown) -> Response:
    person, now, name = who_asks(console), console.context.clock.now(), shown.service.name
    rows = tuple(row_of(i, now) for i in console.context.store.incidents(Query(service=name, limit=SHOWN)))
    view = service_view(console.context, shown.service)
    typed = shown.typed
    if typed is None and request.args.get("as_declared") == "1":
        typed = typed_of(way_back(view.drift, view.state)[0], why=AS_DECLARED)
    target = view.live.target.model_dump_json() if view.live is not None else ""
    form = change_form(console, person, shown.service, view.live).with_(
        open=any(not row.incident.ended for row in rows),
        typed=(typed or Typed()).with_(target=target),
        wrong=dict(shown.wrong),
        shown=typed.form if typed is not None else "",
        preview=shown.preview,
    )
    context: dict[str, Any] = {"service": shown.service, "rows": rows, "change": form, "view": view}
    context["previews"] = _previews(console, shown.service)
    context["preview_title"] = plan_title(shown.preview.plan) if shown.preview is not None else ""
    response = page(console, "service.html", person, now, drift_line=drift_line, **context)
    response.status_code = shown.status
    return response


def add_withdrawal(app: Flask, console: PageContext, withdraw: Withdraw) -> None:
    """Add the route of the form on a request's page."""

    @app.post("/requests/<request_id>/withdrawal")
    def withdrawn(request_id: str) -> AnyResponse:
        person = who_asks(console)
        found = load_or_none(console, request_id)
        if found is None or found.request is None:
            not_found(console, "request")
        foreign = form_refusal(console, person, WITHDRAWAL, request_id)
        if foreign:
            hint = "Open the page of the request again and withdraw it there."
            return answer_page(console, person, refused(foreign, hint, words=NOT_WITHDRAWN))
        try:
            withdraw(request_id, person, request.form.get("why", "").strip()[:WHY_CHARS])
        except SreError as error:
            return answer_page(console, person, _failed(error, words=NOT_WITHDRAWN))
        return redirect(f"{request.script_root}/incidents/{request_id}", HTTPStatus.SEE_OTHER)


def change_form(console: PageContext, person: Person, service: Service, live: Live | None) -> ChangeForm:
    """Return the empty forms of a service for the page that includes them."""
    policy = console.context.rules.policy
    viewer = viewer_of(console, person)
    return ChangeForm(
        service=service.name,
        token=form_token(console, viewer.cookie, FORM, service.name, person),
        objection=may_not_ask(console.context, person=person),
        flags=tuple(sorted(policy.flags)),
        env=tuple(sorted(policy.env)),
        models=policy.models,
        accelerators=policy.accelerators,
        has_type=service.platform in TYPED,
        operations=operations_of(service, live, policy),
        by_hand=commands_of(service, live, policy),
    )


def _previews(console: PageContext, service: Service) -> bool:
    """Whether this process describes the service: in the cloud the console reads databases and nothing else."""
    return console.context.owner is Owner.DECIDE and console.context.platform_of(service.name) is not None


def _live(console: PageContext, service: Service) -> Live | None:
    return service_view(console.context, service).live


def _shape_of(console: PageContext, service: Service) -> ShapeOf:
    def find(accelerator: str) -> tuple[float, int] | None:
        from agent.app.catalogues import read_capacity

        return read_capacity(console.context.rules.services).usual_shape(service.name, accelerator)

    return find


def _type_of(console: PageContext, service: Service) -> TypeOf:
    def find(name: str) -> SetInstanceType | None:
        from agent.app.catalogues import read_capacity

        return read_capacity(console.context.rules.services).instance_type(service.name, name)

    return find


def _asked(service: Service, person: Person, typed: Typed, actions: tuple[Action, ...]) -> ChangeAsked:
    return ChangeAsked(
        service=service.name,
        actions=actions,
        why=typed.why,
        by=person,
        target=target_typed(typed),
        supersede=typed.supersede == "1",
    )


def _as_request_error(error: SreError) -> SreError:
    """Return the error in the words of a request: asked again, the one that is open is found."""
    if not isinstance(error, DependencyFailed):
        return error
    known = "it is not known whether the change was asked for" if isinstance(error, NoResponse) else error.what
    why = f"{known}: {error.why}"
    return DependencyFailed(error.what, why=why, hint="ask again: a request that is open is found, and not made twice")


def _status(error: SreError) -> int:
    return HTTPStatus.OK if isinstance(error, NothingToChange) else answer_result.status_of(error)


def _failed(error: SreError, *, words: tuple[str, str] = NOT_ASKED) -> Result:
    if isinstance(error, DependencyFailed):
        return answer_result.not_recorded(error)
    return refused(error.why, f"{error.hint[:1].upper()}{error.hint[1:]}.", status=_status(error), words=words)
