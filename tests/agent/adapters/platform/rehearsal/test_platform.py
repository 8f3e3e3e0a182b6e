"""The rehearsal acts out what is on record, says so, and invents nothing."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.adapters.logs.file import FileLogs
from agent.adapters.platform.rehearsal.outcome import Computed
from agent.adapters.platform.rehearsal.platform import RehearsalPlatform
from agent.adapters.platform.rehearsal.scenario import load_scenario
from agent.core.change.verification import Check
from agent.core.plan.action import SetConcurrency, SetFlag, SetStartupProbe
from agent.core.service.serving import Probe, Traffic
from agent.core.value import canonical
from agent.errors import DependencyFailed, InputRejected
from agent.ports.platform import Restore
from tests.leases import HELD

Open = Callable[..., RehearsalPlatform]
EXAMPLES = Path(__file__).parents[5] / "examples"


def probe(budget_s: int) -> SetStartupProbe:
    return SetStartupProbe(
        probe=Probe(
            kind="http",
            path="/health",
            port=8080,
            initial_delay_s=0,
            period_s=30,
            timeout_s=5,
            failure_threshold=budget_s // 30,
        )
    )


def by_check(platform: RehearsalPlatform, service: str, revision: str) -> dict[Check, Any]:
    return {m.check: m for m in platform.measure(service, revision)}


def test_the_recorded_longer_probe_brings_the_model_up(
    probe_scenario: Any, open_platform: Open, order: Any, watch: Any
) -> None:
    """The start of 787 s comes up after a sixtieth of it, answers, and everything says that it is a rehearsal."""
    platform = open_platform(probe_scenario)
    service = probe_scenario.service
    started = platform.apply(order(platform, service, probe(1740)))
    watch.go(12)
    assert not platform.operation(started.name).done
    watch.go(2)
    ended = platform.operation(started.name)
    assert (ended.done, ended.ok) == (True, True)
    live = platform.describe(service)
    assert live.ready is True
    assert live.latest_ready_revision == f"{service}-sre-k1"
    measured = by_check(platform, service, f"{service}-sre-k1")
    assert measured[Check.READY].good is measured[Check.COMPLETION].good is measured[Check.TOKENS].good is True
    assert (measured[Check.SPEED].good, measured[Check.SPEED].value) == (True, 61.67)
    for says in (started.says, ended.says, live.message, *(m.says for m in measured.values())):
        assert "rehearsal, time compressed 60 times" in says


def test_a_start_that_only_follows_from_a_record_says_so(
    probe_scenario: Any, open_platform: Open, order: Any, watch: Any
) -> None:
    """800 s were never tried; the start takes 787 s, so it comes up, and the words tell the difference."""
    platform = open_platform(probe_scenario)
    started = platform.apply(order(platform, probe_scenario.service, probe(810)))
    watch.go(14)
    assert platform.operation(started.name).ok is True
    assert "follows from a record" in platform.operation(started.name).says


def test_a_shorter_probe_fails_again(probe_scenario: Any, open_platform: Open, order: Any, watch: Any) -> None:
    """The platform's words come back, nothing is ready, and the failure is heard through the sink."""
    platform = open_platform(probe_scenario)
    service = probe_scenario.service
    before = watch.now()
    started = platform.apply(order(platform, service, probe(600)))
    watch.go(14)
    ended = platform.operation(started.name)
    assert (ended.done, ended.ok) == (True, False)
    assert "startup probe" in ended.says
    assert by_check(platform, service, f"{service}-sre-k1")[Check.READY].good is False
    heard = platform.new_log_entries(before)
    assert any("STARTUP HTTP probe failed" in e.entry.get("textPayload", "") for e in heard)


def test_a_configuration_without_a_record_ends_not_recorded(
    probe_scenario: Any, open_platform: Open, order: Any, watch: Any
) -> None:
    """Nobody knows, so nothing is good and nothing is bad; the nearest record is named."""
    platform = open_platform(probe_scenario)
    service = probe_scenario.service
    started = platform.apply(order(platform, service, SetFlag(name="max-model-len", value="8192"), probe(1740)))
    watch.go(60)
    ended = platform.operation(started.name)
    assert (ended.done, ended.ok) == (True, None)
    assert "not recorded" in ended.says
    assert "flag max-model-len" in ended.says
    measured = by_check(platform, service, f"{service}-sre-k1")
    assert {m.good for m in measured.values()} == {None}
    assert {Check.READY, Check.COMPLETION} <= measured.keys()
    assert platform.describe(service).ready is None


