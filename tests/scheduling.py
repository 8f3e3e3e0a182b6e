"""In which order and in which pieces `make test` hands tests to its workers."""

import pytest
from xdist.scheduler import LoadGroupScheduling

IN_PROCESS = ("tests/agent/", "tests/architecture/")  # short tests, which mostly compute
BY_FILE = (*IN_PROCESS, "tests/infra/", "tests/examples/")  # the others here share what a file has set up


class FilesAndGroups(LoadGroupScheduling):
    """A group is one piece of work, and so is a file of short tests, or of tests that share a set-up; a long test stands alone.

    By the test alone, pytest-xdist looks through all pieces again for each of thousands.
    """

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return nodeid.split("::", maxsplit=1)[0] if group.startswith(BY_FILE) else group


def order(item: pytest.Item) -> int:
    """Return the rank of a test: groups and long tests begin first, so that no worker ends alone with one of them."""
    group = item.get_closest_marker("xdist_group")
    if group is not None:
        return 0 if group.args[0] == "kube" else 1
    return 2 if item.get_closest_marker("slow") else 3 if not item.nodeid.startswith(IN_PROCESS) else 4
