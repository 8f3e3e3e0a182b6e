"""A granted sweep: every cell stored at once, every gate asked while it runs, and the way back."""

import json
import os
import re
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent.adapters.load.guidellm import Guidellm
from agent.adapters.load.sweep_folder import SweepFolder, read_requests
from agent.core.decision.decision import Channel, Person
from agent.core.intake.signal import LIVE
from agent.core.sweep.cell import Outcome
from agent.core.sweep.planning import Known, SweepAsked, plan_sweep
from agent.core.sweep.provenance import Driver, Limits, Provenance
from agent.errors import DependencyFailed, PolicyRefused
from agent.ports.control import KillSwitch
from agent.ports.load import LoadOrder
from agent.ports.store import Change, head_key
from agent.stages import run_sweep as run_sweep_module
from agent.stages.grant_sweep import grant_sweep
from agent.stages.run_sweep import SweepEnd, SweepJob, run_sweep
from tests.agent.core.sweep.test_grant import request
from tests.agent.stages.conftest import SERVICE, T0, Bench
from tests.contracts import fake_guidellm
from tests.spans import tracer_into

pytestmark = pytest.mark.slow

ASKED = SweepAsked(contexts=(112,), concurrencies=(1, 4, 8, 32), output_tokens=16)
PLAN = plan_sweep(ASKED, Known(limits=Limits(max_num_seqs=4), full_requests={112: 20.0}))

STOPPED = {"sre_agent.reason": "stopped"}


class Clock:
    """The machine's time from T0 on, which a test may set."""

    def __init__(self) -> None:
        self.at = T0 - timedelta(seconds=time.monotonic())

    def now(self):
        return self.at + timedelta(seconds=time.monotonic())


class Desk:
    """One sweep of one service, with a driver that plays a server of 4 slots."""

    def __init__(self, tmp_path: Path, **script) -> None:
        self.bench, self.folder, self.tmp_path, self.said = Bench(), tmp_path / "sweep", tmp_path, []
        self.clock = Clock()
        self.context = replace(self.bench.executor, clock=self.clock)
        self.request = request(
            service=SERVICE, cells=tuple(c.planned for c in PLAN.cells), made_at=T0, asker="ana", usd_per_h=None
        )
        self.grant = grant_sweep(
            self.context, self.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False)
        ).grant
        self.play(**script)

    def play(self, **script) -> None:
        self.program = fake_guidellm.install(self.tmp_path / "driver", **script)

    def job(self, **changes) -> SweepJob:
        job = SweepJob(
            plan=PLAN,
            request=self.request,
            grant=self.grant,
            provenance=Provenance(
                sweep=self.request.id, endpoint=self.request.endpoint, model="m", served_model="m",
                driver=Driver.GUIDELLM, driver_version="0.8.1", started_at=T0,
            ),
            driver=Guidellm(self.program),
            store=SweepFolder(self.folder),
            order=LoadOrder(cell=PLAN.cells[0].planned, url="http://127.0.0.1:9", served_model="m", tokenizer="t", limit_s=1),
            holder="here",
            say=self.said.append,
        )  # fmt: skip
        return replace(job, **changes)

    def run(self, **changes):
        return run_sweep(self.context, self.job(**changes))

    def set_clock(self, by_s: float) -> None:
        self.clock.at += timedelta(seconds=by_s)

    def incident_opens(self) -> None:
        incident = self.bench.asked().with_(id="inc-b", version=0)
        self.context.store.commit(Change(incident=incident, heads=(head_key(LIVE, SERVICE, None),)))

    def switch(self, *, on: bool) -> None:
        self.bench.control.set_kill_switch(KillSwitch(on=on, by="ana", why="stop it", at=T0))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_every_cell_is_measured_and_the_knee_is_where_the_server_has_it(desk: Desk) -> None:
    """Four slots: throughput grows up to 4, and stays; above, requests wait longer. What cannot run was not sent."""
    done = desk.run()
    assert (done.end, done.why) == (SweepEnd.DONE, "")
    assert [(c.planned.concurrency, c.outcome) for c in done.cells] == [
        (1, Outcome.MEASURED), (4, Outcome.MEASURED), (8, Outcome.MEASURED), (32, Outcome.MEASURED),
    ]  # fmt: skip
    speeds = [c.measured.output_tokens_per_s for c in done.cells]
    assert speeds == pytest.approx([100, 400, 400, 400], rel=0.05)
    waits = [c.measured.ttft_s.p50 for c in done.cells]
    assert waits == pytest.approx([0.01, 0.01, 0.17, 1.13], abs=0.001)
    assert [c.measured.warmup_requests for c in done.cells] == [1, 4, 8, 32]
    assert all(len(read_requests(desk.folder, c)) == c.planned.requests for c in done.cells)
    assert [p.cell is None for p in desk.said] == [True, False] * 4