@pytest.mark.parametrize(("came_up", "ok"), [(True, True), (False, False), (None, None)])
def test_what_is_computed_is_marked_everywhere(
    probe_scenario: Any, open_platform: Open, order: Any, watch: Any, came_up: bool | None, ok: bool | None
) -> None:
    """By arithmetic a start comes up, fails or stays unknown; no word leaves without "computed, not recorded"."""
    asked = []

    def compute(_service: str, _platform: str, config: Any) -> Computed:
        asked.append(config)
        return Computed(came_up=came_up, says="the cache holds one request", after_s=120)

    platform = open_platform(probe_scenario, compute=compute)
    service = probe_scenario.service
    started = platform.apply(order(platform, service, SetFlag(name="max-model-len", value="8192")))
    watch.go(60)
    ended = platform.operation(started.name)
    assert ended.ok is ok
    assert "--max-model-len" in asked[0].args
    mark = "computed, not recorded" if came_up is not None else "not recorded"
    measured = by_check(platform, service, f"{service}-sre-k1").values()
    assert all(mark in says for says in (ended.says, *(m.says for m in measured)))


@pytest.mark.parametrize(("tokens_per_s", "good"), [(54.5, True), (3.0, False), (None, None)])
def test_a_computed_speed_is_judged_by_what_the_owner_needs(
    probe_scenario: Any, open_platform: Open, order: Any, watch: Any, tokens_per_s: float | None, good: bool | None
) -> None:
    """The owner of this service needs 20 tokens/s; no computed speed is no answer."""
    platform = open_platform(
        probe_scenario, compute=lambda *_: Computed(came_up=True, says="fits", after_s=60, tokens_per_s=tokens_per_s)
    )
    platform.apply(order(platform, probe_scenario.service, SetFlag(name="max-model-len", value="8192")))
    watch.go(60)
    speed = by_check(platform, probe_scenario.service, f"{probe_scenario.service}-sre-k1")[Check.SPEED]
    assert (speed.good, speed.value) == (good, tokens_per_s)
    assert "computed, not recorded" in speed.says


def test_a_record_is_stronger_than_the_arithmetic(
    probe_scenario: Any, open_platform: Open, order: Any, watch: Any
) -> None:
    """Where something is on record nobody computes."""

    def compute(_service: str, _platform: str, config: Any) -> Computed:
        raise AssertionError

    platform = open_platform(probe_scenario, compute=compute)
    platform.apply(order(platform, probe_scenario.service, probe(1740)))


@pytest.mark.parametrize(
    ("actions", "ok", "speed"),
    [
        ((SetFlag(name="gpu-memory-utilization", value="0.85"),), False, None),
        ((SetFlag(name="enforce-eager", value=""),), False, None),
        (
            (
                SetFlag(name="cpu-offload-gb", value="14"),
                SetFlag(name="gpu-memory-utilization", value="0.90"),
                SetFlag(name="max-model-len", value="8192"),
            ),
            True,
            1.6,
        ),
        ((SetFlag(name="cpu-offload-gb", value="5"),), True, 2.0),
        ((SetFlag(name="cpu-offload-gb", value="2"),), None, None),
    ],
    ids=["share 0.85", "eager", "offload 14", "offload 5", "never tried"],
)
def test_the_tries_with_the_31b_model_end_as_they_did(
    oom_scenario: Any, open_platform: Open, order: Any, watch: Any, actions: tuple, ok: bool | None, speed: float | None
) -> None:
    """Two run out of memory, two come up and are too slow for the owner, what was not tried is not known."""
    platform = open_platform(oom_scenario)
    service = oom_scenario.service
    started = platform.apply(order(platform, service, *actions))
    watch.go(60)
    assert platform.operation(started.name).ok is ok
    measured = by_check(platform, service, f"{service}-sre-k1")
    if speed is not None:
        assert (measured[Check.SPEED].good, measured[Check.SPEED].value) == (False, speed)
        assert measured[Check.COMPLETION].good is None


def test_the_log_of_a_new_revision_is_written_as_it_starts(
    probe_scenario: Any, open_platform: Open, order: Any, watch: Any
) -> None:
    """Half-way only the lines until then can be read; the old revision's log stays at its recorded times."""
    platform = open_platform(probe_scenario)
    service = probe_scenario.service
    logs = FileLogs(platform.recordings)
    began = watch.now()
    platform.apply(order(platform, service, probe(1740)))
    watch.go(6)
    some = logs.instance_log(service, revision=f"{service}-sre-k1", instance=None, until=watch.now())
    watch.go(60)
    whole = logs.instance_log(service, revision=f"{service}-sre-k1", instance=None, until=watch.now())
    assert some is not None
    assert whole is not None
    assert 0 < len(some.lines) < len(whole.lines)
    assert "Application startup complete" in whole.lines[-1].text
    assert began <= whole.lines[0].at <= whole.lines[-1].at <= watch.now()
    old = logs.instance_log(service, revision=probe_scenario.live.revision, instance=None, until=watch.now())
    assert old is not None
    assert old.lines[0].at.year == 2026
    assert old.lines[0].at < began


