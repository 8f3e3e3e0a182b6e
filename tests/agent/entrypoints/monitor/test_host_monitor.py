"""What the monitor of a server keeps of its checks; the ends that it tells stand in tests/simulation."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from agent.app import build_app
from agent.core.intake.signal import AlertState
from agent.core.service.request_counts import RequestCounts
from agent.entrypoints.monitor.host_monitor import HostMonitor
from agent.errors import DependencyFailed
from agent.ports.host import CheckResult, Stage, Start, State
from agent.ports.store import Query
from agent.settings import read_settings
from tests.journeys.conftest import ROOT

EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
START = Start(revision="gemma-1", mark="m1", template="{}", stage=Stage.READY, began_at=AT, ready_at=AT)
STATE = State(service="gemma", uid="u", template="{}", starts=(START,))


def test_requests_that_a_check_counted_are_kept_by_service(tmp_path) -> None:
    """A check that counted none writes nothing, and neither does one of a server that does not serve."""
    app = build_app(read_settings({}, store=f"sqlite:{tmp_path}", platform=f"rehearsal:{EXAMPLE}"))
    kept = [RequestCounts(answered=4), RequestCounts(), None, RequestCounts(answered=1, failed=2)]

    def check(_service: str, _page: State) -> CheckResult | None:
        requests = kept.pop(0)
        return CheckResult(revision="gemma-1", mark="m1", requests=requests) if requests is not None else None

    monitor = HostMonitor(app, "gemma", platform=None, doctor=SimpleNamespace(check=check), folder=tmp_path)
    monitor.state = STATE
    for _ in range(4):
        monitor.check()
    assert app.request_counts.requests_since(AT) == {"gemma": RequestCounts(answered=5, failed=2)}


def refusing(times: int, then):
    """A call that a store refuses so many times, and answers from then on."""
    left = [times]

    def call(*args, **more):
        if left[0]:
            left[0] -= 1
            raise DependencyFailed("the store did not answer", why="the disk is full", hint="make room")
        return then(*args, **more)

    return call


def test_counts_that_are_not_kept_hold_no_alert_up_and_are_kept_by_a_later_check(tmp_path, monkeypatch) -> None:
    app = build_app(read_settings({}, store=f"sqlite:{tmp_path}", platform=f"rehearsal:{EXAMPLE}"))
    sick = CheckResult(revision="gemma-1", mark="m1", requests=RequestCounts(answered=4, failed=1), sick="it hangs")
    monitor = HostMonitor(app, "gemma", platform=None, doctor=SimpleNamespace(check=lambda *_: sick), folder=tmp_path)
    monitor.state = STATE
    monkeypatch.setattr(app.request_counts, "add_requests", refusing(1, app.request_counts.add_requests))
    monitor.check()
    assert len(app.store.incidents(Query())) == 1
    assert app.request_counts.requests_since(AT) == {}
    monitor.check()
    monitor.check()
    assert app.request_counts.requests_since(AT) == {"gemma": RequestCounts(answered=12, failed=3)}


def test_an_alert_that_was_not_stored_is_told_by_the_next_check(tmp_path, monkeypatch) -> None:
    """And what was counted meanwhile is not lost; so it is with the end of an alert."""
    app = build_app(read_settings({}, store=f"sqlite:{tmp_path}", platform=f"rehearsal:{EXAMPLE}"))
    sick = CheckResult(revision="gemma-1", mark="m1", requests=RequestCounts(answered=4), sick="it hangs")
    found = [sick, sick, sick.with_(sick=""), sick.with_(sick="")]
    doctor = SimpleNamespace(check=lambda *_: found.pop(0))
    monitor = HostMonitor(app, "gemma", platform=None, doctor=doctor, folder=tmp_path)
    monitor.state = STATE
    monkeypatch.setattr(app.store, "commit", refusing(1, app.store.commit))
    with pytest.raises(DependencyFailed):
        monitor.check()
    assert app.store.incidents(Query()) == ()
    monitor.check()
    (incident,) = app.store.incidents(Query())
    monkeypatch.setattr(app.store, "commit", refusing(1, app.store.commit))
    with pytest.raises(DependencyFailed):
        monitor.check()
    monitor.check()
    assert [s.alert_state for s in app.store.signals(incident.id)] == [AlertState.OPEN, AlertState.CLOSED]
    assert app.request_counts.requests_since(AT) == {"gemma": RequestCounts(answered=16)}
