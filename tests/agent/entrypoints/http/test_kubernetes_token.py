"""Tokens of the cluster: the API server's word about a short-lived token made for us, and nothing else."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from agent.core.decision.decision import Channel
from agent.core.decision.policy import Approver, Policy
from agent.core.incident.phase import Phase
from agent.entrypoints.http.kubernetes_token import AUDIENCE
from agent.errors import DependencyFailed

ADA = "system:serviceaccount:sre-agent:ada"


class Cluster:
    """What an API server would say: names by token, each made for one audience."""

    def __init__(self):
        self.names, self.asked, self.broken = {}, [], False

    def username(self, token, *, audience):
        self.asked.append((token, audience))
        if self.broken:
            raise DependencyFailed("the token was not checked", why="no route", hint="try again")
        return self.names.get((token, audience))


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def desk(desks, theatre, tokens, cluster):
    """A desk whose approver is known by a name of the cluster, and by an address."""
    made = desks.Desk(theatre, tokens)
    approvers = (Approver(name="Ada", kubernetes=ADA, email="ada@example.com", services=("gemma4-*",)),)
    made.stage = theatre.a_stage(Policy(approvers=approvers))
    made.stage.clock.at = tokens.NOW - timedelta(seconds=30)
    made.stage.world = replace(made.stage.world, local=False)
    made.incident = made.stage.waiting()
    made.plan = made.incident.plan
    plain = made.gate
    made.gate = lambda **changes: plain(
        **({"authenticator": replace(plain().authenticator, review=cluster), "context": made.stage.world} | changes)
    )
    return made


def cluster_token(desk, **changes):
    at = int(desk.now().timestamp())
    claims = {"iss": "https://kubernetes.default.svc", "sub": ADA, "aud": [AUDIENCE], "iat": at - 60, "exp": at + 3540}
    return desk.tokens.id_token({k: v for k, v in (claims | changes).items() if v is not ...})


def test_an_approver_decides_by_the_clusters_word(desk, cluster):
    token = cluster_token(desk)
    cluster.names[token, AUDIENCE] = ADA
    status, said = desk.say(token=token)
    assert (status, said["who"], said["name"], said["verified"]) == (200, ADA, "Ada", True)
    incident = desk.stage.world.store.load(desk.incident.id)
    assert (incident.phase, incident.decision.channel) == (Phase.APPROVED, Channel.KUBERNETES)


def test_a_token_that_the_cluster_does_not_know_decides_nothing(desk, cluster):
    """Whatever it says of itself, also under a name that may approve."""
    status, said = desk.say(token=cluster_token(desk))
    assert (status, desk.phase()) == (401, Phase.ASKED)
    assert "does not take it for a valid token" in said["why"]
    assert "kubectl create token" in said["hint"]


@pytest.mark.parametrize(
    "name",
    ["system:serviceaccount:sre-agent:ADA", "system:serviceaccount:other:ada", "ada@example.com", "Ada", "ada"],
)
def test_only_the_very_username_of_the_policy_counts(desk, cluster, name):
    """The API server tells capital letters apart, and a username is no e-mail address."""
    token = cluster_token(desk)
    cluster.names[token, AUDIENCE] = name
    status, said = desk.say(token=token)
    assert (status, desk.phase()) == (403, Phase.ASKED)
    assert f"policy.toml names no approver with the Kubernetes username {name!r}" in said["why"]


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"exp": ...}, "has no time 'exp'"),
        ({"exp": 1}, "has expired"),
        ({"iat": 0}, "longer than it is signed for"),
        ({"nbf": 4_000_000_000}, "issued in the future"),
    ],
    ids=["no end", "expired", "long-lived, such as the secret of a service account", "not yet"],
)
def test_a_token_that_lives_too_long_is_never_shown_to_the_cluster(desk, cluster, claims, says):
    status, said = desk.say(token=cluster_token(desk, **claims))
    assert (status, desk.phase(), cluster.asked) == (401, Phase.ASKED, [])
    assert says in said["why"]


def test_a_token_of_google_is_never_shown_to_the_cluster(desk, cluster):
    assert desk.say()[0] == 200
    assert cluster.asked == []


def test_where_the_cluster_does_not_answer_nothing_is_decided(desk, cluster):
    cluster.broken = True
    status, _ = desk.say(token=cluster_token(desk))
    assert (status, desk.phase()) == (503, Phase.ASKED)


def test_without_a_cluster_its_tokens_are_nothing(desk):
    bare = replace(desk.gate(), authenticator=replace(desk.gate().authenticator, review=None))
    status, _ = desk.say(token=cluster_token(desk), gate=bare)
    assert (status, desk.phase()) == (401, Phase.ASKED)


def test_a_token_turns_the_switch_off_once_only(desk, cluster):
    token = cluster_token(desk)
    cluster.names[token, AUDIENCE] = ADA
    on = desk.ask("POST", "/kill-switch", {"on": True, "why": "look"}, token=token)
    off = desk.ask("POST", "/kill-switch", {"on": False, "why": "go on"}, token=token)
    assert (on[0], off[0], off[1]["by"]) == (200, 200, ADA)
    assert json.dumps(off[1])
