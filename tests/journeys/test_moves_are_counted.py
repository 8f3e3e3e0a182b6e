"""What the agent's own metrics count is written for each move, with the fields that they read."""

from itertools import groupby

from structlog.testing import capture_logs

from agent.core.incident.phase import Phase


def test_an_incident_that_is_resolved_tells_each_of_its_moves(journey):
    """First word, decision and recovery are events with their seconds, class and phase, in the order of the life."""
    with capture_logs() as logs:
        it = journey("gemma4-26b-l4-startup-probe")
        asked = it.until(lambda i: i.phase is Phase.ASKED)
        it.answer(asked.plan.id)
        it.until(lambda i: i.phase is Phase.RESOLVED)
    moves = [row for row in logs if row["event"] == "incident.moved"]
    phases = [phase for phase, _ in groupby(row["phase"] for row in moves)]  # this clock stands still within a step
    assert phases == ["OPEN", "DIAGNOSED", "PLANNED", "ASKED", "APPROVED", "APPLYING", "VERIFYING", "RESOLVED"]
    last = moves[-1]
    assert last["cause"] == asked.cause
    assert last["since_open_s"] >= last["since_plan_s"] > 0
    assert {row["run"] for row in moves} == {"live"}
