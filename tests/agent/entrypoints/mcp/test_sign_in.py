"""Over HTTP with sign-in, a call is made in the name of whoever the token belongs to, never of who runs the server."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from agent.adapters.clock import SystemClock
from agent.adapters.google.key_set import KeySet
from agent.core.decision.decision import Channel, Choice, Person
from agent.core.incident.phase import Phase
from agent.entrypoints.mcp import serve
from agent.entrypoints.operator_client.local import open_operator_client
from agent.entrypoints.operator_client.remote import RemoteClient
from agent.errors import PolicyRefused
from agent.ports.stage_context import Owner
from agent.ports.store import Query
from agent.stages.plan_to_decision import DecisionRequest, plan_to_decision
from tests.agent.entrypoints.mcp.test_server import BODY, SERVICE, Served, text_of
from tests.agent.entrypoints.waiting_plan import Service, run_until

POLICY = """
[[approvers]]
name = "Ada"
email = "ada@example.com"
services = ["gemma4-*"]

[[approvers]]
name = "Ben"
email = "ben@example.com"
services = ["gemma4-*"]
"""
CLOUD = {
    "STORE": "firestore:p",
    "BUS": "pubsub:p",
    "PLATFORM": "cloud_run:p",
    "SERVICES": str(Path(__file__).resolve().parents[4] / "examples" / "gemma4-26b-l4-startup-probe" / "services.toml"),
    "DECIDE_URL": "https://decide.example",
}
LOWER = {"service": SERVICE, "set_flag": ["max-num-seqs=4"], "why": "smaller batches", "supersede": True}


@pytest.fixture
def signed(asked, tokens, key_server, monkeypatch, tmp_path):
    """The server where people sign in; its keys are ours, behind Google's form."""
    (tmp_path / "policy.toml").write_text(POLICY)
    monkeypatch.setenv("POLICY", str(tmp_path / "policy.toml"))
    monkeypatch.setenv("ID_TOKEN_AUDIENCES", tokens.OURS)
    keys = KeySet(SystemClock(), url=f"{key_server.url}/certs", holder="Google's accounts")
    made = serve.make_authenticator
    monkeypatch.setattr(
        serve,
        "make_authenticator",
        lambda settings: made(settings).__class__(**vars(made(settings)) | {"google": keys}),
    )
    served = Served()
    yield served
    served.close()


def call(served, token, name, arguments):
    async def held():
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(served.url, http_client=http)) as client,
        ):
            return await client.call_tool(name, arguments)

    return asyncio.run(held())


def requests():
    return [i for i in open_operator_client().incidents(Query()) if i.request is not None]


@pytest.mark.slow
def test_a_proposal_is_that_of_the_bearer_who_then_cannot_approve_it(signed, tokens):
    token = tokens.id_token(tokens.id_claims(datetime.now(UTC)))
    result = call(signed, token, "propose_change", LOWER)
    assert not result.is_error, text_of(result)
    (life,) = requests()
    assert (life.request.asker, life.request.verified, life.request.channel) == (tokens.ADA, True, Channel.MCP)
    life = run_until(Phase.ASKED, requested=True)
    context = Service().app.contexts[Owner.DECIDE]
    word = DecisionRequest(
        plan=life.plan.id,
        answer=Choice.APPROVE,
        by=Person(who=tokens.ADA, channel=Channel.COMMAND_LINE, verified=True),
        why="",
        plan_digest=life.plan.digest,
    )
    with pytest.raises(PolicyRefused, match="asked for"):
        plan_to_decision(context, word)
    assert plan_to_decision(context, replace(word, by=word.by.with_(who="ben@example.com"))).who == "ben@example.com"


def test_whom_policy_does_not_name_may_look_and_not_ask(signed, tokens):
    token = tokens.id_token(tokens.id_claims(datetime.now(UTC), email="eve@example.com"))
    assert not call(signed, token, "list_incidents", {}).is_error
    result = call(signed, token, "propose_change", LOWER)
    assert "policy.toml does not name" in text_of(result)
    assert requests() == []


def test_a_token_made_for_another_audience_opens_nothing(signed, tokens):
    token = tokens.id_token(tokens.id_claims(datetime.now(UTC), aud="https://elsewhere.example"))
    answer = httpx2.post(signed.url, json=BODY, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 401


def test_in_the_cloud_the_bearers_own_token_goes_to_decide(monkeypatch):
    """`decide` then sees who asks, and not who runs the server."""
    for name, value in CLOUD.items():
        monkeypatch.setenv(name, value)
    client = open_operator_client(lambda: "token-of-the-bearer")
    assert isinstance(client, RemoteClient)
    assert client._proof() == {"X-Sre-Id-Token": "token-of-the-bearer"}
