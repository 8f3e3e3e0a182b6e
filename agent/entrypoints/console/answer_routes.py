"""The decision form of the console: an answer to exactly one plan, from our own page, by a permitted person."""

from http import HTTPStatus

from flask import Flask, Response, redirect, request
from werkzeug.wrappers import Response as AnyResponse

from agent.core.decision.decision import Choice, Person
from agent.core.plan.plan import Plan
from agent.entrypoints.console import answer_result
from agent.entrypoints.console.answer_result import Result
from agent.entrypoints.console.page_context import PageContext, answer_page, plan_or_404, who_asks
from agent.entrypoints.console.permission import READ_ONLY, may_not_decide
from agent.entrypoints.console.posted_form import form_refusal, speaker_of
from agent.errors import DependencyFailed, InputRejected, SreError
from agent.presentation.plan_end import plan_end
from agent.stages.plan_to_decision import DecisionRequest

WHY_LIMIT = 1000
WITHDRAW = "withdraw"


def add_answers(app: Flask, console: PageContext) -> None:
    """Add the routes."""

    @app.post("/plans/<plan_id>/decision")
    def decision(plan_id: str) -> AnyResponse:
        person = who_asks(console)
        plan = plan_or_404(console, plan_id)
        person, refusal = _checked(console, person, plan)
        if refusal is not None:
            return answer_page(console, person, refusal, plan=plan)
        decision_request = _decision_request(plan, person)
        try:
            console.decide(decision_request)
        except SreError as error:
            return _failed(console, person, plan, decision_request, error)
        return redirect(f"{request.script_root}/plans/{plan.id}/answer", HTTPStatus.SEE_OTHER)

    @app.get("/plans/<plan_id>/decision")
    def nothing_decided(plan_id: str) -> AnyResponse:
        """A link or a preview asks like this: it decides nothing and shows the plan."""
        who_asks(console)
        plan_or_404(console, plan_id)
        return redirect(f"{request.script_root}/plans/{plan_id}", HTTPStatus.SEE_OTHER)

    @app.get("/plans/<plan_id>/answer")
    def answered(plan_id: str) -> AnyResponse:
        person = who_asks(console)
        plan = plan_or_404(console, plan_id)
        incident = console.context.store.load(plan.incident)
        end = plan_end(plan, incident, console.context.store.timeline(incident.id))
        result = answer_result.taken(plan, end, incident, console.context.clock.now())
        if result is None:
            return redirect(f"{request.script_root}/plans/{plan_id}", HTTPStatus.SEE_OTHER)
        return answer_page(console, person, result, plan=plan, goes_on=True)


def _checked(console: PageContext, person: Person, plan: Plan) -> tuple[Person, Result | None]:
    """Return who answers, and why the answer is not taken: the form first, so that no other page can try tokens."""
    refusal = _form_refusal(console, person, plan)
    return (person, refusal) if refusal is not None else _named(console, person, plan)


def _form_refusal(console: PageContext, person: Person, plan: Plan) -> Result | None:
    """Whether this post is one of our own forms for exactly this plan."""
    stale = form_refusal(console, person, plan.id, request.form.get("digest", ""), made_for="plan")
    if stale:
        return answer_result.stale_form(stale)
    answer, why = request.form.get("answer"), request.form.get("why", "").strip()
    if answer not in {*Choice, WITHDRAW}:
        return answer_result.stale_form("it says neither yes nor no")
    if answer == Choice.REJECT and not why:
        return answer_result.stale_form("a rejection needs a reason")
    if request.form.get("break_glass") == "1" and not why:
        return answer_result.stale_form("who breaks the glass of a freeze window says why")
    return None


def _named(console: PageContext, person: Person, plan: Plan) -> tuple[Person, Result | None]:
    """Return who answers: who asks, or whom the token in the form belongs to; and why their word does not count."""
    try:
        person = speaker_of(console, person)
    except InputRejected as error:
        return person, answer_result.wrong_person(f"{error.why}.", hint=f"{error.hint}.")
    if not person.who:
        return person, answer_result.wrong_person(READ_ONLY)
    barred = may_not_decide(console.context, person, plan)
    return person, answer_result.wrong_person(f"{barred}.", hint="Ask somebody on that list.") if barred else None


def _decision_request(plan: Plan, person: Person) -> DecisionRequest:
    withdraw = request.form["answer"] == WITHDRAW
    answer = Choice.REJECT if withdraw else Choice(request.form["answer"])
    break_glass = answer is Choice.APPROVE and request.form.get("break_glass") == "1"
    return DecisionRequest(
        plan=plan.id,
        answer=answer,
        by=person,
        why=request.form.get("why", "").strip()[:WHY_LIMIT] if answer is Choice.REJECT or break_glass else "",
        plan_digest=request.form["digest"],
        break_glass=break_glass,
        withdraw=withdraw,
    )


def _failed(
    console: PageContext, person: Person, plan: Plan, decision_request: DecisionRequest, error: SreError
) -> Response:
    try:
        incident = console.context.store.load(plan.incident)
        timeline = console.context.store.timeline(incident.id)
    except DependencyFailed as second:
        return answer_page(console, person, answer_result.not_recorded(second))
    now = max(console.context.clock.now(), incident.phase_at)
    asked_through = incident.request.channel if incident.request is not None else None
    barred = bool(
        may_not_decide(console.context, person, plan, answer=decision_request.answer, asked_through=asked_through)
    )
    result = answer_result.failed(
        error, decision_request, plan, incident=incident, timeline=timeline, now=now, barred=barred
    )
    return answer_page(console, person, result, plan=plan)
