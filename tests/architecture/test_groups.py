"""Tests that share an emulator or a control plane run on one worker, or each worker starts one of its own."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import rigs
from tests.scheduling import FilesAndGroups, arranged

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.xdist_group("kube")
def test_a_test_of_a_group_is_known_by_it_to_the_workers(request: pytest.FixtureRequest) -> None:
    """pytest-xdist writes the group behind the test's id; where it cannot, nothing else says so."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("not run by make test: one process, or tests spread without groups")
    assert os.environ["PYTEST_XDIST_WORKER"]
    assert request.node.nodeid.endswith("@kube")


@pytest.mark.parametrize(
    ("test", "piece"),
    {
        "tests/agent/a/test_b.py::test_c[d::e]": "tests/agent/a/test_b.py",
        "tests/agent/a/test_b.py::TestB::test_c": "tests/agent/a/test_b.py",
        "tests/agent/a/test_b.py::test_c@kube": "kube",
        "tests/infra/test_b.py::test_c[d]": "tests/infra/test_b.py",
        "tests/journeys/test_b.py::test_c[d]": "tests/journeys/test_b.py::test_c[d]",
        "tests/journeys/test_b.py::test_c[d]@kube": "kube",
    }.items(),
)
def test_a_file_of_short_tests_is_one_piece_of_work_and_a_long_test_is_one_alone(test: str, piece: str) -> None:
    """A group stays whole, whichever file its tests stand in."""
    assert FilesAndGroups._split_scope(FilesAndGroups.__new__(FilesAndGroups), test) == piece


def test_groups_begin_and_what_computes_takes_turns_with_what_waits() -> None:
    """Long ones before short ones; a file of short tests stays together, and nothing is lost."""

    def item(nodeid: str, *, slow: bool = False, group: str = "") -> Any:
        marks = {"slow": slow or None, "xdist_group": SimpleNamespace(args=(group,)) if group else None}
        return SimpleNamespace(nodeid=nodeid, get_closest_marker=marks.get)

    short = [item(f"tests/agent/{name}.py::test_{n}") for name in "ab" for n in range(2)]
    journeys = [item(f"tests/journeys/a.py::test_{n}", slow=n == 2) for n in range(3)]
    lives = item("tests/simulation/a.py::test_lives", slow=True)
    groups = [item("tests/agent/c.py::test", group="writer"), item("tests/journeys/k.py::test", group="kube")]
    found = arranged([*short, groups[0], *journeys, groups[1], lives])
    assert found == [*groups[::-1], lives, journeys[2], *short[:2], journeys[0], *short[2:], journeys[1]]


@pytest.mark.parametrize("rig", rigs.RIGS)
def test_of_a_rig_the_journeys_run_and_the_rest_is_left_to_ci(request: pytest.FixtureRequest, rig: str) -> None:
    """A rig of which nothing would run is a mistake, and what needs none always runs."""
    item = request.node
    assert rigs.split([item]) == ([item], Counter())
    item.add_marker(rig)
    with pytest.raises(pytest.UsageError, match=rig):
        rigs.split([item])
    journey = cases_of("test_journey", 1, rig, "journey")
    assert rigs.split([item, *journey]) == (journey, Counter({rig: 1}))


def cases_of(test: str, number: int, *marks: str) -> list[Any]:
    """So many cases of one test, as pytest collects them."""
    return [
        SimpleNamespace(
            name=f"{test}[{case}]",
            originalname=test,
            parent=SimpleNamespace(nodeid="tests/test_a.py"),
            get_closest_marker=lambda name: name in marks or None,
        )
        for case in range(number)
    ]


@pytest.mark.parametrize(("cases", "run"), [(1, 1), (4, 4), (5, 1), (19, 3), (20, 2), (300, 30)])
def test_of_a_long_table_every_fifth_or_tenth_case_runs(cases: int, run: int) -> None:
    """Whatever stands between them; a short table runs whole, and so does a journey however long it is."""
    table, journey = cases_of("test_table", cases), cases_of("test_journey", 20, "journey")
    mixed = [*table[:2], *journey, *table[2:]]
    sampled, left = rigs.split(mixed)
    assert len(sampled) - 20 in {run, run + (cases % rigs.one_in(cases) > 0)}
    assert left == Counter(cases=cases + 20 - len(sampled)) - Counter()
    assert set(map(id, journey)) <= set(map(id, sampled))
    assert [item for item in mixed if item in sampled] == sampled


