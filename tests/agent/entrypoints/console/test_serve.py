"""The same console behind werkzeug on this machine and behind functions-framework in the cloud."""

import threading

import pytest
import requests

from agent.entrypoints.console.app import make_app
from agent.entrypoints.console.serve import claim, local_server
from agent.errors import InputRejected
from agent.settings import Settings


@pytest.fixture
def served(stage):
    with claim(0) as held:
        server = local_server(make_app(stage.world, settings=Settings(platform="cloud_run:p")), at=held)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", server
    server.shutdown()
    server.close()


def test_the_local_server_is_bound_to_this_machine_alone(served):
    url, server = served
    assert server.server_address[0] == "127.0.0.1"
    answer = requests.get(url, timeout=5)
    assert answer.status_code == 200
    assert answer.headers["Server"] == "sre-agent"


def test_a_port_that_is_taken_is_said_in_words(served):
    _, server = served
    with pytest.raises(InputRejected, match="was not started on port"):
        claim(server.server_port)


@pytest.mark.parametrize("port", [-1, 65536, 99999, 2**40])
def test_a_port_that_is_none_is_never_another_one(port):
    with pytest.raises(InputRejected, match=f"was not started on port {port}"):
        claim(port)
