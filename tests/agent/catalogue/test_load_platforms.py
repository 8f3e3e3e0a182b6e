"""The tables of shapes, rates and limits are whole, and broken ones are refused with every mistake."""

import datetime as dt
from importlib import resources

import pytest

from agent.catalogue.load_fit import load_fit_catalogue
from agent.catalogue.load_platforms import load_platform_catalogue
from agent.errors import InputRejected

STARTUP = (resources.files("agent.catalogue") / "startup.toml").read_text()
GOOD = """
[[shapes]]
name = "x"
platform = "ec2"
accelerator = "nvidia-l4"
count = 1
vcpus = 4
memory_gib = 16
usd_per_h = 1.0
sleeps = false
region = "r"
as_of = "2026-08-17"
source = "a rate table"
"""


def load(tmp_path, prices, startup=STARTUP):
    (tmp_path / "prices.toml").write_text(prices)
    (tmp_path / "startup.toml").write_text(startup)
    return load_platform_catalogue(tmp_path)


def test_every_shape_names_an_accelerator_that_is_known_and_a_real_date():
    accelerators = load_fit_catalogue()
    for shape in load_platform_catalogue().shapes:
        assert accelerators.accelerator(shape.accelerator).name == shape.accelerator
        assert dt.date.fromisoformat(shape.as_of) <= dt.date(2026, 11, 22)


def test_the_platforms_of_the_recorded_deployments_are_priced():
    held = {(shape.platform, shape.accelerator, shape.count) for shape in load_platform_catalogue().shapes}
    assert held >= {
        ("cloud_run", "nvidia-l4", 1),
        ("cloud_run", "nvidia-rtx-pro-6000", 1),
        ("gke", "nvidia-l4", 2),
        ("container_apps", "nvidia-a100-80gb", 1),
        ("container_apps", "nvidia-t4", 1),
        ("ec2", "nvidia-l4", 1),
        ("tpu_vm", "tpu-v5e", 1),
        ("tpu_vm", "tpu-v6e", 1),
        ("tpu_vm", "tpu-v6e", 4),
    }


def test_a_shape_without_price_has_an_unknown_one(tmp_path):
    (shape,) = load(tmp_path, GOOD.replace("usd_per_h = 1.0\n", "")).shapes
    assert shape.usd_per_h is None


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("usd_per_h = 1.0", "usd_per_h = -1.0", "usd_per_h is -1.0"),
        ("usd_per_h = 1.0", "usd_per_h = nan", "usd_per_h is nan"),
        ("usd_per_h = 1.0", "usd_per_h = true", "usd_per_h is True"),
        ("usd_per_h = 1.0", "usd_per_h = 1.0\ngpu_usd_per_s = 1", "price and rates"),
        ("usd_per_h = 1.0", "gpu_usd_per_s = 1", "want gpu_usd_per_s, vcpu_usd_per_s and"),
        ("usd_per_h = 1.0", "usd_per_hour = 1.0", "unknown key 'usd_per_hour'"),
        ('as_of = "2026-08-17"', 'as_of = "last summer"', "as_of is 'last summer'"),
        ('source = "a rate table"', 'source = ""', "source is ''"),
        ("count = 1", "count = 0", "count is 0"),
        ('region = "r"\n', "", "region is missing"),
    ],
)
def test_a_mistake_is_refused_with_the_entrys_name(tmp_path, before, after, why):
    with pytest.raises(InputRejected, match=r"prices\.toml") as caught:
        load(tmp_path, GOOD.replace(before, after))
    assert "x: " in str(caught.value)
    assert why in str(caught.value)


def test_all_mistakes_are_told_at_once(tmp_path):
    broken = GOOD.replace("count = 1", "count = 0") + GOOD.replace('"x"', '"y"').replace("1.0", "-1.0")
    with pytest.raises(InputRejected) as caught:
        load(tmp_path, broken + GOOD)
    assert "x: count" in str(caught.value)
    assert "y: usd_per_h" in str(caught.value)
    assert "x: stands twice" in str(caught.value)


@pytest.mark.parametrize("prices", ["", "not toml ["])
def test_an_empty_or_broken_file_is_refused(tmp_path, prices):
    with pytest.raises(InputRejected):
        load(tmp_path, prices)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("max_failures = 30", "max_failure = 30", "container_apps: unknown key 'max_failure'"),
        ("image_gb = 8", "image_gib = 8", "container_apps: unknown key 'image_gib'"),
        ("low_mb_per_s = 24.7", "low_mb_per_s = 60", "gcs-fuse: bounds out of order"),
        ("rest_s = [20, 40, 120]", "rest_s = [20, 40]", "warm_up: rest_s.2 is missing"),
    ],
    ids=["limit", "image", "ends", "one end"],
)
def test_a_misspelled_limit_is_not_taken_for_none(tmp_path, before, after, why):
    """A platform without a limit would be one that waits for ever."""
    with pytest.raises(InputRejected, match=r"startup\.toml") as caught:
        load(tmp_path, GOOD, STARTUP.replace(before, after, 1))
    assert why in str(caught.value)


def test_a_start_by_a_probe_that_nobody_knows_is_refused(tmp_path):
    with pytest.raises(InputRejected, match="ec2: probe 'systemd' is none of"):
        load(tmp_path, GOOD, STARTUP.replace('platform = "ec2"', 'platform = "ec2"\nprobe = "systemd"'))
