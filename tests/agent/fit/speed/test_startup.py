"""Start-up times and the probes that wait for them."""

from hypothesis import given
from hypothesis import strategies as st

from agent.catalogue.load_platforms import load_platform_catalogue
from agent.fit.bounds import Bounds
from agent.fit.speed.startup import probe_budget, startup_time

DATA = load_platform_catalogue()
LIMITS = DATA.probe_limits
CHECKPOINT_26B = 16_440_000_000
LOAD_RATE = Bounds.around(int(CHECKPOINT_26B / 664.24), below=0.2, above=0.2)  # one measured load, a fifth either way


def test_the_26b_on_an_l4_gets_a_probe_that_would_have_let_it_start():
    """664 s of load and 99 s of compilation, as recorded; the default TCP probe gave it 240 s."""
    start = startup_time(CHECKPOINT_26B, LOAD_RATE, DATA.warm_up)
    assert start.low <= 664 + 99 + 4 <= start.high
    probe = probe_budget(start, LIMITS["cloud_run_gpu"])
    assert probe.enough
    assert probe.budget_s >= 664 + 99 + 4
    assert probe.budget_s >= start.high
    assert probe.engine_ready_timeout_s >= probe.budget_s > 600


def test_an_unmeasured_cold_start_over_fuse_is_still_covered():
    start = startup_time(CHECKPOINT_26B, DATA.load_rates["gcs-fuse"].bytes_per_s, DATA.warm_up)
    assert start.low <= 767 <= start.high
    assert probe_budget(start, LIMITS["cloud_run_gpu"]).enough


def test_a_start_longer_than_the_platform_waits_is_said_not_hidden():
    start = startup_time(62_545_905_784, LOAD_RATE, DATA.warm_up)
    probe = probe_budget(start, LIMITS["cloud_run_gpu"])
    assert not probe.enough
    assert probe.budget_s == 240 + 1800
    assert "2040 s at most" in probe.note


def test_without_size_or_rate_the_time_is_unknown():
    assert startup_time(None, Bounds.exactly(10**9), DATA.warm_up) is None
    assert startup_time(10**9, None, DATA.warm_up) is None


def test_eager_mode_compiles_nothing():
    rate = Bounds.exactly(10**9)
    lazy = startup_time(10**10, rate, DATA.warm_up)
    eager = startup_time(10**10, rate, DATA.warm_up, eager=True)
    assert lazy.best - eager.best == DATA.warm_up.compile_s.best


@given(start=st.integers(1, 6000), platform=st.sampled_from(sorted(LIMITS)))
def test_every_probe_keeps_its_platforms_limits_and_outlasts_the_start_or_says_it_cannot(start, platform):
    limits = LIMITS[platform]
    probe = probe_budget(Bounds.exactly(start), limits)
    assert 0 <= probe.initial_delay_s <= (limits.max_initial_delay_s or 0)
    assert 1 <= probe.timeout_s < probe.period_s <= (limits.max_period_s or 10**9)
    assert 1 <= probe.failure_threshold <= (limits.max_failures or 10**9)
    assert probe.failure_threshold * probe.period_s <= (limits.max_product_s or 10**9)
    assert probe.budget_s == probe.initial_delay_s + probe.failure_threshold * probe.period_s
    assert probe.enough is (probe.budget_s >= start)
    assert probe.engine_ready_timeout_s >= max(600, probe.budget_s)
    if limits.max_total_s is None or start * 1.3 < limits.max_total_s - 10:
        assert probe.enough