@pytest.mark.parametrize(
    ("loses", "end", "outcome"), [(1, SweepEnd.DONE, Outcome.MEASURED), (8, SweepEnd.FAILED, Outcome.PARTIAL)]
)
def test_requests_that_the_generator_does_not_mention_are_said(desk: Desk, loses, end, outcome) -> None:
    """Nothing was cut off: one of them changes no figure, a quarter of them does."""
    desk.play(loses=loses)
    done = desk.run(plan=PLAN.with_(cells=PLAN.cells[-1:]))
    assert done.end is end
    sent = done.cells[-1].planned.requests
    assert done.cells[-1].outcome is outcome
    assert done.cells[-1].why == f"the load generator says nothing about {loses} of {sent} requests"


def test_dropped_cells_are_stored_and_never_sent(desk: Desk) -> None:
    """With the reason."""
    plan = plan_sweep(ASKED, Known(limits=Limits(max_model_len=100)))
    done = desk.run(plan=plan)
    assert {c.outcome for c in done.cells} == {Outcome.DROPPED}
    assert done.cells[0].why == "requests of 112 tokens: --max-model-len is 100"
    assert not (desk.tmp_path / "driver" / "orders.jsonl").exists()


def test_a_cell_that_nobody_granted_is_not_sent(desk: Desk) -> None:
    """Whoever changes the stored plan gets no more load than the signed request has."""
    more = plan_sweep(ASKED.with_(concurrencies=(1, 64)), Known())
    assert [c.planned.concurrency for c in desk.run(plan=more).cells] == [1]


def test_the_kill_switch_ends_it_within_a_second(desk: Desk) -> None:
    """While a driver hangs; what was stored before is kept, and the rest is measured once changes are allowed again."""
    first = desk.run(plan=PLAN.with_(cells=PLAN.cells[:1]))
    desk.play(end="hang")
    looks = []

    def pause(seconds: float) -> None:
        looks.append(seconds)
        desk.switch(on=True)

    sent = InMemorySpanExporter()
    desk.context = replace(desk.context, tracer=tracer_into(sent))
    stopped = desk.run(pause=pause)
    cell, sweep = sent.get_finished_spans()
    assert (sweep.name, sweep.parent, cell.name, cell.parent.span_id) == (
        *("run_sweep", None, "measure_cell"),
        sweep.context.span_id,
    )
    assert cell.attributes == {"sre_agent.sweep": desk.request.id, "sre_agent.cell": PLAN.cells[1].planned.id} | STOPPED
    assert sweep.attributes == {"sre_agent.sweep": desk.request.id, "sre_agent.service": SERVICE} | STOPPED
    assert (cell.status.is_unset, sweep.status.is_unset) == (True, True), "it was stopped, and did not fail"
    assert (stopped.end, len(looks), sum(looks) < 1) == (SweepEnd.STOPPED, 1, True)
    assert "the kill switch is on (by ana: stop it)" in stopped.why
    assert stopped.cells[:1] == first.cells
    assert [(c.outcome, "the kill switch is on" in c.why) for c in stopped.cells[1:]] == [(Outcome.FAILED, True)]
    desk.switch(on=False)
    desk.play()
    assert [c.planned.concurrency for c in desk.run().cells] == [1, 4, 8, 32]