def test_sink_entries_come_once_in_order_under_the_new_name(
    probe_scenario: Any, open_platform: Open, order: Any, watch: Any
) -> None:
    """Nothing before its time, nothing twice, and no word of the recorded revision's name or time."""
    platform = open_platform(probe_scenario)
    service = probe_scenario.service
    since = watch.now()
    assert platform.new_log_entries(None) == ()
    platform.apply(order(platform, service, probe(600)))
    heard = []
    for _ in range(20):
        watch.go(1)
        new = platform.new_log_entries(since)
        heard += new
        since = new[-1].at if new else since
    assert len(heard) == 3
    assert [e.at for e in heard] == sorted(e.at for e in heard)
    assert len({e.entry["insertId"] for e in heard}) == 3
    for sent in heard:
        assert sent.entry["timestamp"].startswith("2026-11-21T10:00")
        assert probe_scenario.live.revision not in str(sent.entry)
    assert heard[0].entry["resource"]["labels"]["revision_name"] == f"{service}-sre-k1"


def test_undoing_to_a_broken_state_fails_as_it_did(
    probe_scenario: Any, open_platform: Open, order: Any, watch: Any
) -> None:
    """The prior template is back byte by byte, and does not serve, because it never did."""
    platform = open_platform(probe_scenario)
    service = probe_scenario.service
    before = platform.describe(service)
    traffic = canonical([t.model_dump(mode="json") for t in before.traffic]).decode()
    platform.apply(order(platform, service, SetFlag(name="max-model-len", value="8192")))
    watch.go(60)
    undo = Restore(
        service=service,
        incident="inc-1",
        effect_key="u1",
        revision=f"{service}-sre-u1",
        etag=platform.describe(service).etag,
        template=before.template,
        traffic=traffic,
        lease_end=HELD,
    )
    started = platform.restore(undo)
    watch.go(60)
    assert platform.operation(started.name).ok is False
    assert platform.restored(service, template=before.template, traffic=traffic)


def test_after_a_staged_change_traffic_follows_the_latest_again(
    oom_scenario: Any, open_platform: Open, order: Any, watch: Any
) -> None:
    """Where traffic followed the latest revision before, it does so afterwards: no pin is left behind."""
    platform = open_platform(oom_scenario)
    service = oom_scenario.service
    platform.apply(order(platform, service, SetFlag(name="cpu-offload-gb", value="5"), staged=True))
    watch.go(60)
    live = platform.describe(service)
    assert live.traffic == (Traffic(revision=oom_scenario.live.latest_ready_revision, percent=100),)
    platform.shift(service, revision=f"{service}-sre-k1", etag=live.etag, effect_key="s1", lease_end=HELD)
    assert platform.describe(service).traffic == (Traffic(percent=100),)


def test_traffic_never_goes_to_a_revision_that_failed(
    oom_scenario: Any, open_platform: Open, order: Any, watch: Any
) -> None:
    """Neither to one that does not exist."""
    platform = open_platform(oom_scenario)
    service = oom_scenario.service
    platform.apply(order(platform, service, SetFlag(name="enforce-eager", value=""), staged=True))
    watch.go(60)
    for revision in (f"{service}-sre-k1", "nobody"):
        with pytest.raises(InputRejected):
            platform.shift(
                service, revision=revision, etag=platform.describe(service).etag, effect_key="s1", lease_end=HELD
            )


def test_a_platform_without_a_stand_in_takes_no_changes(probe_scenario: Any, open_platform: Open) -> None:
    """Where a person makes the changes, the rehearsal does not pretend that we could."""
    platform = open_platform(probe_scenario.with_(takes_changes=False))
    assert not platform.takes_changes(probe_scenario.service)
    with pytest.raises(InputRejected):
        platform.describe(probe_scenario.service)
    assert platform.recordings(probe_scenario.service)


