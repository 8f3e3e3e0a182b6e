"""What a start meets on each platform, by hand, from the catalogue's limits."""

import pytest

from agent.catalogue.load_platforms import load_platform_catalogue
from agent.fit.bounds import Bounds
from agent.fit.speed.platform_start import start_on

PLATFORMS = load_platform_catalogue()
USUAL = Bounds(low=196, best=400, high=635)  # 635 s and a quarter on top are 794 s
LONG = Bounds(low=2000, best=4000, high=6000)
TOO_LONG = Bounds(low=3000, best=5000, high=7261)

ROWS = [
    # 80 x 10 s = 800 s; at most 1,800 s of failures and 240 s of delay
    pytest.param("cloud_run", USUAL, 2040, True, (0, 10, 80), 800, id="Cloud Run"),
    # 30 failures at most: 794 / 30 -> 27 s each, 810 s; at most 60 + 30 x 240 s
    pytest.param("container_apps", USUAL, 7260, True, (0, 27, 30), 810, id="Container Apps"),
    pytest.param("gke", USUAL, None, True, (0, 10, 80), 800, id="GKE"),
    pytest.param("ec2", USUAL, None, True, None, 794, id="EC2"),
    pytest.param("cloud_run", LONG, 2040, False, (240, 10, 180), 2040, id="Cloud Run, too long"),
    # 6,000 s and a quarter are 7,500: all that there is, 7,260 s, still outlasts the start itself
    pytest.param("container_apps", LONG, 7260, True, (60, 240, 30), 7260, id="Container Apps, all of its budget"),
    pytest.param("container_apps", TOO_LONG, 7260, False, (60, 240, 30), 7260, id="Container Apps, too long"),
    pytest.param("tpu_vm", TOO_LONG, None, True, None, 9077, id="TPU VM"),
]


@pytest.mark.parametrize(("platform", "start", "longest", "enough", "probe", "patience"), ROWS)
def test_a_start_there_by_hand(platform, start, longest, enough, probe, patience):
    """The probe, its limit, and vLLM's own patience raised along."""
    there = start_on(PLATFORMS.starts[platform], start)
    assert (there.longest_s, there.enough, there.engine_ready_timeout_s) == (longest, enough, patience)
    found = there.probe and (there.probe.initial_delay_s, there.probe.period_s, there.probe.failure_threshold)
    assert found == probe
    assert bool(there.misses) is not enough


def test_a_start_of_unknown_length_is_no_failure_and_no_success():
    there = start_on(PLATFORMS.starts["cloud_run"], None)
    assert (there.enough, there.misses, there.probe, there.engine_ready_timeout_s) == (None, "", None, None)
    assert start_on(PLATFORMS.starts["ec2"], None).enough is True


def test_a_short_start_needs_no_more_patience():
    """600 s are vLLM's own."""
    assert start_on(PLATFORMS.starts["ec2"], Bounds(low=60, best=90, high=480)).engine_ready_timeout_s is None


def test_every_platform_that_is_priced_says_how_it_starts_with_document_and_date():
    assert {shape.platform for shape in PLATFORMS.shapes} == set(PLATFORMS.starts)
    assert all(each.source and each.date for each in PLATFORMS.starts.values())
    apps = start_on(PLATFORMS.starts["container_apps"], USUAL).to_json()
    assert (apps["image_gb_at_most"], apps["waits_at_most_s"], apps["date"]) == (8, 7260, "2026-11-22")
    assert "azurerm #31980" in apps["probe_source"]
