"""The page of the policy: rules, groups, freeze windows, limits and budgets with what is used of them; and a tester."""

from datetime import UTC, datetime
from typing import Any, Final

from flask import Flask, Request, Response, request
from pydantic import Field, ValidationError

from agent.core.decision.decision import Person
from agent.core.decision.limit_use import LimitUse, limit_uses, longest_window
from agent.core.value import Value
from agent.entrypoints.console.change_form import LIFECYCLE, RESTART, Typed, actions_typed
from agent.entrypoints.console.page_context import PageContext, load_or_none, page, who_asks
from agent.errors import InputRejected, SreError
from agent.ports.stage_context import Owner, StageContext
from agent.presentation.policy_explanation import (
    Row,
    Subject,
    explain,
    is_allowed,
    limit_text,
    subject_of_plan,
    subject_of_request,
)
from agent.presentation.policy_text import approver_text, freeze_views, rule_text
from agent.stages.check_change import check_change
from agent.stages.shared.budget import BudgetUse, budget_uses

FIELDS: Final = ("set_flag", "unset_flag", "set_env", "scale", "concurrency", "resources", "model", "accelerator")
KINDS: Final = {
    RESTART: "restart",
    "set_flag": "set a startup flag: NAME=VALUE",
    "unset_flag": "remove a startup flag: NAME",
    "set_env": "set a variable: NAME=VALUE",
    "scale": "instances: MIN:MAX",
    "concurrency": "concurrency: N",
    "resources": "CPU and memory: CPU:MEMORY",
    "model": "model: NAME",
    "accelerator": "accelerator: NAME",
    "start": "start",
    "stop": "stop",
    "delete": "delete",
}
"""Changes that can be tried out, and what is typed beside each."""


class PolicyQuestion(Value):
    """What is asked of the policy, as it was typed."""

    plan: str = Field(default="", max_length=90)
    service: str = Field(default="", max_length=63)
    change: str = Field(default="", max_length=20)
    value: str = Field(default="", max_length=300)
    asker: str = Field(default="", max_length=320)
    by: str = Field(default="", max_length=320)
    at: str = Field(default="", max_length=40)

    @property
    def asked(self) -> bool:
        """Whether anything is asked."""
        return bool(self.plan or self.change)


class PolicyAnswer(Value):
    """What the policy says, or why the question was not understood."""

    wrong: str = ""
    service: str = ""
    allowed: bool = False
    rows: tuple[Row, ...] = ()
    at: datetime | None = None


def read_question(request: Request) -> PolicyQuestion:
    """Return what was typed; what is too long is nothing."""
    given = {name: request.args.get(name, "").strip() for name in PolicyQuestion.model_fields}
    try:
        return PolicyQuestion.model_validate(given)
    except ValidationError:
        return PolicyQuestion(plan="?")


def answer(console: PageContext, question: PolicyQuestion, now: datetime, person: Person) -> PolicyAnswer | None:
    """Return what the policy says, from the function with which the command line explains a decision.

    Args:
        console: The console; where it holds the control database, limits, budget and proof are looked at too.
        question: What was typed.
        now: The time, UTC.
        person: Who asks; for a reader without a name the policy alone is asked, for anybody may be one.
    """
    if not question.asked:
        return None
    context = console.context
    try:
        at = _time(question.at) or now
        subject = _subject(console, question)
        subject = _completed(context, subject, at) if person.who else subject.with_(local=context.local)
        rows = explain(context.rules.policy, subject, at=at, by=question.by or None)
    except SreError as error:
        return PolicyAnswer(wrong=f"{error.why}. {error.hint[:1].upper()}{error.hint[1:]}.")
    return PolicyAnswer(service=subject.service, allowed=is_allowed(rows), rows=rows, at=at)


def _subject(console: PageContext, question: PolicyQuestion) -> Subject:
    if question.plan:
        return _stored(console, question.plan)
    if question.change not in KINDS:
        raise _strange(f"{question.change!r} is no change that can be tried out", "choose one of the list")
    if not question.service:
        raise _strange("no service was named", "choose a service, whether it is watched or not")
    actions = actions_typed(
        _typed(question), None, shape_of=lambda _accelerator: (1.0, 1024), type_of=lambda _name: None
    )
    return Subject(service=question.service, actions=actions, asker=question.asker or None)


