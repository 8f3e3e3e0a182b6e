"""Every recorded example gets the right cause, a plan within bounds, and ends as its record says."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.core.action import Action, ForPerson, SetEnv, SetFlag, SetStartupProbe
from agent.core.phase import Phase
from agent.core.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(p.parent.name for p in (ROOT / "examples").glob("*/expected.json"))


def expected(example: str) -> dict[str, Any]:
    return json.loads((ROOT / "examples" / example / "expected.json").read_text())


def names(action: Action, plan: Plan) -> set[str]:
    """All the words by which expected.json may mean an action."""
    kind = action.kind
    if isinstance(action, ForPerson):
        return {kind, f"{kind} {action.action}"}
    if isinstance(action, SetEnv):
        return {kind, f"{kind} {action.name}"}
    if not isinstance(action, SetFlag):
        return {kind}
    change = next((d for d in plan.difference if d.path == f"flag --{action.name}"), None)
    said = {kind, f"{kind} {action.name}"}
    if change and change.before and change.after and change.before.isdigit() and change.after.isdigit():
        said.add(f"{kind} {action.name} {'up' if int(change.after) > int(change.before) else 'down'}")
    return said


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_cause_comes_first(example: str, journey) -> None:
    """One incident, of the recorded class, whose decisive line is cited."""
    want = expected(example)
    told = journey(example)
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    assert len(told.incidents()) == 1
    assert asked.cause in {want["class"], *want.get("also_acceptable_class", [])}
    assert asked.diagnosis is not None
    assert asked.diagnosis.decisive is not None


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_plan_is_within_the_bounds_of_the_record(example: str, journey) -> None:
    """What must, may and must not stand in it; what was tried on record and failed is not proposed."""
    bounds = expected(example)["plan"]
    told = journey(example)
    plan = told.until(lambda i: i.phase is Phase.ASKED).plan
    said = [names(a, plan) for a in plan.actions]
    every = set().union(*said)
    assert set(bounds.get("must", [])) <= every
    assert not set(bounds.get("must_not", [])) & every
    if "one_of" in bounds:
        assert set(bounds["one_of"]) & every
    for alone in bounds.get("must_not_alone", []):
        assert not all(alone in one for one in said), alone
    for name, (low, high) in bounds.get("flag_limits", {}).items():
        values = [int(a.value) for a in plan.actions if isinstance(a, SetFlag) and a.name == name and a.value]
        assert all(low <= value <= high for value in values)
    if "startup_probe_budget_s" in bounds:
        low, high = bounds["startup_probe_budget_s"]
        (budget,) = [a.probe.budget_s for a in plan.actions if isinstance(a, SetStartupProbe)]
        assert low <= budget <= high


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_first_plan_leads_to_none_of_the_recorded_failures(example: str, journey) -> None:
    """The configuration it would make is none that is on record as failed or too slow."""
    from agent.adapters.platform.rehearsal_scenario import load_scenario
    from agent.core.action import applied

    told = journey(example)
    plan = told.until(lambda i: i.phase is Phase.ASKED).plan
    barred = set(expected(example)["plan"].get("none_of", []))
    platform = told.installation.rehearsal
    if not platform.takes_changes(plan.target.service):
        return
    scenario = load_scenario(ROOT / "examples" / example / "scenario.toml")
    outcome = scenario.outcome_of(applied(platform.describe(plan.target.service).config, plan.actions))
    assert outcome is None or outcome.name not in barred
    assert barred <= {o.name for o in scenario.outcome}


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_first_plan_approved_ends_with_the_recorded_verdict(example: str, journey) -> None:
    """RECOVERED resolves; INCONCLUSIVE puts the prior template back byte by byte."""
    want = expected(example)["rehearsal"]
    told = journey(example)
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    if asked.plan.by_person:
        assert want in {"BY_PERSON", "INCONCLUSIVE"}
        return
    before = told.installation.rehearsal.describe(asked.service)
    told.answer(asked.plan.id)
    first = asked.plan.id
    done = told.until(lambda i: i.ended or (i.plan is not None and i.plan.id != first))
    if want == "RECOVERED":
        assert done.phase is Phase.RESOLVED
        assert "passed a simulated check" in done.verification.why
        assert "real completion" not in done.verification.why
        return
    assert any(r.ended == want for r in done.remedies)
    after = told.installation.rehearsal.describe(asked.service)
    assert after.config == before.config
    assert after.traffic == before.traffic
