"""Measurements feed a calibration: three that agree narrow a range, and removing one gives it back."""

import json

import pytest

from agent.adapters.load.sweep_folder import store_cell
from agent.entrypoints.cli.main import main
from tests.agent.core.sweep import values

MODEL = "google/gemma-4-12B-it-qat-w4a16-ct"
FIT = [
    "fit",
    "--model",
    MODEL,
    "--accelerator",
    "nvidia-l4",
    "--vllm",
    "0.32",
    "--flags",
    "--max-model-len 8192",
    "--json",
]
COST = ["cost", "--model", MODEL, "--accelerator", "nvidia-l4", "--vllm", "0.32", "--json"]
LOG = """INFO API server version 0.32.0
INFO Loading weights took 80.00 seconds
INFO PyTorch activation peak memory takes 0.60GiB
"""


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")


def ask(capsys, *words):
    code = main(["calibration", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def sweep(tmp_path, number, itl_s, **changes):
    """A sweep of one request at a time, its tokens so far apart."""
    given = {"model": MODEL, "accelerator": "nvidia-l4", "vllm": "0.32.0", "flags": "serve x --max-model-len 8192"}
    made = values.provenance(sweep=f"s-{number}", instances=1, **{**given, **changes})
    folder = tmp_path / f"sweep-{number}"
    store_cell(folder, values.cell(1, requests=values.rows(1, itl_s=itl_s), provenance=made))
    return str(folder)


def speed(capsys, words=FIT):
    main(words)
    return json.loads(capsys.readouterr().out)


def listed(capsys):
    """The rows of the list below its headings, one space between cells."""
    return [" ".join(line.split()) for line in ask(capsys, "list")[1].splitlines()[1:]]


def test_three_sweeps_that_agree_narrow_the_speed_and_removing_one_gives_it_back(capsys, tmp_path):
    """40, 42 and 41 ms a token: 23.8 to 25 tokens/s, and a tenth on both sides. Bundled: a factor of two."""
    before = speed(capsys)["ranges"]["decode_tokens_per_s"]
    for number, itl_s in ((1, 0.040), (2, 0.042)):
        assert ask(capsys, "add", sweep(tmp_path, number, itl_s))[0] == 0
    assert speed(capsys)["ranges"]["decode_tokens_per_s"] == before
    assert listed(capsys)[0].endswith(" 2 - no: 2 of the 3 that must agree")
    code, out, err = ask(capsys, "add", sweep(tmp_path, 3, 0.041), "--json")
    assert (code, err) == (0, "1 of 1 measurements are new\n")
    after = speed(capsys)
    assert after["ranges"]["decode_tokens_per_s"] == pytest.approx([0.9 / 0.042, 1.1 / 0.040], rel=0.01)
    assert any("by measurements here" in said for said in after["assumptions"])
    row = next(row for row in speed(capsys, COST)["rows"] if row["shape"] == "ec2-g6.xlarge")
    assert row["tokens_per_s"] == pytest.approx([0.9 / 0.042, 1.1 / 0.040], rel=0.01)
    assert (row["speed"], row["speed_source"]) == (
        "computed",
        "computed: by the share of the bandwidth that was measured here",
    )
    name = json.loads(out)["id"]
    assert ask(capsys, "remove", name) == (0, f"{name} was removed\n", "")
    assert ask(capsys, "remove", name)[0] == 1
    assert speed(capsys)["ranges"]["decode_tokens_per_s"] == before


def test_own_cards_are_priced_by_what_was_measured_on_them(capsys, tmp_path):
    """A card that nobody rents: the machine's own row has the measured range; advice and fit have it too."""
    for number, itl_s in ((1, 0.040), (2, 0.042), (3, 0.041)):
        assert ask(capsys, "add", sweep(tmp_path, number, itl_s, accelerator="rtx-3090"))[0] == 0
    card = ["--model", MODEL, "--accelerator", "rtx-3090", "--vllm", "0.32", "--json"]
    own = ["--own-price", "2628", "--own-watts", "400", "--own-usd-per-kwh", "0.25"]
    (row,) = speed(capsys, ["cost", *card, *own])["rows"]
    assert row["tokens_per_s"] == pytest.approx([0.9 / 0.042, 1.1 / 0.040], rel=0.01)
    found = speed(
        capsys,
        ["advise", *card, "--flags", "--max-model-len 262144 --gpu-memory-utilization 0.5", "--need-context", "8192"],
    )
    costs = [found["current"].get("cost", {}), *(option["cost"] for option in found["options"])]
    assert any(cost.get("decode_tokens_per_s") == pytest.approx([0.9 / 0.042, 1.1 / 0.040], rel=0.02) for cost in costs)


def test_a_load_rate_of_another_storage_is_shown_only(capsys, tmp_path):
    """Starts are computed for Cloud Storage FUSE: what a disk does changes no figure, and the list says so."""
    for number, seconds in enumerate((80, 84, 82)):
        path = tmp_path / f"start-{number}.log"
        path.write_text(LOG.replace("80.00", f"{seconds}.00"))
        ask(capsys, "add", str(path), "--model", MODEL, "--accelerator", "l4", "--storage", "disk")
    (said,) = [row for row in listed(capsys) if row.startswith("load_rate")]
    assert " 0.32 disk 3 " in said
    assert said.endswith("shown only: starts are computed for gcs-fuse")
    rows = [json.loads(line) for line in ask(capsys, "list", "--json")[1].splitlines()]
    assert [row["used"] for row in rows] == [False, False]


def test_three_that_differ_are_shown_and_not_used(capsys, tmp_path):
    before = speed(capsys)["ranges"]["decode_tokens_per_s"]
    for number, itl_s in ((1, 0.040), (2, 0.041), (3, 0.080)):
        ask(capsys, "add", sweep(tmp_path, number, itl_s))
    assert " 3 - no: they differ by more than a factor of 1.3: " in listed(capsys)[0]
    assert speed(capsys)["ranges"]["decode_tokens_per_s"] == before


def test_a_source_counts_once(capsys, tmp_path):
    folder = sweep(tmp_path, 1, 0.04)
    assert ask(capsys, "add", folder)[0] == 0
    code, _, err = ask(capsys, "add", folder)
    assert (code, err) == (1, "0 of 1 measurements are new\n")
    (row,) = [json.loads(line) for line in ask(capsys, "list", "--json")[1].splitlines()]
    assert (row["n"], row["range"], row["used"]) == (1, None, False)


def test_a_start_up_log_gives_activations_and_the_load_rate_of_a_named_storage(capsys, tmp_path):
    """Three starts: 80, 84 and 82 s; wake-ups then cost what those starts take, and no proof moves."""
    before, dear = speed(capsys), speed(capsys, [*COST, "--wakes-per-day", "24"])
    for number, seconds in enumerate((80, 84, 82)):
        path = tmp_path / f"start-{number}.log"
        path.write_text(LOG.replace("80.00", f"{seconds}.00"))
        words = ["--model", MODEL, "--accelerator", "l4", "--storage", "gcs-fuse"]
        assert ask(capsys, "add", str(path), *words)[0] == 0
    assert ask(capsys, "list")[1].split()[:3] == ["KIND", "FAMILY", "ACCELERATOR"]
    activations, load_rate = sorted(listed(capsys))
    assert activations.startswith("activations gemma-4 nvidia-l4 0.32 - 3 0.54 GiB to 0.66 GiB shown only: ")
    assert load_rate.startswith("load_rate gemma-4 nvidia-l4 0.32 gcs-fuse 3 ")
    assert load_rate.endswith(" yes")
    assert speed(capsys)["overheads"] == before["overheads"]
    assert speed(capsys)["ranges"] == before["ranges"]
    cheap = speed(capsys, [*COST, "--wakes-per-day", "24"])
    assert any("by loads measured here" in note and "s on nvidia-l4" in note for note in cheap["notes"])
    month = [next(r for r in each["rows"] if r["shape"] == "cloud-run-l4")["usd_per_month"] for each in (dear, cheap)]
    assert month[1] < month[0]
    shown = ask(capsys, "show")[1]
    assert shown.count("log start-") == 6
    copy = tmp_path / "the-same-under-another-name.log"
    copy.write_text((tmp_path / "start-0.log").read_text())
    assert ask(capsys, "add", str(copy), *words)[0] == 1
    assert "sha256" in shown


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["add", "/nowhere"], "which model and accelerator"),
        (["add", "/nowhere", "--model", MODEL, "--accelerator", "nvidia-l4"], "No such file"),
        (["add", "incident:inc-nothing"], "inc-nothing"),
    ],
    ids=["a log of nothing", "no file", "no incident"],
)
def test_bad_input_is_refused(capsys, words, why):
    code, out, err = ask(capsys, *words)
    assert (code, out) == (2, "")
    assert why in err


def test_a_log_or_sweep_that_tells_nothing_is_refused(capsys, tmp_path):
    path = tmp_path / "other.log"
    path.write_text("INFO API server version 0.32.0\n")
    code, _, err = ask(capsys, "add", str(path), "--model", MODEL, "--accelerator", "nvidia-l4")
    assert (code, "prints no peak of activations" in err) == (2, True)
    code, _, err = ask(capsys, "add", sweep(tmp_path, 1, 0.04, accelerator=""))
    assert (code, "tells nothing" in err) == (2, True)


def test_nothing_measured_says_that_the_bundled_ranges_hold(capsys):
    assert ask(capsys, "list") == (0, "nothing was measured here: the bundled ranges hold (docs/fit.md)\n", "")
    assert ask(capsys, "list", "--json") == (0, "", "")
