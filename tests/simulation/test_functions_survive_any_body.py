"""R8 at the door: the functions answer any body, and ask for a bad one never again."""

from pathlib import Path

import functions_framework
import pytest

from agent.app import Role
from agent.entrypoints import function_app, http_function
from agent.entrypoints.http.slack_request import BODY_LIMIT
from tests.simulation import bodies

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = 2  # of each sample; the decoders are tried with many more beside this
CACHED = (
    function_app.settings,
    function_app._app,
    http_function._web,
    http_function._decide_service,
)


@pytest.fixture
def served(monkeypatch, tmp_path):
    """Each function's own file, loaded as functions-framework loads it."""
    monkeypatch.setenv("STORE", f"sqlite:{tmp_path / 'state'}")
    monkeypatch.setenv("PLATFORM", f"rehearsal:{ROOT / 'examples' / 'gemma4-26b-l4-startup-probe'}")
    monkeypatch.setenv("INGEST_SECRETS", "alertmanager=0123456789abcdef")
    for cached in CACHED:
        cached.cache_clear()

    def loaded(name):
        app = functions_framework.create_app(name, str(ROOT / "functions" / f"{name}.py"), "http")
        return app.test_client()

    yield loaded
    for cached in CACHED:
        cached.cache_clear()


def requests():
    yield from (way for body in bodies.OWN for way in bodies.ways(body))
    for number, body in enumerate(bodies.samples()):
        for seed in range(MUTANTS):
            yield bodies.ways(bodies.mutated(body, f"http/{number}/{seed}"))[(number + seed) % 4]


@pytest.mark.parametrize("name", ["on_log_event", "on_alert", "on_incident", "on_decision"])
def test_a_pushed_body_is_acknowledged_whatever_it_is(served, name):
    """Nothing but 200: read, ignored, or kept aside with its reason; a repetition is kept once."""
    client = served(name)
    asked = list(requests())
    answers = [client.post("/", data=body, headers=headers) for headers, body in asked]
    assert {answer.status_code for answer in answers} == {200}
    said = [answer.get_data(as_text=True) for answer in answers]
    assert set(said) <= {"ack", "quarantined"}
    role = {"on_incident": Role.INCIDENT, "on_decision": Role.DECISION}.get(name, Role.INTAKE)
    rows = function_app.app_of(role).quarantine.rows(10_000)
    assert rows
    assert all(row["reason"].startswith("InputRejected: ") for row in rows)


def test_a_posted_body_is_refused_or_taken_never_a_failure_of_ours(served):
    client = served("ingest")
    proof = {"X-Sre-Secret": "0123456789abcdef"}
    for body in [*bodies.OWN, *bodies.samples()]:
        answer = client.post("/alertmanager", data=body, headers=proof)
        assert answer.status_code in {200, 400, 413}
        assert client.post("/alertmanager", data=body).status_code in {401, 413}


@pytest.mark.parametrize(
    "path", ["/decisions", "/kill-switch", "/slack/actions", "/webhooks/pager", "/incidents", "/x"]
)
def test_whatever_is_said_to_decide_is_refused_in_words(served, path):
    """Nobody proves anything: never taken, never a failure of ours, whatever the body and the headers say."""
    client = served("decide")
    for body in [*bodies.OWN, *bodies.samples()]:
        for headers in (
            {},
            {"Content-Type": "application/json", "X-Sre-Id-Token": "a.b.c"},
            {"X-Sre-Id-Token": "\xff."},
        ):
            answer = client.post(path, data=body, headers=headers)
            assert answer.status_code in ({413} if len(body) > BODY_LIMIT else {400, 401, 404, 405})
    assert function_app.app_of(Role.DECIDE).control.audit() == ()
