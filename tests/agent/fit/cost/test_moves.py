"""Where else the same devices can be rented, in an order that puts what starts before what is cheap."""

from functools import partial

import pytest

from agent.app.fit_answers import FitAnswers
from agent.catalogue.load_fit import load_fit_catalogue
from agent.catalogue.load_platforms import bundled_start, load_platform_catalogue
from agent.fit.advice.advice import Demand, Reach
from agent.fit.advice.advise import advise
from agent.fit.advice.alternatives import Market
from agent.fit.assessment import Setup
from agent.fit.bounds import Bounds
from agent.fit.cost.moves import with_moves
from agent.fit.flags.flags import parse_flags
from agent.fit.question import question_from
from agent.presentation.advice_text import advice_text

FIT, PLATFORMS = load_fit_catalogue(), load_platform_catalogue()
SMALL, BIG = "google/gemma-4-12B-it-qat-w4a16-ct", "google/gemma-4-31B-it-qat-w4a16-ct"
ANSWERS = FitAnswers(catalogue=FIT, find_model=FIT.models.find, shapes=PLATFORMS.shapes)


def asked(model=SMALL, *, platform="cloud_run", flags="--max-model-len 8192", start_of=None):
    setup = Setup(
        model=FIT.models.find(model),
        accelerator=FIT.accelerator("nvidia-l4"),
        count=1,
        flags=parse_flags(flags),
        rules=FIT.rules("0.23"),
    )
    demand = Demand(platform=platform)
    market = Market(models=FIT.models.entries, accelerators=FIT.accelerators, shapes=PLATFORMS.shapes)
    return with_moves(
        advise(setup, demand, market), setup, demand, models=FIT.models.find, accelerators=FIT.accelerators,
        shapes=PLATFORMS.shapes, starts=PLATFORMS.starts, start_of=start_of or partial(bundled_start, PLATFORMS),
    )  # fmt: skip


def always(low, best, high):
    return lambda *_: Bounds(low=low, best=best, high=high)


def test_the_same_devices_elsewhere_by_price():
    """One L4: Cloud Run 1.4209 USD/h; a g2-standard-4 0.7068, a g6.xlarge 0.8048. Nobody else rents one."""
    found = asked().moves
    assert [(m.shape.name, m.shape.usd_per_h, m.usd_per_h_before) for m in found] == [
        ("gke-g2-standard-4", 0.7068, pytest.approx(1.4209, abs=0.01)),
        ("ec2-g6.xlarge", 0.8048, pytest.approx(1.4209, abs=0.01)),
    ]
    assert [m.misses for m in found] == [(), ()]


def test_what_does_not_wait_for_the_start_comes_last_and_says_why():
    """From EC2 with a start of 2,500 s: Cloud Run waits 2,040 s at most."""
    found = asked(platform="ec2", start_of=always(1000, 1500, 2500)).moves
    assert [m.shape.platform for m in found] == ["gke", "cloud_run"]
    assert found[1].misses == ("a slow start takes 2,500 s, and cloud_run waits 2,040 s at most",)


def test_without_a_platform_all_of_them_are_named_and_none_is_before():
    assert {(m.shape.platform, m.usd_per_h_before) for m in asked(platform=None).moves} == {
        ("cloud_run", None), ("gke", None), ("ec2", None)
    }  # fmt: skip


def test_other_hardware_whose_platform_does_not_wait_comes_after_the_rest():
    """31B on one L4 fits nowhere: what is proposed elsewhere says what its start meets there."""
    advice = asked(BIG, start_of=always(1000, 1500, 2500))
    far = [o for o in advice.options if o.reach is Reach.HARDWARE]
    assert far
    assert all(o.start is not None for o in far)
    late = [bool(o.start and o.start.misses) for o in advice.options]
    assert late == sorted(late)
    assert all(late[n] == (o.cost.platform == "cloud_run") for n, o in enumerate(advice.options) if o in far)


def test_the_answer_says_price_start_image_and_document():
    """As the command prints it, and as programs read it."""
    question = question_from({"model": SMALL, "accelerator": "nvidia-a100-80gb", "flags": "--max-model-len 8192"})
    advice = ANSWERS.advise(question, Demand(platform="gce"))
    text = advice_text(advice)
    assert "container-apps-a100 (container_apps" in text
    assert "its startup probe allows 7,260 s at most" in text
    assert "an image of 8 GB at most" in text
    assert "azure-container-apps#1428, 2026-11-22" in text
    (move,) = [m for m in advice.to_json()["moves"] if m["platform"] == "container_apps"]
    assert (move["from"], move["scales_to_zero"], move["start"]["waits_at_most_s"]) == ("gce", True, 7260)
