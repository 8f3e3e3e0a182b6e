"""A server on loopback knows the methods that it was given, and no other."""

import http.client

import pytest

from tests.loopback import METHODS, Loopback


@pytest.mark.parametrize("method", METHODS[1:])
def test_a_method_that_is_not_known_is_refused_as_a_real_server_does(method: str) -> None:
    """A client with the wrong verb fails its test, whatever would have been answered."""
    asked = []

    def answer(request):
        asked.append(request.command)
        return 200, b"ok"

    with Loopback(answer, methods=["GET"]) as server:
        for sent, status in ((method, 501), ("GET", 200)):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
            connection.request(sent, "/")
            assert connection.getresponse().status == status
            connection.close()
    assert asked == ["GET"]
