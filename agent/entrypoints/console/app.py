"""The console as a web application: pages to read, and one form that decides exactly one plan."""

from collections.abc import Callable
from http import HTTPStatus

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from agent.app.http_clients import proxy_keys
from agent.app.operating_system import user_name
from agent.app.stores import machine_clock
from agent.core.decision.decision import Channel, Person
from agent.entrypoints.console import answer_result, forms, guard
from agent.entrypoints.console.answer_result import Result
from agent.entrypoints.console.answer_routes import add_answers
from agent.entrypoints.console.change_routes import AskChange, Withdraw, add_services, add_withdrawal
from agent.entrypoints.console.command_routes import CarryOut, add_commands
from agent.entrypoints.console.control_access import ControlAccess, ControlHere
from agent.entrypoints.console.identity import AnyReader, IapPerson, Identity, LocalOperator
from agent.entrypoints.console.live_routes import add_live
from agent.entrypoints.console.live_view import LiveView
from agent.entrypoints.console.metrics_route import add_metrics
from agent.entrypoints.console.page_context import Decide, NameOf, PageContext, answer_page
from agent.entrypoints.console.pages.audit import add_audit
from agent.entrypoints.console.pages.changes import add_changes
from agent.entrypoints.console.pages.kill_switch import add_kill_switch
from agent.entrypoints.console.pages.policy import add_policy
from agent.entrypoints.console.pages.queue import QueueView, add_queue
from agent.entrypoints.console.pages.statistics import add_statistics
from agent.entrypoints.console.pages.sweeps import add_sweeps
from agent.entrypoints.console.read_routes import add_pages, add_report
from agent.entrypoints.console.render import STYLE, STYLE_PATH, make_pages
from agent.entrypoints.console.service_routes import add_service_list
from agent.errors import DependencyFailed, SettingsRejected, SreError
from agent.ports.stage_context import StageContext
from agent.presentation.phase_words import Tone
from agent.settings import Settings
from agent.stages import incident_command
from agent.stages.plan_to_decision import plan_to_decision
from agent.stages.preview_change import preview_change
from agent.stages.request_change import request_change, withdraw_request

BODY_LIMIT = 16_384