def test_a_switch_that_cannot_be_read_stops_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubt sends nothing."""

    def unread() -> KillSwitch:
        raise DependencyFailed("not read", why="the store is gone", hint="-")

    job = desk.job()
    desk.play(end="hang")
    ended = run_sweep(
        desk.context, replace(job, pause=lambda _: monkeypatch.setattr(desk.bench.control, "kill_switch", unread))
    )
    assert (ended.end, [c.outcome for c in ended.cells]) == (SweepEnd.FAILED, [Outcome.FAILED])
    assert "the kill switch could not be read: the store is gone" in ended.why


def test_it_never_runs_beside_an_open_incident(desk: Desk) -> None:
    """One that opens meanwhile ends it; one that is open keeps it from starting and from being approved."""
    desk.play(end="hang")
    stopped = desk.run(pause=lambda _: desk.incident_opens())
    assert stopped.end is SweepEnd.STOPPED
    assert f"is open on '{SERVICE}'" in stopped.why
    with pytest.raises(PolicyRefused, match="is open on"):
        desk.run()
    with pytest.raises(PolicyRefused, match="is open on"):
        grant_sweep(desk.context, desk.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False))


def test_two_sweeps_never_load_one_server(desk: Desk) -> None:
    """The second is told so, and goes on once the first is over."""
    desk.play(end="hang")
    ends = []

    def beside(_: float) -> None:
        ends.append(desk.run(holder="there"))
        desk.switch(on=True)

    desk.run(pause=beside)
    assert ends[0].end is SweepEnd.STOPPED
    assert "another sweep loads" in ends[0].why


@pytest.mark.parametrize(
    ("script", "end", "why"),
    [
        ({"end": "errors"}, SweepEnd.NO_ANSWER, r"no request succeeded: HTTP 401 \(16\)"),
        ({"end": "crash"}, SweepEnd.FAILED, "guidellm failed: it ended with exit code 1.*no tokenizer"),
        ({"end": "garbage"}, SweepEnd.FAILED, "result of guidellm was not read|not understood"),
    ],
)
def test_what_fails_ends_it_with_what_it_has(desk: Desk, script: dict, end: SweepEnd, why: str) -> None:
    """Typed; mended, the same job goes on and measures the failed cell again."""
    desk.run(plan=PLAN.with_(cells=PLAN.cells[:1]))
    desk.play(**script)
    failed = desk.run()
    assert failed.end is end
    assert re.search(why, failed.why), failed.why
    assert failed.cells[0].outcome is Outcome.MEASURED
    desk.play()
    done = desk.run()
    assert (done.end, {c.outcome for c in done.cells}) == (SweepEnd.DONE, {Outcome.MEASURED})


def test_a_clock_that_was_set_spoils_the_cell_and_no_other(desk: Desk) -> None:
    """Times of that cell cannot be believed: it counts as failed and is measured again."""
    desk.play(takes_s=0.1)
    steps = iter([45.0])
    ended = desk.run(pause=lambda _: desk.set_clock(next(steps, 0.0)))
    assert [c.outcome for c in ended.cells] == [Outcome.FAILED, *[Outcome.MEASURED] * 3]
    assert "the clock of this machine was set by +45 s meanwhile" in ended.cells[0].why
    assert ended.end is SweepEnd.FAILED
    desk.play()
    assert desk.run().end is SweepEnd.DONE


def test_minutes_of_all_runs_together_are_limited(desk: Desk) -> None:
    """What is stored counts."""
    desk.request = desk.request.with_(max_minutes=0.05)
    desk.grant = grant_sweep(
        desk.context, desk.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False)
    ).grant
    used = desk.run()
    assert (used.end, used.why) == (SweepEnd.USED_UP, "the 0.05 minutes or 1 USD of the approval are used up")
    assert 0 < len(used.cells) < 4
    assert desk.run().cells == used.cells


def test_tries_that_came_to_nothing_count_too(desk: Desk) -> None:
    """A driver that crashes used minutes up: what is left is less than a second, so no other one is begun."""
    desk.request = desk.request.with_(max_minutes=1.05 / 60)
    desk.grant = grant_sweep(
        desk.context, desk.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False)
    ).grant
    desk.play(end="crash", takes_s=0.1)
    crashed = desk.run()
    assert (crashed.end, crashed.cells[0].outcome) == (SweepEnd.FAILED, Outcome.FAILED)
    assert "no tokenizer" in crashed.cells[0].why
    assert crashed.cells[0].spent_s >= 0.1
    desk.play()
    assert desk.run().end is SweepEnd.USED_UP
    assert (desk.tmp_path / "driver" / "orders.jsonl").read_text().count("\n") == 1


def test_an_interrupted_try_takes_nothing_from_what_is_stored(desk: Desk) -> None:
    """A cell that was cut off keeps its figures where the next try is interrupted, and what both took is summed."""
    part = desk.run(plan=PLAN.with_(cells=PLAN.cells[:1])).cells[0].with_(outcome=Outcome.PARTIAL, spent_s=7.0)
    SweepFolder(desk.folder).store(part)
    desk.play(end="hang")

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        desk.run(pause=interrupt)
    (kept,) = SweepFolder(desk.folder).cells()
    assert kept.with_(spent_s=7.0) == part
    assert kept.spent_s > 7


def killed(desk: Desk, *, after_s: float) -> None:
    """Run it in a process of its own that ends without a word, as by kill -9, while the load generator runs."""
    child = os.fork()
    if child == 0:
        end = time.monotonic() + after_s

        def pause(seconds: float) -> None:
            time.sleep(seconds)
            if time.monotonic() >= end and (desk.tmp_path / "driver" / "orders.jsonl").exists():
                os._exit(9)

        desk.run(pause=pause)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


@pytest.mark.parametrize("reserve_s", [0.5, 10.0], ids=["reserved again", "reserved once"])
def test_what_a_killed_sweep_took_counts(desk: Desk, monkeypatch: pytest.MonkeyPatch, reserve_s: float) -> None:
    """A grant of eleven seconds, and kill -9 after one: those seconds are charged, and never fewer."""
    monkeypatch.setattr(run_sweep_module, "RESERVE_S", reserve_s)
    desk.request = desk.request.with_(max_minutes=11.5 / 60)
    desk.grant = grant_sweep(
        desk.context, desk.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False)
    ).grant
    desk.play(end="hang")
    killed(desk, after_s=1.0)
    desk.play()
    again = desk.run()
    assert again.cells[0].spent_s >= 1.0
    assert again.cells[0].outcome is Outcome.MEASURED
    assert SweepFolder(desk.folder).reserved_s() == {}


def test_a_grant_that_a_killed_sweep_used_up_sends_nothing_more(desk: Desk) -> None:
    """Five seconds were approved, and more were reserved when it was killed: dollars and minutes end there."""
    desk.request = desk.request.with_(max_minutes=5 / 60)
    desk.grant = grant_sweep(
        desk.context, desk.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False)
    ).grant
    desk.play(end="hang")
    killed(desk, after_s=0.1)
    desk.play()
    again = desk.run()
    assert (again.end, [c.why for c in again.cells]) == (SweepEnd.USED_UP, ["interrupted: the process was killed"])
    assert (desk.tmp_path / "driver" / "orders.jsonl").read_text().count("\n") == 1


def test_dollars_are_limited(desk: Desk) -> None:
    """At 3,600 USD an hour, 3 USD are three seconds."""
    desk.request = desk.request.with_(max_usd=3.0, usd_per_h=3600.0)
    desk.grant = grant_sweep(
        desk.context, desk.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False)
    ).grant
    assert desk.run().end is SweepEnd.USED_UP


def test_a_grant_that_does_not_hold_sends_nothing(desk: Desk) -> None:
    """Expired, forged, of another sweep, or with changes stopped."""
    with pytest.raises(PolicyRefused, match="covers another sweep"):
        desk.run(request=desk.request.with_(max_minutes=999))
    with pytest.raises(PolicyRefused, match="not signed"):
        desk.run(grant=desk.grant.with_(receipt="00"))
    desk.switch(on=True)
    with pytest.raises(PolicyRefused, match="the kill switch is on"):
        desk.run()
    desk.switch(on=False)
    desk.set_clock(25 * 3600)
    with pytest.raises(PolicyRefused, match="expired"):
        desk.run()
    assert not desk.folder.exists()


RATES = plan_sweep(ASKED.with_(concurrencies=(4,), rates=3), Known(limits=Limits(max_num_seqs=4)))


@pytest.fixture
def rates(tmp_path: Path) -> Desk:
    """One concurrency, then three request rates between one answer in 160 ms and four at once."""
    made = Desk(tmp_path)
    made.request = made.request.with_(cells=tuple(c.planned for c in RATES.cells))
    made.grant = grant_sweep(
        made.context, made.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False)
    ).grant
    return made


def orders(desk: Desk) -> int:
    return (desk.tmp_path / "driver" / "orders.jsonl").read_text().count("\n")


def test_a_run_of_request_rates_is_stored_step_by_step(rates: Desk) -> None:
    """One order for all steps; rates lie between what one request at a time and all at once came to."""
    done = rates.run(plan=RATES)
    assert (done.end, done.why, orders(rates)) == (SweepEnd.DONE, "", 2)
    steps = done.cells[1:]
    assert [c.id for c in steps] == [f"c112-o16-r{n}of5" for n in range(1, 6)]
    assert [c.rate for c in steps] == [None, None, *(pytest.approx(rate) for rate in (12.5, 18.75, 25.0))]
    assert [c.request_rate for c in steps[:2]] == pytest.approx([6.25, 25.0], rel=0.01)
    assert steps[2].measured.latency_s.p99 == pytest.approx(0.16)
    assert all(len(read_requests(rates.folder, c)) == c.planned.requests for c in steps)
    assert [(p.number, p.of, p.cell.id if p.cell else None) for p in rates.said[2:]] == [
        (2, 6, None), *((2 + n, 6, c.id) for n, c in enumerate(steps)),
    ]  # fmt: skip
    assert rates.run(plan=RATES).cells == done.cells
    assert orders(rates) == 2


def test_an_over_saturated_rate_ends_the_run_and_the_higher_ones_are_not_sent(rates: Desk) -> None:
    """Where that was asked; nothing is left to measure afterwards."""
    rates.play(saturated_at=2)
    job = rates.job(plan=RATES)
    done = run_sweep(rates.context, replace(job, order=job.order.with_(stop_over_saturated=True)))
    assert (done.end, done.cells[-2].why) == (SweepEnd.DONE, "over-saturated: ended after 8 of 16 requests")
    assert (done.cells[-1].outcome, done.cells[-1].why) == (
        Outcome.DROPPED, "the server was over-saturated at 18.8 requests/s already",
    )  # fmt: skip
    rates.run(plan=RATES)
    assert orders(rates) == 2


def test_the_starts_of_a_run_of_request_rates_count_against_its_minutes(rates: Desk) -> None:
    """Five steps start workers four times more: of sixty seconds forty are load, and twenty seconds allow none at all."""
    rates.request = rates.request.with_(max_minutes=1.0)
    rates.grant = grant_sweep(
        rates.context, rates.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False)
    ).grant
    assert rates.run(plan=RATES).end is SweepEnd.DONE
    sent = (rates.tmp_path / "driver" / "orders.jsonl").read_text().splitlines()[-1]
    seconds = next(each["seconds"] for each in json.loads(sent)["constraints"] if each["kind"] == "max_duration")
    assert 38 / 5 < seconds <= 40 / 5
    rates.folder = rates.tmp_path / "another"
    rates.request = rates.request.with_(max_minutes=20 / 60)
    rates.grant = grant_sweep(
        rates.context, rates.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False)
    ).grant
    used = rates.run(plan=RATES)
    assert used.end is SweepEnd.USED_UP
    assert used.why.endswith("s are left, and the workers of a run of request rates start for 20 s")
    assert len(used.cells) == 1


def test_a_cell_that_is_over_saturated_within_its_warm_up_is_left_out(desk: Desk) -> None:
    """Real guidellm ends 64 at once on one slot after 17 requests: no figure, but the server did answer; the sweep goes on."""
    desk.play(end="saturated", saturated_after=6)
    job = desk.job()
    done = run_sweep(desk.context, replace(job, order=job.order.with_(stop_over_saturated=True)))
    assert (done.end, done.why) == (SweepEnd.DONE, "")
    assert [(c.planned.concurrency, c.outcome) for c in done.cells] == [
        (1, Outcome.MEASURED), (4, Outcome.MEASURED), (8, Outcome.DROPPED), (32, Outcome.DROPPED),
    ]  # fmt: skip
    assert done.cells[2].why == "over-saturated within the warm-up: 6 of 8 requests ended"
    assert (done.cells[2].measured, done.cells[2].spent_s > 0) == (None, True)
    assert desk.run().cells == done.cells


def test_the_kill_switch_ends_a_run_of_request_rates_and_it_goes_on(rates: Desk) -> None:
    """What it took is charged to its first step, and all its steps run again."""
    rates.play(hangs_from=2)

    def pause(_: float) -> None:
        if orders_begun(rates) == 2:
            rates.switch(on=True)

    stopped = rates.run(plan=RATES, pause=pause)
    assert (stopped.end, [c.id for c in stopped.cells]) == (SweepEnd.STOPPED, ["c112-o16-n4", "c112-o16-r1of5"])
    assert (stopped.cells[1].outcome, stopped.cells[1].spent_s > 0) == (Outcome.FAILED, True)
    rates.switch(on=False)
    rates.play()
    done = rates.run(plan=RATES)
    assert (done.end, len(done.cells)) == (SweepEnd.DONE, 6)
    assert {c.id: c for c in done.cells}["c112-o16-r1of5"].spent_s >= stopped.cells[1].spent_s


def orders_begun(desk: Desk) -> int:
    file = desk.tmp_path / "driver" / "orders.jsonl"
    return file.read_text().count("\n") if file.exists() else 0


def test_request_rates_count_in_the_minutes_of_the_grant(rates: Desk) -> None:
    """Together they took what their requests took; the next run has nothing left."""
    rates.play(step_s=0.1)
    rates.request = rates.request.with_(max_minutes=1.0)
    rates.grant = grant_sweep(
        rates.context, rates.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False)
    ).grant
    done = rates.run(plan=RATES)
    assert sum(c.charged_s for c in done.cells) > 50
    again = plan_sweep(ASKED.with_(concurrencies=(4,), rates=3, contexts=(112, 113)), Known())
    rates.request = rates.request.with_(cells=tuple(c.planned for c in again.cells))
    rates.grant = grant_sweep(
        rates.context, rates.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False)
    ).grant
    left = rates.run(plan=again)
    assert left.end is SweepEnd.USED_UP


def test_a_run_of_which_one_step_was_not_granted_is_not_sent(rates: Desk) -> None:
    """The load generator would send all of them."""
    rates.request = rates.request.with_(cells=rates.request.cells[:-1])
    rates.grant = grant_sweep(
        rates.context, rates.request, person=Person(who="ana", channel=Channel.COMMAND_LINE, verified=False)
    ).grant
    assert [c.id for c in rates.run(plan=RATES).cells] == ["c112-o16-n4"]
    assert orders(rates) == 1
