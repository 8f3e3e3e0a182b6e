"""One console: what every page of it is made with, who asks for it, and how it is answered."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NoReturn

from flask import Response, abort, g, request
from jinja2 import Environment
from markupsafe import Markup

from agent.app.stores import machine_clock
from agent.core.decision.decision import Person
from agent.core.incident.incident import Incident
from agent.core.plan.plan import Plan
from agent.entrypoints.console import forms, guard
from agent.entrypoints.console.answer_result import Result, missing
from agent.entrypoints.console.control_access import ControlAccess
from agent.entrypoints.console.identity import AnyReader, Identity
from agent.entrypoints.console.incident_page import Viewer, is_asked
from agent.entrypoints.console.live_view import LiveView
from agent.entrypoints.console.render import own_query, render
from agent.errors import DependencyFailed, NotFound
from agent.ports.clock import clock_note
from agent.ports.stage_context import StageContext
from agent.presentation.measured import COMPUTED
from agent.settings import Settings
from agent.stages.plan_to_decision import DecisionRequest

Decide = Callable[[DecisionRequest], object]
"""Records an answer; what it returns is not looked at, the store is."""

NameOf = Callable[[str], Person]
"""Returns whom a token that was typed into the form belongs to; raises InputRejected or DependencyFailed."""

REFRESH_S = 5

PAGES: Final = (
    ("", "Incidents"),
    ("services", "Services"),
    ("changes", "Changes"),
    ("statistics", "Statistics"),
    ("queue", "Queue"),
    ("policy", "Policy"),
    ("sweeps", "Sweeps"),
    ("audit", "Audit"),
    ("kill-switch", "Kill switch"),
)
"""The places that every page leads to: path and name."""


@dataclass(frozen=True, kw_only=True)
class PageContext:
    """What every page is made with."""

    context: StageContext
    settings: Settings
    identity: Identity
    decide: Decide
    form_key: bytes
    pages: Environment
    queue_age_s: Callable[[], float | None]
    control: ControlAccess
    live: LiveView
    wait_factor: float = 1.0
    name_of: NameOf | None = None

    @property
    def by_host(self) -> bool:
        """Whether browsers reach us without a proxy that we know, so that the address they asked for is ours."""
        return self.identity.local or isinstance(self.identity, AnyReader)

    @property
    def origin(self) -> str:
        """The origin of our own pages, as the browser of the request at hand sees it."""
        return guard.own_origin(request, by_host=self.by_host, public_url=self.settings.public_url)


def who_asks(console: PageContext) -> Person:
    """Return who sent the request at hand.

    Raises:
        PolicyRefused: Nobody that we know, or in local mode not from this machine.
    """
    if console.identity.local:
        guard.check_local(request)
    elif console.by_host:
        guard.check_name(request, console.settings.public_url)
    return console.identity.person(request.headers)


def viewer_of(console: PageContext, person: Person) -> Viewer:
    """The browser's cookie, given one if it has none; a form is good only together with it."""
    cookie = g.get("new_cookie") or request.cookies.get(forms.COOKIE, "")  # one for all forms of a page
    if not 16 <= len(cookie) <= 64:
        cookie = forms.new_cookie()
        g.new_cookie = cookie
    by_token = console.name_of is not None and guard.is_private(console.origin)
    return Viewer(person=person, cookie=cookie, form_key=console.form_key, by_token=by_token)


def answer_page(
    console: PageContext, person: Person, result: Result, *, plan: Plan | None = None, goes_on: bool = False
) -> Response:
    """Answer with the page of one result, and with the plan that is offered now where it is a newer one.

    With ``goes_on`` the page leads to the incident by itself after a moment, unless the reader stays.
    """
    incident = load_or_none(console, plan.incident) if plan is not None else None
    now = time_of(console)
    current = incident.plan if incident is not None and is_asked(incident, incident.plan, now) else None
    newer = current if current is not None and plan is not None and current.ordinal > plan.ordinal else None
    leads_on = goes_on and result.moving and newer is None and incident is not None
    shown = {"answer": result, "plan": plan, "incident": incident, "newer": newer}
    response = page(console, "answer.html", person, now, moving=leads_on, **shown)
    response.status_code = result.status
    return response


def time_of(console: PageContext) -> datetime:
    """Return the time for a page that says what is wrong, also where it is the store, which time is asked of."""
    try:
        return console.context.clock.now()
    except DependencyFailed:
        return machine_clock().now()


def load_or_none(console: PageContext, incident_id: str) -> Incident | None:
    """Return an incident, or None where there is none with that id."""
    try:
        return console.context.store.load(incident_id)
    except NotFound:
        return None


def incident_or_404(console: PageContext, incident_id: str) -> Incident:
    """Return an incident; where there is none with that id, the request ends with the page that says so."""
    return load_or_none(console, incident_id) or not_found(console, "incident")


def plan_or_404(console: PageContext, plan_id: str) -> Plan:
    """Return a plan; where there is none with that id, the request ends with the page that says so."""
    return console.context.store.plan(plan_id) or not_found(console, "plan")


def not_found(console: PageContext, what: str) -> NoReturn:
    """End the request with the page of something that does not exist."""
    abort(answer_page(console, who_asks(console), missing(what)))


def page(
    console: PageContext, name: str, person: Person, now: datetime, *, moving: bool = False, **context: Any
) -> Response:
    """Answer with one page; ``moving`` makes it read itself anew until the reader holds it still."""
    still = request.args.get("still") == "1"
    html = render(
        console.pages,
        name,
        root=request.script_root,
        person=person,
        now=now,
        nav=PAGES,
        here=_here(),
        stopped=_stopped(console, person),
        banners=_banners(console.context, console.settings, max(console.wait_factor, console.settings.compression)),
        refresh_s=REFRESH_S if moving and not still else 0,
        still=still and moving,
        refresh_links=(_same_page(still="1"), _same_page()),
        **context,
    )
    response = Response(html, content_type="text/html; charset=utf-8")
    cookie = g.pop("new_cookie", None)
    if cookie is not None:
        secure = console.origin.startswith("https://")
        response.set_cookie(forms.COOKIE, cookie, httponly=True, samesite="Lax", secure=secure, path="/")
    return response


def _stopped(console: PageContext, person: Person) -> str:
    """Return why no change may begin; behind the proxy `decide` is not asked for a page that nobody we know gets."""
    nobody = person.verified and not person.who
    return "" if nobody and not console.by_host else console.control.message()


def _banners(context: StageContext, settings: Settings, factor: float) -> tuple[str, ...]:
    rehearsal = settings.platform.startswith("rehearsal:")
    said = []
    if rehearsal:
        faster = f", {factor:g} times faster" if factor > 1 else ""
        said.append(f"Rehearsal: a simulated platform replays recorded outcomes{faster}. No real service is changed.")
    if rehearsal and settings.rehearse_by_fit:
        said.append(f"Outcomes that were not recorded are computed, and labelled: {COMPUTED}.")
    off = clock_note(context.clock)
    return (*said, off) if off else tuple(said)


def _here() -> str:
    """Return the path of the place that the page at hand belongs to."""
    first = request.path.strip("/").partition("/")[0]
    return "" if first in {"incidents", "plans"} else first


def _same_page(**more: str) -> Markup:
    """Return the query of the page at hand, with auto-refresh paused or not."""
    kept = [(name, value) for name, value in request.args.items(multi=True) if name != "still"]
    return Markup("?") + own_query([*kept, *more.items()])