def make_app(
    context: StageContext,
    *,
    settings: Settings,
    identity: Identity | None = None,
    decide: Decide | None = None,
    form_key: bytes | None = None,
    operator: str | None = None,
    queue_age_s: Callable[[], float | None] | None = None,
    wait_factor: float = 1.0,
    name_of: NameOf | None = None,
    ask: AskChange | None = None,
    withdraw: Withdraw | None = None,
    carry_out: CarryOut | None = None,
    control: ControlAccess | None = None,
    queue: QueueView | None = None,
    metrics: bool = False,
) -> Flask:
    """Return the console.

    Args:
        context: The ports; the store is read. Only where ``decide`` is None is anything written.
        settings: The installation.
        identity: Who asks; None takes IAP where ``settings.iap_audience`` is set, else the operator of this machine,
            or where the service is bound elsewhere whoever comes, to read.
        decide: Records an answer; None runs the stage here, for which the context must hold the receipt key.
        form_key: Signs forms and links; None takes the settings' one, in an embedded installation what is derived from
            the receipt key.
        operator: The operator's name in local mode; None takes the name under which this process runs.
        queue_age_s: Age of the oldest waiting message, where the bus says.
        wait_factor: What a rehearsal's waits are divided by, where its scenario says more than the settings.
        name_of: Says whom a token of the cluster belongs to; None where no cluster can be asked.
        ask: Records a change request; None runs the stage here, like ``decide``.
        withdraw: Takes a change request back; None runs the stage here, like ``decide``.
        carry_out: Does what a person says about an incident; None runs the stage here, like ``decide``.
        control: Reads and turns what stands in the control database; None does it here.
        queue: What is seen of the queue; None sees nothing of it.
        metrics: Whether ``/metrics`` is served; whoever serves it reads the whole record, once in its life.

    Raises:
        SettingsRejected: A cloud store without IAP, which would show and decide for everybody; behind IAP no public
            address to know our own forms by; in the cloud no key that all instances sign forms with.
    """
    asked_by = identity or _identity(settings, operator or _user())
    _require_own_address(settings, asked_by)
    console = PageContext(
        context=context,
        settings=settings,
        identity=asked_by,
        decide=decide or (lambda decision_request: plan_to_decision(context, decision_request)),
        form_key=form_key or _form_key(context, settings),
        pages=make_pages(),
        queue_age_s=queue_age_s or (lambda: None),
        control=control or ControlHere(context),
        live=LiveView(context, faster=max(wait_factor, settings.compression)),
        wait_factor=wait_factor,
        name_of=None if asked_by.local else name_of,
    )
    app = Flask("agent.entrypoints.console", static_folder=None, template_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = BODY_LIMIT
    app.config["MAX_FORM_PARTS"] = 24
    app.url_map.strict_slashes = False
    _add_plain_routes(app, console)
    add_pages(app, console)
    add_live(app, console)
    add_service_list(app, console)
    add_report(app, console)
    add_policy(app, console)
    add_kill_switch(app, console)
    add_sweeps(app, console)
    add_audit(app, console)
    add_changes(app, console)
    add_statistics(app, console)
    add_queue(app, console, queue)
    if metrics:
        add_metrics(app, console, queue)
    add_answers(app, console)
    add_services(app, console, ask or _ask_here(context), lambda asked: preview_change(context, asked))
    add_withdrawal(app, console, withdraw or _withdraw_here(context))
    add_commands(app, console, carry_out or (lambda asked: incident_command.carry_out(context, asked)))
    _add_errors(app, console)
    app.after_request(guard.with_headers)
    return app


def _require_own_address(settings: Settings, asked_by: Identity) -> None:
    proxied = not asked_by.local and not isinstance(asked_by, AnyReader)
    if proxied and not settings.public_url.startswith("https://"):
        raise SettingsRejected(
            "the console was not started",
            why=f"PUBLIC_URL is {settings.public_url!r}, and answers count only when they come from that address",
            hint="set PUBLIC_URL to the https:// address under which people reach the console",
        )


def _ask_here(context: StageContext) -> AskChange:
    return lambda asked: request_change(context, asked).id


def _withdraw_here(context: StageContext) -> Withdraw:
    return lambda asked, person, why: withdraw_request(context, asked, person, why=why)


def _identity(settings: Settings, operator: str) -> Identity:
    if settings.iap_audience:
        clock = machine_clock()  # that of the context asks the store, which must not decide whether somebody is let in
        return IapPerson(audience=settings.iap_audience, keys=proxy_keys(clock), clock=clock)
    if not settings.embedded:
        raise SettingsRejected(
            "the console was not started",
            why="IAP_AUDIENCE is unset, and a console without it would be open to everybody",
            hint="put the console behind Identity-Aware Proxy and set IAP_AUDIENCE",
        )
    return LocalOperator(operator) if settings.trusts_this_machine else AnyReader()


def _form_key(context: StageContext, settings: Settings) -> bytes:
    if settings.form_key is not None:
        return forms.form_key_from(settings.form_key.get_secret_value().encode())
    if not settings.embedded:
        raise SettingsRejected(
            "the console was not started",
            why="FORM_KEY is unset, and what one instance shows another would not take back",
            hint="run ./deploy.sh apply, which makes one; or set it to a secret of 32 bytes or more",
        )
    return forms.form_key_of(context)


def _user() -> str:
    try:
        return user_name()
    except (KeyError, OSError, ImportError):  # a container's user may have no name
        return "operator"


def _add_plain_routes(app: Flask, console: PageContext) -> None:
    """What machines read without an identity: the health question, which says nothing about incidents."""

    @app.get("/healthz")
    @app.get("/health")
    @app.get("/readyz")
    def healthz() -> Response:
        """Say whether the store answers."""
        try:
            console.context.store.latest_time()
        except SreError as error:
            return Response(f"store: {type(error).__name__}\n", HTTPStatus.SERVICE_UNAVAILABLE, mimetype="text/plain")
        return Response("ok\n", mimetype="text/plain")

    @app.get(STYLE_PATH)
    def style() -> Response:
        response = Response(STYLE, mimetype="text/css")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response

    @app.get("/favicon.ico")
    def favicon() -> Response:
        return Response(status=HTTPStatus.NO_CONTENT)


def _add_errors(app: Flask, console: PageContext) -> None:
    @app.errorhandler(SreError)
    def refused(error: SreError) -> Response:
        nobody = Person(who="", channel=Channel.CONSOLE, verified=True)
        if request.method == "POST" and isinstance(error, DependencyFailed):
            return answer_page(console, nobody, answer_result.not_recorded(error))
        result = Result(
            status=answer_result.status_of(error),
            label="Not shown",
            title=f"{error.what[:1].upper()}{error.what[1:]}",
            says=f"{error.why}.",
            hint=f"{error.hint}.",
            tone=Tone.BAD,
        )
        return answer_page(console, nobody, result)

    @app.errorhandler(HTTPException)
    def unusual(error: HTTPException) -> Response:
        status = error.code or 500
        result = answer_result.missing("page") if status == 404 else None
        if status >= 500:
            result = answer_result.failed_here(posted=request.method == "POST")
        result = result or Result(
            status=status,
            label=str(status),
            title=error.name,
            says="The request was not understood. Nothing was decided.",
            hint="Go back and try again.",
            tone=Tone.BAD,
        )
        return answer_page(console, Person(who="", channel=Channel.CONSOLE, verified=True), result)
