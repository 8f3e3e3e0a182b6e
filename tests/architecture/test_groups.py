"""Tests that share an emulator or a control plane run on one worker, or each worker starts one of its own."""

import os

import pytest


@pytest.mark.xdist_group("kube")
def test_a_test_of_a_group_is_known_by_it_to_the_workers(request: pytest.FixtureRequest) -> None:
    """pytest-xdist writes the group behind the test's id; where it cannot, nothing else says so."""
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("not run by make test: one process, or tests spread without groups")
    assert os.environ["PYTEST_XDIST_WORKER"]
    assert request.node.nodeid.endswith("@kube")
