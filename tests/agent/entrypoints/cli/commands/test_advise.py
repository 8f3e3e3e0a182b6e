"""The advise command, as a person and as a program call it."""

import json
import os
import subprocess
import sys

import pytest

from agent.entrypoints.cli.main import main
from agent.fit.flags.flags import parse_flags
from tests.counts import some

ON_L4 = ["advise", "--model", "google/gemma-4-31B-it-qat-w4a16-ct", "--accelerator", "nvidia-l4"]
FAILED = "--max-model-len 4096 --kv-cache-dtype fp8 --gpu-memory-utilization 0.95"


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")


def ask(capsys, *words):
    code = main([*ON_L4, *words])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_json_stands_alone_and_every_option_can_be_asked_of_fit_again(capsys):
    code, out, err = ask(capsys, "--flags", FAILED, "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "")
    assert answer["current"]["reason"] == "load_peak"
    here = [option for option in answer["options"] if option["reach"] == "flags"]
    assert here
    for option in here:
        words = ["--model", option["model"], "--accelerator", option["accelerator"], "--count", str(option["count"])]
        assert main(["fit", *words, "--flags", option["flags"], "--json"]) == 0
        again = json.loads(capsys.readouterr().out)
        assert again["fits"] is True
        assert again["weights_bytes"] == option["fit"]["weights_bytes"]
        before, after = parse_flags(FAILED), parse_flags(option["flags"])
        assert {change["flag"] for change in option["changes"]} == {
            name for name in before.__dataclass_fields__ if getattr(before, name) != getattr(after, name)
        }


def test_people_read_what_changes_what_it_costs_and_how_sure_it_is(capsys):
    code, out, _ = ask(capsys, "--flags", FAILED, "--platform", "cloud_run", "--top", "99")
    assert code == 0
    assert out.startswith("now: Does not fit (while the weights are loaded): needs ")
    assert "cpu_offload_gb default ->" in out
    assert "tokens/s, 1.42 USD/h (cloud-run-l4, 2026-08-01)" in out
    assert "computed, not tried on hardware" in out
    assert "not proved, therefore not offered:" in out
    assert "per instance; from 2 of full length on they queue" in out


def test_without_top_all_stand_in_the_table_and_the_best_in_full(capsys):
    _, out, _ = ask(capsys, "--flags", FAILED)
    assert "\n4. " in out
    assert "\n5. " not in out
    assert "\n5  " in out
    assert "with their flags: --top " in out
    rows = [line.split()[0] for line in out.splitlines() if line[:3].strip().isdigit()]
    assert rows[0] == "1", "the group of the best stands first"


def test_needs_are_kept_and_named_when_nothing_keeps_them(capsys):
    code, out, _ = ask(capsys, "--flags", FAILED, "--need-tokens-per-s", "20", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["ruled_out"]["constraint"] == "speed"
    assert all(option["cost"]["decode_tokens_per_s"][0] >= 20 for option in answer["options"])
    _, out, _ = ask(capsys, "--flags", FAILED, "--need-context", "16384", "--need-users", "2", "--json")
    for option in json.loads(out)["options"]:
        assert option["cost"]["context_tokens"] >= 16384
        assert option["cost"]["users"] >= 2


def test_what_fits_needs_no_change(capsys):
    words = ["--model", "google/gemma-4-E2B-it", "--accelerator", "nvidia-l4", "--flags", "--max-model-len 8192"]
    assert main(["advise", *words]) == 0
    assert "nothing has to change" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--flags", "--max-model-len many"], "'many' is no number"),
        (["--flags", "", "--need-users", "0"], "need_users is 0"),
        (["--flags", "", "--max-usd-per-h", "-1"], "--max-usd-per-h -1.0 was refused"),
        (["--flags", "--tensor-parallel-size 2", "--count", "1"], "needs 2 devices"),
        (["--flags", "", "--vllm", "new"], "is no version"),
    ],
)
def test_bad_input_ends_with_2_and_says_why(capsys, words, told):
    code, out, err = ask(capsys, *words)
    assert (code, out) == (2, "")
    assert told in err


def test_an_unknown_model_is_told_how_to_add_it(capsys):
    assert main(["advise", "--model", "nobody/nothing", "--accelerator", "nvidia-l4"]) == 2
    assert "models add" in capsys.readouterr().err


@pytest.mark.slow
def test_every_process_gives_the_same_answer():
    """Sets of levers have no order of their own; the answer must not take one from the process."""
    said = {
        subprocess.run(
            [sys.executable, "-m", "agent.entrypoints.cli.main", *ON_L4, "--json"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in some(("0", "1", "2"), one_in=2)
    }
    assert len(said) == 1


def test_the_table_groups_by_how_far_a_change_goes_and_keeps_the_rank(capsys):
    """Change, loses, context, users, tokens/s, USD/h, proof; long cells are cut, and whole below."""
    code, out, _ = ask(capsys, "--flags", FAILED, "--platform", "cloud_run")
    assert code == 0
    lines = out.splitlines()
    header = next(line for line in lines if line.startswith("#"))
    columns = ("change", "loses", "context", "users", "tokens/s", "USD/h", "proof")
    places = [header.index(column) for column in columns]
    assert places == sorted(places)
    titles = ["Same model:", "Other checkpoint:", "Other hardware:"]
    assert sorted(line for line in lines if line in titles) == sorted(titles)
    rows = [line for line in lines if line.rstrip().endswith("computed") and line.split()[0].isdigit()]
    ranks = [int(row.split()[0]) for row in rows]
    assert sorted(ranks) == list(range(1, len(ranks) + 1))
    assert all(len(row) < 200 for row in rows)
    assert "26B-A4B instead of 31B" in out
    assert any(line.startswith("ranked last because one request gets less than 5 tokens/s") for line in lines)


def test_top_keeps_the_best_and_json_says_what_each_takes_away(capsys):
    """Existing keys stay, new ones stand beside them."""
    code, out, _ = ask(capsys, "--flags", FAILED, "--top", "2", "--json")
    answer = json.loads(out)
    assert code == 0
    assert [option["rank"] for option in answer["options"]] == [1, 2]
    for option in answer["options"]:
        assert {"reach", "changes", "model", "accelerator", "count", "flags", "fit", "cost", "note"} <= option.keys()
        assert option["proof"] == "computed"
        assert option["misses_needs"] is False
        assert 0 <= option["largest_loss"] <= 1
        assert "USD/h" in option["loses"]


def test_top_of_nothing_is_refused(capsys):
    """Bad input is 2."""
    code, _, err = ask(capsys, "--top", "0")
    assert code == 2
    assert "--top 0" in err


def test_a_flag_with_a_typing_error_is_refused_with_the_right_one(capsys):
    """As by `fit`: the server would not start with it."""
    code, out, err = ask(capsys, "--flags", "--max-modle-len 4096")
    assert (code, out) == (2, "")
    assert "did you mean --max-model-len?" in err
