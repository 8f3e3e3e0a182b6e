"""A console that others can reach: it reads, says why it decides nothing, and takes a token that names an approver."""

from dataclasses import replace

import pytest

from agent.core.decision.decision import Channel, Person
from agent.core.decision.policy import Approver, Policy
from agent.core.incident.phase import Phase
from agent.errors import InputRejected
from agent.settings import Settings

ADA = "system:serviceaccount:sre-agent:ada"
OUTSIDE = Settings(platform="cloud_run:p", bind="0.0.0.0", public_url="https://sre.example.com")


def named(token):
    if token == "of-ada":
        return Person(who=ADA, channel=Channel.KUBERNETES, verified=True)
    if token == "of-eve":
        return Person(who="eve", channel=Channel.KUBERNETES, verified=True)
    raise InputRejected("the Kubernetes token was refused", why="it is no token", hint="get a fresh one")


@pytest.fixture
def staged(scenes):
    made = scenes.a_stage(Policy(approvers=(Approver(name="Ada", kubernetes=ADA, services=("gemma4-*",)),)))
    made.world = replace(made.world, local=False)
    return made


@pytest.fixture
def reader_of(staged, browser_of):
    """A browser that came from somewhere, of a console that can ask a cluster or cannot."""

    def make(**more):
        return browser_of(staged.world, settings=OUTSIDE, **more)

    return make


def test_it_reads_and_says_why_it_decides_nothing(staged, reader_of):
    incident, reader = staged.waiting(), reader_of()
    page = reader.get(f"/plans/{incident.plan.id}").get_data(as_text=True)
    assert "it only reads: that you can open it does not prove who you are" in page
    assert "reading only" in page
    assert reader.fields(f"/plans/{incident.plan.id}") == {}


def test_a_form_that_somebody_makes_themselves_decides_nothing(staged, browser_of, reader_of):
    """With the token field of a console that asks a cluster, sent to one that asks none."""
    incident = staged.waiting()
    asking = reader_of(name_of=named)
    form = asking.fields(f"/plans/{incident.plan.id}")["approve"]
    plain = reader_of()
    cookie = asking.client.get_cookie("sre-console", domain="127.0.0.1")
    plain.client.set_cookie("sre-console", cookie.value, domain="127.0.0.1")
    answer = plain.post(f"/plans/{incident.plan.id}/decision", form | {"kubernetes_token": "of-ada"})
    assert answer.status_code == 403
    assert staged.world.store.load(incident.id).phase is Phase.ASKED


@pytest.mark.parametrize(
    ("token", "status", "says"),
    [
        ("of-ada", 303, ""),
        ("of-eve", 403, "names no approver with the Kubernetes username"),
        ("", 403, "it is no token"),
        ("other", 403, "it is no token"),
    ],
    ids=["an approver", "a stranger", "none", "a wrong one"],
)
def test_a_token_says_who_answers(staged, reader_of, token, status, says):
    incident, reader = staged.waiting(), reader_of(name_of=named)
    form = reader.fields(f"/plans/{incident.plan.id}")["approve"]
    answer = reader.post(f"/plans/{incident.plan.id}/decision", form | {"kubernetes_token": token})
    assert answer.status_code == status
    assert says in answer.get_data(as_text=True)
    decision = staged.world.store.load(incident.id).decision
    assert (decision is not None) == (status == 303)
    if decision is not None:
        assert (decision.who, decision.verified, decision.channel) == (ADA, True, Channel.KUBERNETES)


def test_a_rejection_asks_for_the_same_proof(staged, reader_of):
    incident, reader = staged.waiting(), reader_of(name_of=named)
    form = reader.fields(f"/plans/{incident.plan.id}")["reject"] | {"why": "the quota is used up"}
    assert reader.post(f"/plans/{incident.plan.id}/decision", form).status_code == 403
    answer = reader.post(f"/plans/{incident.plan.id}/decision", form | {"kubernetes_token": "of-ada"})
    assert answer.status_code == 303
    assert staged.world.store.load(incident.id).decision.why == "the quota is used up"


def test_a_token_never_travels_in_the_clear(staged, browser_of):
    """Under an address without encryption the form is not offered, and a token in it is not looked at."""
    asked = []
    settings = OUTSIDE.with_(public_url="http://sre.example.com")
    reader = browser_of(staged.world, settings=settings, name_of=lambda token: asked.append(token) or named(token))
    incident = staged.waiting()
    form = reader.fields(f"/plans/{incident.plan.id}")["approve"]  # through a port-forward it is
    plain = {"Host": "sre.example.com", "Origin": "http://sre.example.com"}
    page = reader.client.get(f"/plans/{incident.plan.id}", headers=plain).get_data(as_text=True)
    assert "kubernetes_token" not in page
    reader.client.post(f"/plans/{incident.plan.id}/decision", data=form | {"kubernetes_token": "of-ada"}, headers=plain)
    assert asked == []
    assert staged.world.store.load(incident.id).decision is None


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("sre.example.com", 200),
        ("10.4.0.9:8080", 200),
        ("127.0.0.1:18080", 200),
        ("evil.example", 403),
        ("sre.example.com.evil.example", 403),
    ],
)
def test_names_that_others_point_here_are_refused(staged, reader_of, host, status):
    incident, reader = staged.waiting(), reader_of()
    for path in ("/", f"/incidents/{incident.id}", "/metrics"):
        answer = reader.client.get(path, headers={"Host": host}, environ_overrides={"REMOTE_ADDR": "192.0.2.7"})
        assert answer.status_code == status
        assert status == 200 or incident.service not in answer.get_data(as_text=True)


def test_the_probes_of_a_platform_need_no_name(reader_of):
    answer = reader_of().client.get("/healthz", headers={"Host": "anything.example"})
    assert (answer.status_code, answer.get_data()) == (200, b"ok\n")
