"""Tests that share an emulator or a control plane run on one worker, or each worker starts one of its own."""

import os
from collections import Counter

import pytest

from tests import rigs
from tests.scheduling import FilesAndGroups


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


@pytest.mark.parametrize("rig", rigs.RIGS)
def test_of_a_rig_the_journeys_run_and_the_rest_is_left_to_ci(request: pytest.FixtureRequest, rig: str) -> None:
    """A rig of which nothing would run is a mistake, and what needs none always runs."""
    item = request.node
    assert rigs.split([item]) == ([item], [])
    item.add_marker(rig)
    with pytest.raises(pytest.UsageError, match=rig):
        rigs.split([item])
    item.add_marker("journey")
    assert rigs.split([item]) == ([item], [])


def test_what_was_left_out_is_said_with_the_way_to_run_it() -> None:
    line = rigs.said(Counter(kube=90, ec2=2))
    assert line == (
        "left to CI=true make test, or name their file: 2 with an EC2 instance whose scripts really run, "
        "90 with a Kubernetes control plane"
    )