def test_ready_and_dead_again(probe_scenario: Any, open_platform: Open, order: Any, watch: Any) -> None:
    """A start on record that came up and crashed 120 s later does so here, and is not ready any more."""
    long = probe_scenario.outcome[1].with_(crashes_after_s=120, message="the container died")
    platform = open_platform(probe_scenario.with_(outcome=(probe_scenario.outcome[0], long)))
    service = probe_scenario.service
    platform.apply(order(platform, service, probe(1740)))
    watch.go(14)
    assert by_check(platform, service, f"{service}-sre-k1")[Check.READY].good is True
    assert platform.describe(service).ready is True
    watch.go(2)
    assert by_check(platform, service, f"{service}-sre-k1")[Check.READY].good is False
    live = platform.describe(service)
    assert live.ready is False
    assert "the container died" in live.message


def test_a_revision_put_back_does_not_meet_its_old_trouble_at_once(open_platform: Open, order: Any, watch: Any) -> None:
    """What a healthy revision met hours after its start, alerts among it, is not part of the start."""
    scenario = load_scenario(EXAMPLES / "gemma4-26b-l4-queue" / "scenario.toml")
    platform = open_platform(scenario)
    before = platform.describe(scenario.service)
    platform.apply(order(platform, scenario.service, SetConcurrency(concurrency=8)))
    watch.go(60)
    since = watch.now()
    undo = Restore(
        service=scenario.service,
        incident="inc-1",
        effect_key="u1",
        revision="back",
        etag=platform.describe(scenario.service).etag,
        template=before.template,
        traffic=canonical([t.model_dump(mode="json") for t in before.traffic]).decode(),
        lease_end=HELD,
    )
    started = platform.restore(undo)
    watch.go(86_400)
    assert platform.operation(started.name).ok is True
    assert platform.new_log_entries(since) == ()
    log = FileLogs(platform.recordings).instance_log(
        scenario.service, revision="back", instance=None, until=watch.now()
    )
    assert "Application startup complete" in log.lines[-1].text


def test_only_cloud_run_has_cloud_runs_limits(open_platform: Open, order: Any) -> None:
    """A process on a host has no probe that a platform could refuse."""
    scenario = load_scenario(EXAMPLES / "vllm-cpu-worker-killed" / "scenario.toml")
    platform = open_platform(scenario)
    long = SetStartupProbe(probe=Probe(kind="http", path="/health", port=8020, period_s=3600, timeout_s=5))
    before = platform.describe(scenario.service)
    platform.validate(order(platform, scenario.service, long))
    assert platform.describe(scenario.service) == before
    on_cloud_run = load_scenario(EXAMPLES / "gemma4-26b-l4-startup-probe" / "scenario.toml")
    platform = open_platform(on_cloud_run)
    with pytest.raises(InputRejected, match=r"startup probe|startupProbe|period"):
        platform.validate(order(platform, on_cloud_run.service, long))


def test_a_file_that_cannot_be_used_is_a_failed_dependency(probe_scenario: Any, tmp_path: Any, watch: Any) -> None:
    """Another try may help; nothing was changed."""
    (tmp_path / "world.db").write_bytes(b"this is no database, but long enough to look like one" * 40)
    with pytest.raises(DependencyFailed, match=r"world\.db"):
        RehearsalPlatform(tmp_path / "world.db", {probe_scenario.service: probe_scenario}, watch)


def test_killed_at_any_statement_it_changed_all_or_nothing(
    oom_scenario: Any, open_platform: Open, order: Any, watch: Any
) -> None:
    """Kill -9 between any two SQL statements of an apply: opened again, the effect is whole or absent, and a retry makes one."""
    service = oom_scenario.service
    whole = False
    for count in range(1, 60):
        platform = open_platform(oom_scenario)
        wanted = order(platform, service, SetFlag(name="cpu-offload-gb", value="5"), key=f"k{count}")
        before = platform.describe(service)
        del platform  # with its connection, which must not cross a fork
        _apply_and_die(lambda: open_platform(oom_scenario), wanted, after_statements=count)
        again = open_platform(oom_scenario)
        live = again.describe(service)
        found = again.find(service, f"k{count}")
        assert (found is None) == (live.generation == before.generation)
        assert again.apply(wanted).name.endswith(f"k{count}")
        assert again.describe(service).generation == before.generation + 1
        assert list(again.describe(service).stamps.values()).count(f"k{count}") == 1
        del again
        watch.go(60)
        whole = whole or found is not None
        if whole:
            break
    assert whole, "no count of statements was enough for a whole apply"
    assert count > 5


def _apply_and_die(opened: Callable[[], RehearsalPlatform], wanted: Any, *, after_statements: int) -> None:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    seen = 0

    def count(_statement: str) -> None:
        nonlocal seen
        seen += 1
        if seen >= after_statements:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        platform = opened()
        platform._file._connection().set_trace_callback(count)
        platform.apply(wanted)
    finally:
        os._exit(0)
