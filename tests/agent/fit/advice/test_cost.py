"""What an option costs is counted at the pessimistic end, and unknown things stay unknown."""

from dataclasses import replace

import pytest

from agent.catalogue.load_fit import load_fit_catalogue
from agent.catalogue.load_platforms import load_platform_catalogue
from agent.fit.advice.advice import Demand
from agent.fit.advice.cost import concurrency_of, cost_of, parameters, users_at_once
from agent.fit.assessment import Setup
from agent.fit.bounds import GIB
from agent.fit.flags.flags import parse_flags
from agent.fit.needs import Needs

FIT, SHAPES = load_fit_catalogue(), load_platform_catalogue().shapes


def made(model="google/gemma-4-12B-it-qat-w4a16-ct", accelerator="nvidia-l4", flags="--max-model-len 8192", count=1):
    return Setup(
        model=FIT.models.find(model),
        accelerator=FIT.accelerator(accelerator),
        count=count,
        flags=parse_flags(flags),
        rules=FIT.rules(None),
    )


def cost(setup, before=None, **demand):
    return cost_of(setup, setup.predict(Needs()), before=before or setup, demand=Demand(**demand), shapes=SHAPES)


def test_users_are_those_that_the_smallest_pool_holds_and_never_more_than_sequences():
    report = made().predict(Needs())
    assert users_at_once(report) == min(256, int(report.max_concurrency[0]))
    few = made(flags="--max-model-len 8192 --max-num-seqs 2").predict(Needs())
    assert users_at_once(few) == 2
    assert concurrency_of(few).container == 2


def test_an_instance_is_never_handed_more_requests_than_sequences():
    report = made(flags="--max-model-len 131072 --max-num-seqs 64").predict(Needs())
    told = concurrency_of(report)
    assert told.container == 64
    assert told.queues_from < 64


def test_offload_is_paid_in_host_memory():
    assert cost(made(flags="--max-model-len 8192 --cpu-offload-gb 2.5")).host_bytes == int(2.5 * GIB)


@pytest.mark.parametrize(
    ("flags", "demand", "words"),
    [
        ("--language-model-only", {}, ("no images or sound: text only",)),
        ("--language-model-only", {"images": False}, ()),
        ("--kv-cache-dtype fp8", {}, ("KV cache in 8 bits",)),
        ("--max-num-seqs 4", {}, ()),
    ],
)
def test_losses_of_quality_are_told_in_words(flags, demand, words):
    assert cost(made(flags=flags), before=made(flags=""), **demand).quality == words


def test_another_size_is_a_greater_loss_than_another_way_to_store():
    before = made("google/gemma-4-31B-it")
    stored = cost(made("google/gemma-4-31B-it-qat-w4a16-ct"), before)
    smaller = cost(made("google/gemma-4-12B-it-qat-w4a16-ct"), before)
    smallest = cost(made("google/gemma-4-E2B-it"), before)
    assert 0 < stored.quality_rank < smaller.quality_rank < smallest.quality_rank


def test_a_price_is_that_of_the_platform_and_unknown_where_nobody_rents_it():
    assert cost(made(), platform="ec2").price_source.startswith("ec2-g6.xlarge")
    assert cost(made(), platform="tpu_vm").usd_per_h is None  # no L4 is rented there
    here = made(accelerator="nvidia-rtx-4090")
    assert (cost(here).usd_per_h, cost(here).usd_per_million_tokens, cost(here).price_source) == (None, None, "")


def test_more_users_make_a_million_tokens_cheaper():
    setup = made("google/gemma-4-12B-it-qat-w4a16-ct")
    report = setup.predict(Needs())
    crowded = replace(report, max_concurrency=(16.0, 16.0, 16.0))
    lonely = replace(report, max_concurrency=(1.0, 1.0, 1.0))
    prices = [
        cost_of(setup, each, before=setup, demand=Demand(), shapes=SHAPES).usd_per_million_tokens
        for each in (lonely, crowded)
    ]
    assert prices[0] > 8 * prices[1]


def test_parameters_are_those_of_the_checkpoint():
    assert parameters(FIT.models.find("google/gemma-4-31B-it")) == pytest.approx(31.27e9, rel=0.01)
    assert parameters(FIT.models.find("google/gemma-4-26B-A4B-it")) == pytest.approx(25.8e9, rel=0.01)
