"""HTTP to a pod through the API server's proxy is bounded, whatever the pod sends."""

import contextlib

import pytest

from agent.adapters.http.failure import Failure, HttpFailed
from agent.adapters.platform.completion import BIGGEST_BYTES
from agent.adapters.platform.kubernetes.pod_http import ApiServerProxy
from tests.agent.adapters.kubernetes.test_client import server


def endless(status):
    """Sends without an end, until nobody reads any more."""

    def answer(request):
        request.send_response(status)
        request.end_headers()
        with contextlib.suppress(OSError):
            while True:
                request.wfile.write(b"x" * 65_536)

    return answer


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_without_an_end_is_given_up_at_its_limit(tmp_path, status):
    """By its size, long before the time of the call is over."""
    with server(endless(status), tmp_path) as api:
        way = ApiServerProxy(api, timeout_s=30)
        with pytest.raises(HttpFailed, match=f"more than {BIGGEST_BYTES} bytes") as failed:
            way.request("GET", "/metrics")
        assert failed.value.reason is Failure.TOO_LONG
        with way.stream("GET", "/metrics") as answer:
            assert len(answer.read(2000)) == 2000
