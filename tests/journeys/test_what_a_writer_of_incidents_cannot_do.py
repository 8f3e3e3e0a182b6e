"""S3, S14: who writes the store of incidents can neither show one change and make another, nor undo a person's work."""

from agent.core.change.verification import Verdict
from agent.core.incident.phase import Phase
from agent.core.plan.action import SetConcurrency
from agent.ports.platform import Order
from agent.ports.store import Change
from tests.leases import HELD

PROBE = "gemma4-26b-l4-startup-probe"
SERVICE = "gemma4-26b-qat-l4"


def stamps(told):
    return told.installation.environment.rehearsal.describe(SERVICE).stamps


def changed_by_hand(told):
    live = told.installation.environment.rehearsal.describe(SERVICE)
    order = Order(
        service=SERVICE,
        incident="by-hand",
        effect_key="by-hand",
        revision="by-hand-00009",
        etag=live.etag,
        actions=(SetConcurrency(concurrency=7),),
        lease_end=HELD,
    )
    told.installation.environment.rehearsal.apply(order)


def test_a_plan_that_shows_another_change_than_it_makes_is_refused(journey):
    """People approve what they are shown; a plan whose difference leaves something out moves nothing."""
    told = journey(PROBE)
    asked = told.until(lambda i: i.phase is Phase.ASKED)
    lie = asked.plan.with_(id="p-4d24780e817e-7", difference=asked.plan.difference[:1])
    told.installation.store.commit(Change(incident=asked.with_(plan=lie, plans_made=7), plan=lie))
    told.answer(lie.id)
    told.go(5)
    words = [e.what for e in told.installation.store.timeline(asked.id)]
    assert any("does not show what it would change" in w for w in words)
    assert not stamps(told)


def test_a_roll_back_does_not_undo_what_somebody_changed_since(journey):
    """The receipt authorises putting back what our change replaced, and nothing that came after it."""
    told = journey(PROBE)
    told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
    resolved = told.until(lambda i: i.phase is Phase.RESOLVED, limit_s=900)
    changed_by_hand(told)
    theirs = told.installation.environment.rehearsal.describe(SERVICE).template
    bad = resolved.verification.with_(verdict=Verdict.NOT_RECOVERED, why="made up")
    again = resolved.with_(phase=Phase.ROLLING_BACK, verification=bad, due_at=told.clock.now(), ended_why="")
    told.installation.store.commit(Change(incident=again))
    ended = told.until(lambda i: i.id == resolved.id and i.ended, limit_s=900)
    assert ended.phase is Phase.ESCALATED
    assert "somebody changed" in ended.ended_why
    assert "by-hand-00009" in ended.ended_why
    assert told.installation.environment.rehearsal.describe(SERVICE).template == theirs
