"""What did not end well goes to a person where another plan would be one too many."""

import re

import pytest

from agent.core.incident.incident import Remedy
from agent.core.incident.phase import Phase
from agent.ports.store import Change
from agent.stages.outcome_to_plan import outcome_to_plan
from agent.stages.shared.outcome import StageOutcome


@pytest.mark.parametrize(
    ("ends", "phase", "why"),
    [
        (("NOT_RECOVERED", "INCONCLUSIVE"), Phase.ROLLED_BACK, "2 remedies for .* were tried"),
        (("EXPIRED",), Phase.EXPIRED, "2 plans were not answered"),
        (("REFUSED", "REFUSED"), Phase.REFUSED, "3 approved plans were refused at the last look"),
    ],
    ids=["failed", "unanswered", "refused"],
)
def test_enough_is_enough(bench, ends, phase, why):
    asked = bench.asked(cause="unknown")
    now = bench.clock.now()
    tried = tuple(
        Remedy(proposal=f"p{n}", cause="unknown", ended=end, at=now, incident="inc-a") for n, end in enumerate(ends)
    )
    bench.executor.store.commit(Change(incident=asked.with_(phase=phase, remedies=tried, ended_why="drift")))
    assert bench.run(outcome_to_plan) is StageOutcome.MOVED
    assert bench.now().phase is Phase.ESCALATED
    assert re.search(why, bench.now().ended_why)