def test_not_the_same_cases_of_every_table_run() -> None:
    """What one test tries with SQLite alone another tries with Firestore."""
    first = {rigs.split(cases_of(f"test_{name}", 9))[0][0].name[-2] for name in range(30)}
    assert first == set(map(str, range(rigs.one_in(9))))


@pytest.mark.parametrize(
    ("words", "alone"),
    [((), True), (("-x",), True), (("-k", "a"), False), (("-m", "emulator"), False), (("--lf",), False),
     (("--ff",), False), (("tests/a.py",), False)],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_whoever_names_tests_has_all_that_they_name(
    words: tuple[str, ...], alone: bool, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """By a word, a mark, a file, or because they failed."""
    monkeypatch.setattr(rigs, "EVERYTHING", False)
    option = request.config._parser.parse_known_args(list(words))
    named = bool(option.file_or_dir)
    sources = pytest.Config.ArgsSource
    config: Any = SimpleNamespace(
        args_source=sources.ARGS if named else sources.TESTPATHS,
        getoption=lambda name, default: getattr(option, name, default),
    )
    assert rigs.takes_journeys_alone(config) is alone


@pytest.mark.parametrize(
    ("words", "sampled"),
    [((), False), (("--sample",), True), (("--sample", "-m", "not slow"), True), (("--sample", "--lf"), False),
     (("--sample", "--ff"), False)],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_what_failed_runs_again_though_samples_are_asked_for(
    words: tuple[str, ...], sampled: bool, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Else ``make quick PYTEST_ARGS=--lf`` would be green without the case that is to be mended; CI=true tries all."""
    monkeypatch.setattr(rigs, "EVERYTHING", False)
    option = request.config._parser.parse_known_args(list(words))
    config: Any = SimpleNamespace(getoption=lambda name: getattr(option, name))
    assert rigs.takes_samples(config) is sampled
    monkeypatch.setattr(rigs, "EVERYTHING", True)
    assert not rigs.takes_samples(config)


@pytest.mark.parametrize(("given", "heard"), [("true", "true"), ("1", ""), ("", "")])
def test_make_hears_the_value_of_ci_that_the_tests_hear(given: str, heard: str) -> None:
    """``CI=1`` is no ``CI=true``, neither here nor there."""
    words = ["make", "-s", '--eval=heard: ; @echo "[$$CI]"', "heard"]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | {"CI": given}, capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == f"[{heard}]\n"
    read = "from tests import counts; print(counts.CI)"
    done = subprocess.run(
        [sys.executable, "-c", read],
        cwd=ROOT,
        env=os.environ | {"CI": given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{bool(heard)}\n"


def test_each_python_is_tried_on_a_control_plane_that_quick_leaves_out() -> None:
    """Whatever Pythons are here: what ``make matrix`` hands to ``make quick`` wins over its own choice."""
    makefile = (ROOT / "Makefile").read_text()
    (given,) = re.findall(r"^\t+QUICK='(.*)' \|\| exit 1; done$", makefile, re.MULTILINE)
    printed = [
        subprocess.run(["make", "-n", "quick", *more], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for more in ([], [f"QUICK={given}"])
    ]
    assert ["not kube" in one for one in printed] == [True, False]
    assert all('-m "not slow and not emulator and not browser' in one for one in printed)


def test_what_was_left_out_is_said_with_the_way_to_run_it() -> None:
    line = rigs.said(Counter(kube=90, ec2=2, cases=9))
    assert line == (
        "left to CI=true make test, or name their file: 9 cases of long tables, "
        "2 with an EC2 instance whose scripts really run, 90 with a Kubernetes control plane"
    )
