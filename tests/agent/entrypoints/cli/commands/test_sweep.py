"""What the command says of stored sweeps, through the real folder and the real command line."""

import json
import shutil

import pytest

from agent.adapters.load.sweep_folder import store_cell
from agent.entrypoints.cli.main import main
from tests.agent.core.sweep.served import sweep_of


def stored(folder, slots=8, **more):
    cells, rows = sweep_of(slots, grid=(4, 8, 16), **more)
    for cell in cells:
        store_cell(folder, cell, rows[cell.id])
    return str(folder)


def test_show_names_the_flag_that_binds(tmp_path, capsys):
    assert main(["sweep", "show", stored(tmp_path / "a"), "--slo", "ttft_p99<100ms"]) == 0
    said = capsys.readouterr().out
    assert "from 8 on requests wait: --max-num-seqs 8" in said
    assert "best for ttft_p99<100ms: 8 concurrent" in said


def test_show_as_json_has_findings_and_cells(tmp_path, capsys):
    assert main(["sweep", "show", stored(tmp_path / "a"), "--json", "--slo", "ttft_p99<100ms"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["contexts"][0]["plateau"]["limits"] == [{"bound": "max_num_seqs", "requests": 8.0}]
    assert found["best"][0]["concurrency"] == 8
    assert [cell["planned"]["concurrency"] for cell in found["cells"]] == [4, 8, 16]
    assert found["provenance"]["driver_version"] == "0.8.1"


def test_report_writes_the_files_anew(tmp_path, capsys):
    folder = stored(tmp_path / "a")
    for _ in range(2):
        assert main(["sweep", "report", folder]) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [f"{folder}/report.md", f"{folder}/report.html"]
    names = {str(path.relative_to(folder)) for path in (tmp_path / "a").rglob("*") if path.is_file()}
    plots = {f"plots/{kind}-c128-o32.svg" for kind in ("throughput", "ttft", "itl")}
    assert {"report.md", "report.html", *plots} < names
    assert not [name for name in names if ".new" in name]


def test_a_secret_in_a_cell_reaches_no_output(tmp_path, capsys):
    secret = "hf_" + "aB3" * 12
    folder = stored(tmp_path / "a", flags=f"--max-num-seqs 8 --hf-token {secret}")
    assert main(["sweep", "report", folder]) == 0
    assert main(["sweep", "show", folder]) == 0
    assert main(["sweep", "show", folder, "--json"]) == 0
    written = [(tmp_path / "a" / name).read_text() for name in ("report.md", "report.html")]
    assert not [text for text in (*written, capsys.readouterr().out) if secret in text]


@pytest.mark.slow
def test_compare_says_the_same_twice_and_refuses_what_is_unlike(tmp_path, capsys):
    before, after = stored(tmp_path / "a"), stored(tmp_path / "b", rows={"token_s": 0.02})
    assert main(["sweep", "compare", before, after, "--json"]) == 0
    first = capsys.readouterr().out
    assert main(["sweep", "compare", before, after, "--json"]) == 0
    assert capsys.readouterr().out == first
    assert {d["verdict"] for d in json.loads(first)["differences"] if d["figure"] == "itl_p50"} == {"worse"}
    other = stored(tmp_path / "c", slots=16, flags="--max-num-seqs 16")
    assert main(["sweep", "compare", before, other]) == 2
    assert "unlike in flags: '--max-num-seqs 8' and '--max-num-seqs 16'" in capsys.readouterr().err
    assert main(["sweep", "compare", before, other, "--anyway"]) == 0
    assert "What differs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["show"], "it takes 1 folder of stored sweeps, 0 were given"),
        (["compare", "{a}"], "it takes 2 folders of stored sweeps, 1 were given"),
        (["show", "{a}/none"], "there is no such folder"),
        (["report", "{empty}"], "no cell is stored there yet"),
        (["show", "{a}", "--slo", "ttft<1s"], "'ttft' is no figure of a sweep"),
        (["show", "{damaged}"], "it holds cells of more than one sweep"),
        (["compare", "{a}", "{lost}"], "it is gone"),
    ],
)
def test_bad_input_is_named(tmp_path, capsys, words, why):
    places = {name: str(tmp_path / name) for name in ("a", "empty", "damaged", "lost")}
    (tmp_path / "empty").mkdir()
    for name in ("a", "lost"):
        stored(tmp_path / name)
    shutil.rmtree(tmp_path / "lost" / "requests")
    stored(tmp_path / "damaged")
    one, two = sweep_of(8, grid=(1,), sweep="s-2")
    store_cell(tmp_path / "damaged", one[0], two[one[0].id])
    assert main(["sweep", *(word.format(**places) for word in words)]) == 2
    assert why in capsys.readouterr().err
