"""What a model does not know of a file is named by its path."""

import pytest

from tools.dashboard_check import lost

WRITTEN = {"panels": [{"type": "stat", "options": {"textMode": "auto"}}], "refresh": "30s"}


@pytest.mark.parametrize(
    ("known", "paths"),
    [
        (WRITTEN | {"links": []}, []),
        ({"panels": [{"type": "stat", "options": {}}], "refresh": "30s"}, ["/panels/options/textMode"]),
        ({"panels": [], "refresh": "30s"}, ["/panels"]),
        (WRITTEN | {"refresh": "1m"}, ["/refresh"]),
    ],
    ids=["all and more", "an option", "a panel", "another value"],
)
def test_what_is_left_out_or_changed_is_named(known, paths):
    """What the model adds by itself is no loss."""
    assert list(lost(WRITTEN, known)) == paths
