"""What is absent is skipped on a stranger's machine, and fails where everything is promised to be there."""

import pytest

from tests import outside


def test_what_is_absent_is_skipped(monkeypatch):
    monkeypatch.delenv("REQUIRE_ALL", raising=False)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.skip.Exception, match=r"\.\./shared/data/nothing"):
        outside.shared("data", "nothing")


def test_what_is_absent_fails_where_all_is_required(monkeypatch):
    monkeypatch.setenv("REQUIRE_ALL", "1")
    with pytest.raises(pytest.fail.Exception, match="REQUIRE_ALL"):
        outside.shared("data", "nothing")
