"""What operators did with their own tools for hours, in one scripted session without a model, over both ways in."""

import os
import sys

import pytest
from mcp import StdioServerParameters

from agent.core.decision.decision import Choice
from agent.core.incident.phase import Phase
from agent.entrypoints.operator_client.local import open_operator_client
from agent.entrypoints.operator_client.protocol import OperatorDecision
from tests.agent.entrypoints.mcp.test_server import MODEL, SERVICE, Served, talk, text_of
from tests.agent.entrypoints.waiting_plan import run_until

pytestmark = pytest.mark.slow

CLOUDS = {"google": {"cloud_run", "gke", "gce", "tpu_vm"}, "aws": {"ec2"}, "azure": {"container_apps"}}


@pytest.fixture(
    params=[
        pytest.param("stdio", marks=pytest.mark.mcp),
        pytest.param("http", marks=[pytest.mark.mcp, pytest.mark.journey]),
    ]
)
def way(request, asked):
    """What a client connects to: the command itself, or the address that it serves."""
    if request.param == "stdio":
        command = [sys.executable, "-m", "agent.entrypoints.cli.main", "mcp"]
        yield StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
        return
    served = Served()
    yield served.url
    served.close()


class Session:
    """A client that calls tools and fails at the first error."""

    def __init__(self, client):
        self._client = client

    async def __call__(self, tool, **arguments):
        result = await self._client.call_tool(tool, arguments)
        assert not result.is_error, text_of(result)
        return result.structured_content


async def look(client):
    """Status, fit, probe, cost of three clouds, log, diagnosis: nothing but reads. Return the plan that is offered."""
    ask = Session(client)
    (service,) = (await ask("list_services"))["services"]
    assert service["name"] == SERVICE
    status = await ask("service_status", service=SERVICE)
    assert status["ready"] is False
    asleep = await client.call_tool("verify_model_health", {"service": SERVICE})
    assert asleep.is_error
    assert (await ask("fit", **MODEL, flags=" ".join(status["flags"]["lines"])))["fits"] is True
    wider = await ask("advise", **MODEL, flags="--max-model-len 262144", top=3)
    assert wider["options"][0]["rank"] == 1
    probe = await ask("probe_budget", model=MODEL["model"], platform="cloud_run_gpu")
    assert probe["budget_s"] >= probe["start_s"][1]
    rows = [
        row
        for accelerator in (MODEL["accelerator"], "nvidia-a100-80gb")
        for row in (await ask("estimate_cost", model=MODEL["model"], accelerator=accelerator))["rows"]
    ]
    rented = {cloud for cloud, names in CLOUDS.items() if names & {r["platform"] for r in rows if r["usd_per_h"]}}
    assert rented == set(CLOUDS)
    log = await ask("read_logs", service=SERVICE)
    found = await ask("diagnose", log="\n".join(log["lines"]), platform="cloud_run")
    (incident,) = (await ask("list_incidents", open_only=True))["incidents"]
    shown = await ask("show_incident", incident_id=incident["id"])
    assert shown["failure_class"] == incident["failure_class"]
    assert found["failure_class"] in {shown["failure_class"], "unknown", "benign"}  # its log alone shows no probe
    plan = await ask("suggest_remediation", incident_id=incident["id"])
    assert plan == shown["plan"]
    return plan


async def propose(client):
    """Ask for one more instance. Return the request."""
    return await Session(client)("propose_change", service=SERVICE, scale="1:2", why="launch day")


async def verify(client):
    """Return the figures of the running service."""
    return await Session(client)("verify_model_health", service=SERVICE)


def test_a_session_ends_with_two_changes_that_a_person_approved_elsewhere(way, asked):
    """The incident's plan, then a proposal: both are asked for here, decided there, applied and verified."""
    person = open_operator_client()
    plan = talk(look, server=way)
    person.decide(OperatorDecision(plan=plan["plan"], answer=Choice.APPROVE, by="ada", plan_digest=plan["digest"]))
    assert run_until(Phase.RESOLVED).id == asked.id
    health = talk(verify, server=way)
    assert {row["check"]: row["good"] for row in health["measurements"]}["completion"] is True
    proposed = talk(propose, server=way)
    life = run_until(Phase.ASKED, requested=True)
    assert (proposed["request"], life.request.asker[:4]) == (life.id, "mcp:")
    person.decide(OperatorDecision(plan=life.plan.id, answer=Choice.APPROVE, by="ada", plan_digest=life.plan.digest))
    assert run_until(Phase.RESOLVED, requested=True).id == life.id
