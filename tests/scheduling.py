"""In which order and in which pieces `make test` hands tests to its workers."""

from collections.abc import Sequence
from itertools import groupby

import pytest
from xdist.scheduler import LoadGroupScheduling

IN_PROCESS = ("tests/agent/", "tests/architecture/")  # short tests, which mostly compute
COMPUTING = (*IN_PROCESS, "tests/simulation/")
BY_FILE = (*IN_PROCESS, "tests/infra/", "tests/examples/")  # the others here share what a file has set up


class FilesAndGroups(LoadGroupScheduling):
    """A group is one piece of work, and so is a file of short tests, or of tests that share a set-up; a long test stands alone.

    By the test alone, pytest-xdist looks through all pieces again for each of thousands.
    """

    def _split_scope(self, nodeid: str) -> str:
        group = super()._split_scope(nodeid)
        return _piece(nodeid) if group.startswith(BY_FILE) else group


def arranged(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests in the order in which workers take them.

    Groups begin first, and long tests before short ones, so that no worker ends alone with one of them. Tests that
    compute and tests that wait for other processes take turns: workers that all wait leave the processor idle.
    """
    groups = sorted((item for item in items if _group(item)), key=lambda item: _group(item) != "kube")
    computing: list[list[pytest.Item]] = []
    waiting: list[list[pytest.Item]] = []
    single = (item for item in items if not _group(item))
    for piece, tests in groupby(sorted(single, key=_is_short), key=lambda item: (_is_short(item), _piece(item.nodeid))):
        (computing if piece[1].startswith(COMPUTING) else waiting).append(list(tests))
    return groups + [item for piece in _in_turns(computing, waiting) for item in piece]


def _in_turns(*lists: list[list[pytest.Item]]) -> list[list[pytest.Item]]:
    """Spread each list evenly over the whole, in its own order."""
    placed = [((n + 0.5) / len(pieces), piece) for pieces in lists for n, piece in enumerate(pieces)]
    return [piece for _, piece in sorted(placed, key=lambda one: one[0])]


def _group(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("xdist_group")
    return mark.args[0] if mark is not None else None


def _is_short(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is None


def _piece(nodeid: str) -> str:
    return nodeid.split("::", maxsplit=1)[0] if nodeid.startswith(BY_FILE) else nodeid
