"""What the watchman of a server keeps of its checks; the ends that it tells stand in tests/simulation."""

from datetime import UTC, datetime
from types import SimpleNamespace

from agent.app import build_app
from agent.core.service.request_counts import RequestCounts
from agent.entrypoints.monitor.host_monitor import HostMonitor
from agent.ports.host import CheckResult, Stage, Start, State
from agent.settings import read_settings
from tests.journeys.conftest import ROOT

EXAMPLE = ROOT / "examples" / "gemma4-26b-l4-startup-probe"
AT = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
START = Start(revision="gemma-1", mark="m1", template="{}", stage=Stage.READY, began_at=AT, ready_at=AT)
PAGE = State(service="gemma", uid="u", template="{}", starts=(START,))


def test_requests_that_a_check_counted_are_kept_by_service(tmp_path) -> None:
    """A check that counted none writes nothing, and neither does one of a server that does not serve."""
    app = build_app(read_settings({}, store=f"sqlite:{tmp_path}", platform=f"rehearsal:{EXAMPLE}"))
    kept = [RequestCounts(answered=4), RequestCounts(), None, RequestCounts(answered=1, failed=2)]

    def check(_service: str, _page: State) -> CheckResult | None:
        requests = kept.pop(0)
        return CheckResult(revision="gemma-1", mark="m1", requests=requests) if requests is not None else None

    monitor = HostMonitor(app, "gemma", platform=None, doctor=SimpleNamespace(check=check), folder=tmp_path)
    monitor.page = PAGE
    for _ in range(4):
        monitor.check()
    assert app.request_counts.requests_since(AT) == {"gemma": RequestCounts(answered=5, failed=2)}
