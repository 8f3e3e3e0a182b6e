"""T3: what takes memory and is not proved is never offered; what proves it stands on the page. T5 beside it."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.core.decision.decision import Choice
from agent.core.decision.policy import Mode, Rule
from agent.core.incident.incident import Incident
from agent.core.incident.phase import Phase
from agent.core.plan.action import ForPerson
from agent.core.plan.plan import Plan
from agent.core.plan.proof import OFFERED, Proof, affected_memory
from agent.errors import PolicyRefused
from agent.ports.stage_context import Owner
from agent.presentation.terminal_text import lines
from agent.stages.shared.approval import is_automatic
from tests.counts import tries
from tests.journeys import offered_plans
from tests.journeys.conftest import Journey
from tests.outside import shared

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(p.parent.name for p in (ROOT / "examples").glob("*/expected.json"))
MOST_PLANS = 6
TURNS = tries(4, ci=1, soak=1)  # of the recorded failures, one of so many is replayed


def holds(plan: Plan) -> None:
    """T3 for one plan."""
    if not plan.by_person:
        assert plan.proof in OFFERED, plan.proof_missing
    if affected_memory(plan.actions):
        assert plan.proof is not Proof.NOT_NEEDED
        assert bool(plan.proof_figures) == (plan.proof in {Proof.COMPUTED, Proof.MEASURED})
    assert bool(plan.proof_missing) == (plan.proof is Proof.NONE)
    assert all(figure.line or figure.source for figure in plan.proof_figures)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_plan_of_an_example_is_proved_or_a_task(example: str, journey) -> None:
    """Each plan is rejected until none is left, so that all of them are seen."""
    told = journey(example)
    seen: list[str] = []
    for _ in range(MOST_PLANS):
        found = told.until(lambda i: i.ended or (i.phase is Phase.ASKED and i.plan.id not in seen))
        if found.phase is not Phase.ASKED:
            break
        holds(found.plan)
        seen.append(found.plan.id)
        told.answer(found.plan.id, Choice.REJECT, why="show me another one")
    assert seen


def asked(journey) -> tuple[Journey, Incident]:
    told = journey("vllm-cpu-kv-cache-too-small")
    return told, told.until(lambda i: i.phase is Phase.ASKED)


def test_the_engines_own_maximum_is_a_proof_and_its_line_is_shown(journey) -> None:
    """32,640 tokens fit, vLLM says; the arithmetic knows nothing of that model."""
    _, found = asked(journey)
    assert [(a.name, a.value) for a in found.plan.actions] == [("max-model-len", "32640")]
    assert found.plan.fit_after.fits is None
    assert found.plan.proof is Proof.MEASURED
    said = "\n".join(lines(found, now=found.plan.made_at))
    assert "estimated maximum model length is 32640" in said
    assert "measured, from the server's own figures" in said


def test_a_smaller_cache_type_that_nobody_proved_is_a_task(journey) -> None:
    """The log says 4.0 GiB needed and 1.0 there: whether half of the bytes would do is not known."""
    told, found = asked(journey)
    told.answer(found.plan.id, Choice.REJECT, why="not that")
    second = told.until(lambda i: i.ended or (i.phase is Phase.ASKED and i.plan.id != found.plan.id))
    assert second.phase is Phase.ASKED
    assert second.plan.by_person
    assert isinstance(second.plan.actions[0], ForPerson)
    assert second.plan.proof is Proof.NONE
    assert any("--kv-cache-dtype" in note for note in second.plan.notes)


def overwrite(store: Any, incident: Incident) -> None:
    """What somebody does who can write the incident database, plan and all."""
    with store._database.writing() as db:
        for table, value in (("plans", incident.plan), ("incidents", incident)):
            db.execute(f"UPDATE {table} SET body = ? WHERE id = ?", (value.model_dump_json(), value.id))


def test_an_unproved_change_cannot_be_approved_whoever_wrote_it(journey) -> None:
    """The plan in the store is exchanged for one without a proof; its digest is honest, and it is refused all the same."""
    told, found = asked(journey)
    bare = found.plan.with_(proof=Proof.NONE, proof_figures=(), proof_missing=("whether it fits",))
    for plan in (bare, bare.with_(proof_missing=())):
        overwrite(told.installation.store, found.with_(plan=plan))
        with pytest.raises(PolicyRefused, match=r"proof|proves"):
            told.answer(plan.id)


def test_policy_approves_nothing_that_is_not_proved(journey) -> None:
    """Automatic is no proof."""
    told, found = asked(journey)
    world = told.installation.contexts[Owner.DECISION]
    rule = Rule(services=(found.service,), kinds=("set_flag",), mode=Mode.AUTOMATIC)
    automatic = replace(world, rules=replace(world.rules, policy=world.rules.policy.with_(rules=(rule,))))
    assert is_automatic(automatic, found, found.plan)
    assert not is_automatic(automatic, found, found.plan.with_(proof=Proof.NONE))


def test_the_executor_computes_the_proof_anew(journey) -> None:
    """Whoever writes incidents says "computed" where it is only measured: the change is refused before its effect."""
    told, found = asked(journey)
    forged = found.plan.with_(proof=Proof.COMPUTED)
    overwrite(told.installation.store, found.with_(plan=forged))
    told.answer(forged.id)
    after = told.until(lambda i: i.ended or (i.plan is not None and i.plan.id != forged.id))
    assert any(r.ended == Phase.REFUSED for r in after.remedies)
    assert told.installation.environment.rehearsal.describe(found.service).generation == found.plan.target.generation


@pytest.mark.shared
def test_every_replayed_failure_is_proved_or_a_task() -> None:
    """T5: of the recorded failures no fewer get an offer than when proofs were asked for first, but for the unproved."""
    shared("data")
    found = list(offered_plans.replayed(TURNS))
    for each in found:
        if each.offered:
            assert each.proposal is not None
            assert each.proposal.proof in OFFERED
    assert len(found) == math.ceil(314 / TURNS)
    assert sum(each.offered for each in found) >= 105 // TURNS, json.dumps([each.to_json() for each in found])
