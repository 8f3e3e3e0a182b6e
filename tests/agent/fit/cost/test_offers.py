"""Rows computed by hand, needs that are missed, and where to run it."""

import pytest

from agent.catalogue.load_fit import load_fit_catalogue
from agent.catalogue.load_platforms import load_platform_catalogue
from agent.fit.bounds import Bounds
from agent.fit.cost.load import Load
from agent.fit.cost.offers import MeasuredSpeed, Wanted, flags_on, offers, where_to_run
from agent.fit.flags.flags import Flags, parse_flags
from agent.fit.needs import Needs

FIT, PLATFORMS = load_fit_catalogue(), load_platform_catalogue()
MODEL = FIT.models.find("google/gemma-4-12B-it-qat-w4a16-ct")
BIG = "google/gemma-4-31B-it-qat-w4a16-ct"


def wanted(**changes) -> Wanted:
    flags = changes.pop("flags", "--max-model-len 8192")
    base = {"model": MODEL, "flags": parse_flags(flags), "rules": FIT.rules("0.23")}
    return Wanted(**{**base, **changes})


def rows(want: Wanted, *names: str, **more):
    shapes = [shape for shape in PLATFORMS.shapes if not names or shape.name in names]
    return {row.shape.name: row for row in offers(want, shapes, FIT.accelerators, idle_s=PLATFORMS.idle_s, **more)}


def measured(requests: int, output: float, *, accelerator="nvidia-l4", count=1, prompts=None) -> MeasuredSpeed:
    return MeasuredSpeed(
        model=MODEL.name, accelerator=accelerator, count=count, requests=requests,
        output_tokens_per_s=output, input_tokens_per_s=prompts, source="a sweep",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "month", "with_idle", "busy"),
    [
        # 80 tokens/s = 288,000 an hour. 1.0465 USD/h x 0.3 x 730 h; 1.0465 / 0.288; asleep it costs nothing.
        pytest.param("cloud-run-l4-small", 229.19, 3.634, 3.634, id="Cloud Run, scales to zero"),
        # (0.0002909 + 8 x 0.000018 + 32 x 0.000002) x 3,600 = 1.79604 USD/h
        pytest.param("cloud-run-l4-zonal", 393.33, 6.236, 6.236, id="Cloud Run, zonal redundancy"),
        # 0.70683 USD/h, all of 730 h: 0.7068 / 0.288 busy, / 0.3 with the idle hours
        pytest.param("gke-g2-standard-4", 515.96, 8.181, 2.454, id="GKE"),
        pytest.param("ec2-g6.xlarge", 587.50, 9.315, 2.794, id="EC2"),
    ],
)
def test_a_row_is_what_it_comes_to_by_hand(shape, month, with_idle, busy):
    """12B at 80 tokens/s (seed 001's figure), 30 % of the time."""
    row = rows(wanted(load=Load(busy=0.3)), shape, measured=[measured(1, 80.0)])[shape]
    assert row.bill.usd_per_month == pytest.approx(month, abs=0.02)
    assert row.bill.output[1] == pytest.approx(with_idle, abs=0.002)
    assert row.bill.busy_output[1] == pytest.approx(busy, abs=0.002)


@pytest.mark.parametrize(
    ("shape", "accelerator", "count", "month", "busy"),
    [
        # 2.3436 + 2.96 + 3.56 = 8.8636 USD/h x 0.3 x 730; 98.73 tokens/s = 355,428 an hour
        pytest.param("container-apps-a100", "nvidia-a100-80gb", 1, 1941.1, 24.94, id="Container Apps"),
        # 2.70 x 730; 2.70 / 0.355428
        pytest.param("tpu-v6e-1", "tpu-v6e", 1, 1971.0, 7.597, id="TPU"),
        pytest.param("tpu-v6e-4", "tpu-v6e", 4, 7884.0, 30.39, id="TPU, four chips"),
    ],
)
def test_other_platforms_by_hand(shape, accelerator, count, month, busy):
    """The same arithmetic at 98.73 tokens/s (seed 004's figure)."""
    cell = measured(1, 98.73, accelerator=accelerator, count=count)
    row = rows(wanted(load=Load(busy=0.3)), shape, measured=[cell])[shape]
    assert row.bill.usd_per_month == pytest.approx(month, abs=0.5)
    assert row.bill.busy_output[1] == pytest.approx(busy, abs=0.01)


def test_wake_ups_are_billed_with_their_start_and_idle_time():
    """6 times (300 s + 900 s) are 7,200 s, a twelfth of the day: 1.0465 x (0.1 + 1/12) x 730."""
    want = wanted(load=Load(busy=0.1, wakes_per_day=6), start_s=300.0)
    row = rows(want, "cloud-run-l4-small")["cloud-run-l4-small"]
    assert row.bill.usd_per_month == pytest.approx(1.04652 * (0.1 + 1 / 12) * 730, abs=0.01)