def _typed(question: PolicyQuestion) -> Typed:
    if question.change in FIELDS:
        return Typed.model_validate({question.change: question.value, "why": "a test"})
    scale = question.value or "0:1"
    return Typed(form=LIFECYCLE, lifecycle=question.change, confirmed=question.service, scale=scale, why="a test")


def _stored(console: PageContext, named: str) -> Subject:
    store = console.context.store
    if named.startswith("rq-"):
        incident = load_or_none(console, named)
        if incident is None or incident.request is None:
            raise _strange(f"there is no request {named!r}", "see the page of changes")
        return subject_of_plan(incident, incident.plan) if incident.plan is not None else subject_of_request(incident)
    plan = store.plan(named)
    if plan is None:
        raise _strange(f"there is no plan {named!r}", "its page shows its ID")
    incident = store.load(plan.incident)
    newer = incident.plan is not None and incident.plan.id != plan.id
    subject = subject_of_plan(incident, plan)
    return subject.with_(closed="another plan has taken its place") if newer else subject


def _completed(context: StageContext, subject: Subject, at: datetime) -> Subject:
    """Return the change with what the control database and the live service say of it, where they can be asked."""
    known: dict[str, object] = {"local": context.local}
    if context.control is None:
        return subject.with_(**known)
    asker = subject.asker if subject.policy is None else None
    check = check_change(context, subject.service, subject.actions, asker=asker, at=at)
    changes = check.changes
    known["stopped"] = check.stopped
    known["limits"] = limit_uses(
        context.rules.policy, subject.service, of_service=changes.service_changes, of_all=changes.by_service, now=at
    )
    for name in ("over_budget", "unproved"):
        if (said := getattr(check, name)) is not None:
            known[name] = said
    return subject.with_(**known)


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise _strange(f"{text!r} is no time", "write it as 2026-12-24T18:00, in UTC") from error
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _strange(why: str, hint: str) -> InputRejected:
    return InputRejected("the policy was not asked", why=why, hint=hint)


def add_policy(app: Flask, console: PageContext) -> None:
    """Add the page of the policy."""

    @app.get("/policy")
    def policy() -> Response:
        person, now = who_asks(console), console.context.clock.now()
        question = read_question(request)
        test: dict[str, Any] = {"question": question, "tested": answer(console, question, now, person), "kinds": KINDS}
        test["services"] = sorted(service.name for service in console.context.rules.services.services)
        return page(console, "policy.html", person, now, **policy_context(console.context, now), **test)


def policy_context(context: StageContext, now: datetime) -> dict[str, Any]:
    """Return what the page is made of; it asks for nothing that this process may not read.

    In the cloud the console has neither the control database nor a platform, and says where to look instead.
    """
    policy, describes = context.rules.policy, context.owner is Owner.DECIDE
    return {
        "policy": policy,
        "freezes": freeze_views(policy, now),
        "rules": [(number, rule, rule_text(rule)) for number, rule in enumerate(policy.rules)],
        "approvers": [(approver.name, approver_text(approver)) for approver in policy.approvers],
        "limits": _limits(context, now) if describes else None,
        "budgets": [(use, _is_tight(use)) for use in budget_uses(context)] if describes else None,
        "limit_text": lambda use: limit_text(use, now),
    }


def _is_tight(use: BudgetUse) -> bool:
    """Whether everything that costs more is refused now."""
    return use.used_usd_per_h >= use.usd_per_h or bool(use.unknown)


def _limits(context: StageContext, now: datetime) -> tuple[LimitUse, ...] | None:
    """Return the hourly limits, and the windows of services that were changed recently; None where nobody knows."""
    policy = context.rules.policy
    names = [service.name for service in context.rules.services.services] or [""]
    since = now - max(longest_window(policy, name) for name in names)
    try:
        changes = context.control_store().limits("", since).by_service
    except SreError:
        return None
    found: dict[tuple[str, str], LimitUse] = {}
    for name in names:
        own = [at for at, of in changes if of == name]
        for use in limit_uses(policy, name, of_service=own, of_all=changes, now=now):
            found.setdefault((use.name, use.service), use)
    return tuple(use for use in found.values() if use.made or not use.service)
