"""The same console behind werkzeug on this machine and behind functions-framework in the cloud."""

import re
import sys
import threading

import functions_framework
import pytest
import requests

from agent.entrypoints.console.app import make_app
from agent.entrypoints.console.serve import as_function, claim, local_server
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


def test_functions_framework_serves_every_path_and_the_form(stage, tmp_path, monkeypatch):
    """The framework loads a source file and calls one function; the pages and the answer go through it."""
    incident = stage.waiting()
    source = tmp_path / "main.py"
    source.write_text("HELD = None\n\n\ndef console(request):\n    return HELD(request)\n")
    client = functions_framework.create_app("console", str(source), "http").test_client()
    held = as_function(make_app(stage.world, settings=Settings(platform="cloud_run:p"), operator="ada"))
    monkeypatch.setattr(sys.modules["main"], "HELD", held)
    base = "http://127.0.0.1:8080"
    assert client.get("/", base_url=base).status_code == 200
    page = client.get(f"/plans/{incident.plan.id}", base_url=base)
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    form = re.search(r"<form method=\"post\".*?</form>", page.get_data(as_text=True), re.DOTALL)[0]
    data = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    answered = client.post(f"/plans/{incident.plan.id}/decision", data=data, base_url=base, headers={"Origin": base})
    assert answered.status_code == 303
    assert stage.world.store.load(incident.id).decision.answer == "approve"
