"""R21: the machine's clock is set back while a change comes up or is verified; the verification goes on, pages say so."""

from dataclasses import replace
from datetime import timedelta

import pytest

from agent.adapters.clock import StoredClock
from agent.core.incident.phase import Phase
from agent.entrypoints.console.page_context import _banners
from agent.entrypoints.service import handlers

PROBE = "gemma4-26b-l4-startup-probe"


class Machine:
    """The machine's clock: the true time, off by what it was set back."""

    def __init__(self, true):
        self.true, self.back = true, timedelta()

    def now(self):
        return self.true.now() - self.back


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("phase", [Phase.APPLYING, Phase.VERIFYING])
@pytest.mark.parametrize("back_s", [45, 600, 3600])
def test_verification_goes_on(journey, back_s, phase, restarted):
    told = journey(PROBE)
    machine, start = Machine(told.clock), told.clock.now()

    def fresh():
        """What a start of the process puts together: the later of both, then the counter of seconds."""
        elapsed = told.clock.now

        def monotonic():
            return (elapsed() - start).total_seconds()

        clock = StoredClock(machine, told.installation.store.latest_time, monotonic=monotonic)
        for owner, world in list(told.installation.contexts.items()):
            told.installation.contexts[owner] = replace(world, clock=clock)
        told.work = told.installation.worker(handlers(told.installation), threads=1).run_due

    fresh()
    told.answer(told.until(lambda i: i.phase is Phase.ASKED).plan.id)
    told.until(lambda i: i.phase is phase, limit_s=300)
    machine.back = timedelta(seconds=back_s)
    if restarted:
        fresh()
    world = told.installation.contexts["on_decision"]
    said = [b for b in _banners(world, told.installation.settings, 1) if "The clock of this machine is" in b]
    assert len(said) == 1
    before = told.clock.now()
    ended = told.until(lambda i: i.ended, limit_s=120)
    assert ended.phase is Phase.RESOLVED
    assert told.clock.now() - before < timedelta(seconds=120)
