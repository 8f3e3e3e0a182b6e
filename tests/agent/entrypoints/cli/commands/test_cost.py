"""The cost command, as a person and as a program call it."""

import json

import pytest

from agent.adapters.load.sweep_folder import store_cell
from agent.entrypoints.cli.main import main
from tests.agent.core.sweep import values

MODEL = "google/gemma-4-12B-it-qat-w4a16-ct"
SERVICE = "gemma4-26b-qat-l4"


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")


def ask(capsys, *words):
    code = main(["cost", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_json_stands_alone(capsys):
    code, out, err = ask(capsys, "--model", MODEL, "--busy", "0.5", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert found["load"]["busy"] == 0.5
    assert found["where_to_run"] == found["rows"][0]["shape"]


def test_people_get_a_table(capsys):
    code, out, _ = ask(capsys, "--model", MODEL, "--accelerator", "nvidia-l4", "--platform", "ec2")
    assert code == 0
    assert "ec2-g6.xlarge" in out
    assert "cloud_run" not in out


def test_a_sweep_replaces_the_computed_speed(capsys, tmp_path):
    made = values.provenance(model=MODEL, accelerator="nvidia-l4", instances=1)
    stored = store_cell(tmp_path / "sweep", values.cell(1, provenance=made))
    words = ["--model", MODEL, "--accelerator", "nvidia-l4", "--measured", str(tmp_path / "sweep"), "--json"]
    code, out, _ = ask(capsys, *words)
    row = next(row for row in json.loads(out)["rows"] if row["shape"] == "ec2-g6.xlarge")
    assert code == 0
    assert row["speed"] == "measured"
    assert row["tokens_per_s"][0] == pytest.approx(stored.measured.output_tokens_per_s, abs=0.01)
    assert row["usd_per_million_input_tokens_busy"] > 0
    assert row["input_price_unknown_because"] == ""
    unlike = [other for other in json.loads(out)["rows"] if other["speed"] == "computed"]
    assert {other["input_price_unknown_because"] for other in unlike} == {"no sweep measured its input tokens"}
    assert "input unknown: how many input tokens" in ask(capsys, *words[:-1])[1]


def test_own_hardware_is_priced(capsys):
    own = ["--own-price", "2628", "--own-watts", "400", "--own-usd-per-kwh", "0.25"]
    _, out, _ = ask(capsys, "--model", MODEL, "--accelerator", "nvidia-l4", *own, "--json")
    row = next(row for row in json.loads(out)["rows"] if row["platform"] == "own")
    assert row["usd_per_h"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "either --service or --model"),
        (["--model", MODEL, "--service", "s"], "either --service or --model"),
        (["--model", MODEL, "--busy", "2"], "busy 2.0 was refused"),
        (["--model", MODEL, "--own-price", "1"], "--own-watts, --own-usd-per-kwh, --accelerator is missing"),
        (["--model", MODEL, "--accelerator", "nvidia-l4", "--own-price", "1", "--own-watts", "-1", "--own-usd-per-kwh", "1"],
         "--own-watts -1.0 was refused"),
        (["--model", MODEL, "--measured", "/nowhere"], "no such folder"),
        (["--model", MODEL, "--accelerator", "nvidia-l5"], "nvidia-l4"),
        (["--model", MODEL, "--need-tokens-per-s", "0"], "must be above 0"),
        (["--service", SERVICE, "--accelerator", "nvidia-l4"], "--accelerator was refused"),
    ],
    ids=lambda given: " ".join(given[-2:]) if isinstance(given, list) else "",
)  # fmt: skip
def test_bad_input_is_refused_with_the_way_out(capsys, words, why):
    code, out, err = ask(capsys, *words)
    assert (code, out) == (2, "")
    assert why in err


def test_a_service_is_priced_as_it_runs_with_its_open_plan(asked, capsys):
    """The example's service has 4 vCPU and 16 GiB: (0.0001867 + 0.000072 + 0.000032) x 3,600 = 1.0465 an hour."""
    code, out, _ = ask(capsys, "--service", SERVICE, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["now"]["usd_per_h"] == pytest.approx(1.0465, abs=1e-4)
    assert found["now"]["usd_per_month"] == pytest.approx(1.04652 * 0.3 * 730, abs=0.01)
    (plan,) = found["plans"]
    assert (plan["cost_before_usd_per_h"], plan["cost_after_usd_per_h"]) == pytest.approx((1.0465, 1.0465), abs=1e-4)
    assert plan["usd_per_million_output_tokens_after"] > 0
    text = ask(capsys, "--service", SERVICE)[1]
    assert "now: cloud_run, 1 x nvidia-l4: 1.05 USD/h, 229 USD/month" in text
    assert "open plan p-" in text