def test_the_cheapest_that_meets_the_needs_is_where_to_run_it():
    """Rarely busy: what scales to zero. Always busy: the cheapest hour. Of 31B no shape without enough memory."""
    rare, always = (offers(wanted(load=Load(busy=b)), PLATFORMS.shapes, FIT.accelerators) for b in (0.1, 1.0))
    assert where_to_run(rare).shape.name == "cloud-run-l4-small"
    assert where_to_run(always).shape.name == "gke-g2-standard-4"
    big = offers(wanted(model=FIT.models.find(BIG)), PLATFORMS.shapes, FIT.accelerators)
    assert where_to_run(big).fits is True
    assert [row.meets for row in big] == sorted((row.meets for row in big), reverse=True)


@pytest.mark.parametrize(
    ("want", "shape", "missed"),
    [
        pytest.param({"flags": "--max-model-len 4096", "needs": Needs(context_tokens=8192)}, "ec2-g6.xlarge",
                     "4,096 tokens of context, 8,192 are needed", id="context"),
        pytest.param({"needs": Needs(users=64), "flags": "--max-model-len 8192 --max-num-seqs 8"}, "ec2-g6.xlarge",
                     "8 requests of full length at once, 64 are needed", id="users"),
        pytest.param({"tokens_per_s": 1000.0}, "ec2-g6.xlarge", "tokens/s for one request, 1000 are needed", id="speed"),
        pytest.param({"flags": "--max-model-len 262144", "model": FIT.models.find(BIG)}, "ec2-g6.xlarge",
                     "does not fit", id="memory"),
        pytest.param({"flags": "--tensor-parallel-size 3"}, "ec2-g6.12xlarge", "", id="impossible"),
    ],
)  # fmt: skip
def test_what_is_missed_is_said(want, shape, missed):
    row = rows(wanted(**want), shape)[shape]
    assert not row.meets
    assert missed in "; ".join(row.misses)
    assert row.misses


def test_a_measured_speed_replaces_the_computed_one_of_the_same_hardware_only():
    """At five requests the cell of four counts: more was not measured. Input is priced where it was measured."""
    cells = [measured(1, 60.0), measured(4, 200.0, prompts=800.0), measured(8, 300.0)]
    found = rows(wanted(load=Load(requests=5)), "ec2-g6.xlarge", "ec2-g5.xlarge", measured=cells)
    assert found["ec2-g6.xlarge"].throughput.output == (200.0, 200.0)
    assert found["ec2-g6.xlarge"].bill.busy_input == pytest.approx(0.8048 / (800 * 3600) * 1e6)
    assert not found["ec2-g5.xlarge"].throughput.measured
    assert found["ec2-g5.xlarge"].bill.busy_input is None
    unmeasured = rows(wanted(load=Load(requests=1)), "ec2-g6.xlarge", measured=[measured(4, 200.0)])
    assert not unmeasured["ec2-g6.xlarge"].throughput.measured


def test_requests_that_wait_add_no_speed():
    """--max-num-seqs 2: of eight requests two run."""
    row = rows(wanted(load=Load(requests=8), flags="--max-model-len 8192 --max-num-seqs 2"), "ec2-g6.xlarge")
    assert row["ec2-g6.xlarge"].requests == 2


def test_tensors_are_split_over_the_devices_of_the_shape_unless_the_flags_say_how():
    assert flags_on(Flags(), 4).tp == 4
    assert flags_on(Flags(), 1).tensor_parallel_size is None
    assert flags_on(parse_flags("--tensor-parallel-size 2"), 4).tp == 2
    assert flags_on(parse_flags("--pipeline-parallel-size 4"), 4).tp == 1


def test_a_shape_whose_platform_does_not_wait_for_a_slow_start_misses_the_needs():
    """2,041 s at the slow end: Cloud Run waits 2,040 s at most, a virtual machine as long as it takes."""
    want = wanted(start_range=Bounds(low=900, best=1200, high=2041))
    found = rows(want, "cloud-run-l4", "ec2-g6.xlarge", starts=PLATFORMS.starts)
    assert found["cloud-run-l4"].misses == ("a slow start takes 2,041 s, and cloud_run waits 2,040 s at most",)
    assert (found["cloud-run-l4"].meets, found["ec2-g6.xlarge"].meets) == (False, True)
    shorter = rows(wanted(start_range=Bounds(low=900, best=1200, high=2040)), "cloud-run-l4", starts=PLATFORMS.starts)
    assert shorter["cloud-run-l4"].meets


def test_what_is_not_rented_on_demand_is_priced_and_never_recommended():
    """A rate for hours agreed beforehand is no answer to where a server runs."""
    found = rows(wanted(), "tpu-v6e-1", "tpu-v6e-1-flex")
    assert "not rented on demand: hours agreed beforehand" in found["tpu-v6e-1-flex"].misses
    assert where_to_run(list(found.values())).shape.name == "tpu-v6e-1"
