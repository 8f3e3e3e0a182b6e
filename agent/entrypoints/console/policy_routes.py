"""The page of the policy: rules, groups, freeze windows, limits and budgets with what is used of them; and a tester."""

from datetime import datetime
from typing import Any

from flask import Flask, Response, request

from agent.core.decision.limit_use import LimitUse, limit_uses, longest_window
from agent.entrypoints.console.page_context import PageContext, page, who_asks
from agent.entrypoints.console.pages.policy_tester import KINDS, answer, read_question
from agent.errors import SreError
from agent.ports.stage_context import Owner, StageContext
from agent.presentation.limit_text import limit_text
from agent.presentation.policy_text import approver_text, freeze_views, rule_text
from agent.stages.shared.budget import BudgetUse, budget_uses


def add_policy(app: Flask, console: PageContext) -> None:
    """Add the page of the policy."""

    @app.get("/policy")
    def policy() -> Response:
        person, now = who_asks(console), console.world.clock.now()
        question = read_question(request)
        test: dict[str, Any] = {"question": question, "tested": answer(console, question, now, person), "kinds": KINDS}
        test["services"] = sorted(service.name for service in console.world.rules.services.services)
        return page(console, "policy.html", person, now, **policy_context(console.world, now), **test)


def policy_context(world: StageContext, now: datetime) -> dict[str, Any]:
    """Return what the page is made of; it asks for nothing that this process may not read.

    In the cloud the console has neither the control database nor a platform, and says where to look instead.
    """
    policy, describes = world.rules.policy, world.owner is Owner.DECIDE
    return {
        "policy": policy,
        "freezes": freeze_views(policy, now),
        "rules": [(number, rule, rule_text(rule)) for number, rule in enumerate(policy.rules)],
        "approvers": [(approver.name, approver_text(approver)) for approver in policy.approvers],
        "limits": _limits(world, now) if describes else None,
        "budgets": [(use, _is_tight(use)) for use in budget_uses(world)] if describes else None,
        "limit_text": lambda use: limit_text(use, now),
    }


def _is_tight(use: BudgetUse) -> bool:
    """Whether everything that costs more is refused now."""
    return use.used_usd_per_h >= use.usd_per_h or bool(use.unknown)


def _limits(world: StageContext, now: datetime) -> tuple[LimitUse, ...] | None:
    """Return the hourly limits, and the windows of services that were changed recently; None where nobody knows."""
    policy = world.rules.policy
    names = [service.name for service in world.rules.services.services] or [""]
    since = now - max(longest_window(policy, name) for name in names)
    try:
        changes = world.control_store().limits("", since).by_service
    except SreError:
        return None
    found: dict[tuple[str, str], LimitUse] = {}
    for name in names:
        own = [at for at, of in changes if of == name]
        for use in limit_uses(policy, name, of_service=own, of_all=changes, now=now):
            found.setdefault((use.name, use.service), use)
    return tuple(use for use in found.values() if use.made or not use.service)
