"""The log stream of a replica: only where Log Analytics has nothing, bounded, and its token to Azure's host alone."""

import json
import logging
from datetime import timedelta
from pathlib import Path

import pytest

from agent.adapters.logs.container_app_stream import TAIL
from agent.adapters.platform.container_apps.api import ContainerAppsApi
from agent.app.azure_environment import azure_logs
from agent.core.service.services import parse_services
from agent.core.service.serving import ServingConfig
from agent.errors import DependencyFailed, SreError
from agent.settings import Settings
from tests.contracts import arm_server as arm
from tests.contracts.arm_world import ArmWorld
from tests.contracts.log_analytics_server import LogAnalytics
from tests.contracts.log_stream_server import LogStream

ROLES = Path(__file__).resolve().parents[4] / "deploy" / "azure"
CONFIG = ServingConfig(
    image="vllm/vllm-openai:v0.32.0", args=("--model", "m"), accelerator="nvidia-a100-80gb", min_instances=1
)
REVISION = "gemma--sre-1a2b3c4d"
OLD, NEW = f"{REVISION}-66b8c7-old", f"{REVISION}-66b8c7-new"
SERVICES = parse_services(
    {
        "service": [
            {"name": "gemma", "platform": "container_apps", "resource_group": arm.GROUP, "model": "m",
             "accelerator": "nvidia-a100-80gb", "owner": "console"}
        ]
    }
)  # fmt: skip


class World:
    """One app with two replicas, an empty workspace, and streams."""

    def __init__(self):
        self.app = ArmWorld("gemma", CONFIG)
        self.arm, self.now = self.app.arm, self.app.watch.now()
        self.arm.rename_first("gemma", REVISION)
        self.workspace, self.stream = LogAnalytics(), LogStream(self.arm)
        self.arm.replicas[REVISION] = [
            self.stream.replica(NEW, self.now),
            self.stream.replica(OLD, self.now - timedelta(hours=1)),
        ]
        self.say("hello", "out of memory")

    def say(self, *texts):
        self.stream.lines = [(self.now + timedelta(seconds=n), text) for n, text in enumerate(texts)]

    def logs(self, *, switched_on=True):
        settings = Settings(platform=f"container_apps:{arm.SUBSCRIPTION}", container_apps_log_stream=switched_on)
        api = ContainerAppsApi(lambda: arm.sdk_client(self.arm.url), arm.SUBSCRIPTION)
        return azure_logs(settings, SERVICES, api, connect=self.workspace.client, http=self.stream.http())

    def read(self, *, switched_on=True, **more):
        asked = {"revision": "gemma-sre-1a2b3c4d", "instance": None, "until": self.now + timedelta(hours=1)} | more
        return self.logs(switched_on=switched_on).instance_log("gemma", **asked)

    def endpoint(self, address):
        self.arm.replicas[REVISION][0]["properties"]["containers"][0]["logStreamEndpoint"] = address

    def close(self):
        self.app.close()
        self.workspace.close()
        self.stream.close()


@pytest.fixture
def world():
    made = World()
    yield made
    made.close()


def texts(log):
    return [line.text for line in log.lines]


def test_a_log_that_has_not_arrived_yet_is_streamed_from_the_newest_replica(world):
    """Or from the one that is named."""
    log = world.read()
    assert (texts(log), log.revision, log.instance) == (["hello", "out of memory"], "gemma-sre-1a2b3c4d", NEW)
    assert (log.complete, log.lines[0].at) == (True, world.now)
    assert world.read(instance=OLD).instance == OLD


def test_it_is_off_by_default(world):
    """Nobody asks for the token that could open a shell, or for a stream."""
    assert Settings().container_apps_log_stream is False
    assert world.read(switched_on=False) is None
    assert not world.stream.asked
    assert not any("getAuthToken" in action or "replicas" in action for action in world.arm.used)


def test_what_log_analytics_has_is_not_streamed(world):
    world.workspace.rows.append((world.now, "gemma", REVISION, NEW, "kept"))
    assert texts(world.read()) == ["kept"]
    assert not world.stream.asked


def test_log_analytics_that_fails_is_no_reason_to_stream(world):
    world.workspace.fails = (429, "TooManyRequests", "slow")
    with pytest.raises(DependencyFailed, match="TooManyRequests"):
        world.read()
    assert not world.stream.asked


def test_it_is_bounded_and_never_follows(world):
    """Azure gives 300 lines of the past; of a longer log the start was not seen."""
    world.say(*(f"line {n}" for n in range(500)))
    log = world.read()
    assert (len(log.lines), log.lines[-1].text, log.complete) == (TAIL, "line 499", False)
    ((path, asked),) = world.stream.asked
    assert path.endswith(f"/replicas/{NEW}/containers/vllm/logstream")
    assert (asked["follow"], asked["tailLines"]) == ("false", "300")


def test_more_bytes_than_the_limit_are_not_read(world, monkeypatch):
    """The last line is cut, so it is left out, and the log is not whole."""
    monkeypatch.setattr("agent.adapters.logs.container_app_stream.READ_BYTES", 2**16)
    world.say(*("x" * 2000 for _ in range(200)))
    log = world.read()
    assert 0 < len(log.lines) < 40
    assert not log.complete
    assert {len(line.text) for line in log.lines} == {2000}


def test_lines_from_after_the_trouble_are_left_out(world):
    assert texts(world.read(until=world.now)) == ["hello"]


def test_text_is_read_as_json_is(world):
    """A line without a time belongs to the line before."""
    body = b"2026-11-21T10:00:00.1234567Z hello\n  of two lines\n2026-11-21T10:00:01Z bye\n"
    world.stream.answer = (200, {}, body)
    log = world.read()
    assert texts(log) == ["hello", "  of two lines", "bye"]
    assert log.lines[0].at == log.lines[1].at


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b'{"TimeStamp": 1, "Log": []}', b"\xff\xfe\x00", b"{" * 900])
def test_an_answer_that_is_no_log_is_refused(world, body):
    world.stream.answer = (200, {}, body)
    with pytest.raises(DependencyFailed, match="no line of it has a time"):
        world.read()


def test_an_answer_that_breaks_off_is_refused(world):
    world.stream.cut = True
    with pytest.raises(DependencyFailed, match="the log stream of 'gemma' was not read"):
        world.read()


def test_a_server_that_printed_nothing_has_no_log(world):
    """What the stream says of itself has the time of the request, so it is recognised by its words."""
    ever = world.now + timedelta(days=3650)
    assert texts(world.read(until=ever)) == ["hello", "out of memory"]
    world.say()
    assert world.read(until=ever) is None


def test_a_replica_that_is_gone_has_no_log(world):
    """It went before the list, between list and stream, or with its revision."""
    assert world.read(instance=f"{REVISION}-66b8c7-gone") is None
    assert world.read(revision="gemma-sre-00000000") is None
    for status in (404, 410):
        world.stream.answer = (status, {}, b"replica not found")
        assert world.read() is None
    world.arm.replicas[REVISION] = []
    assert world.read() is None


def test_the_stream_of_the_serving_container_is_read(world):
    """A container beside it may print anything."""
    world.arm.replicas[REVISION] = [world.stream.replica(NEW, world.now, ("sidecar", "vllm"))]
    world.read()
    assert [path.split("/")[-2] for path, _ in world.stream.asked] == ["vllm"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_names_the_role(world, status):
    world.stream.answer = (status, {}, b"Bearer developer-token is not allowed")
    with pytest.raises(DependencyFailed, match=f"it answered {status}") as caught:
        world.read()
    assert "deploy/azure/role-log-stream.json" in caught.value.hint
    assert "developer-token" not in str(caught.value)


@pytest.mark.parametrize("status", [302, 307, 429, 500, 503])
def test_other_answers_are_tried_again_later_and_no_redirect_is_followed(world, status):
    """The token would go along."""
    world.stream.answer = (status, {"Location": world.stream.endpoint(NEW)}, b"")
    with pytest.raises(DependencyFailed, match=f"it answered {status}") as caught:
        world.read()
    assert "tried again" in caught.value.hint
    assert len(world.stream.asked) == 1


@pytest.mark.parametrize(
    "address",
    [
        "http://swedencentral.azurecontainerapps.dev/replicas/x/logstream",
        "https://swedencentral.azurecontainerapps.dev.example.com/logstream",
        "https://azurecontainerapps.dev/logstream",
        "https://evil.example/azurecontainerapps.dev/logstream",
        "https://evilazurecontainerapps.dev/logstream",
        "https://user@swedencentral.azurecontainerapps.dev/logstream",
        "https://swedencentral.azurecontainerapps.dev@evil.example/logstream",
        "https://swedencentral.azurecontainerapps.dev/exec",
        "https://swedencentral.azurecontainerapps.dev/exec?x=/logstream",
        "https://swedencentral.azurecontainerapps.dev:port/logstream",
        "https://[::1/logstream",
        "https://169.254.169.254/logstream",
    ],
)
def test_an_address_that_is_none_of_a_log_stream_of_azures_gets_no_token(world, address):
    """The token is not even asked for."""
    world.endpoint(address)
    with pytest.raises(DependencyFailed, match="nothing was sent"):
        world.read()
    assert not world.stream.asked
    assert not any("getAuthToken" in action for action in world.arm.used)


@pytest.mark.parametrize("token", [None, "", "a\r\nX-Evil: 1", "a b", "ä"])
def test_a_token_that_is_none_is_not_sent(world, token):
    world.arm.token = token
    with pytest.raises(DependencyFailed):
        world.read()
    assert not world.stream.asked


def test_the_token_is_never_written(world, caplog):
    """Neither to a log, whatever its level, nor into what is given back."""
    world.arm.token = "eyJ-secret-developer-token"
    caplog.set_level(logging.DEBUG)
    found = world.read()
    world.stream.answer = (500, {}, b"eyJ-secret-developer-token")
    with pytest.raises(DependencyFailed) as caught:
        world.read()
    assert "eyJ-secret" not in caplog.text + repr(found) + repr(caught.value) + str(caught.value)


@pytest.mark.parametrize("name", ["../gemma", "a b", "ä", "", "x" * 300])
def test_a_name_that_is_none_of_azures_is_not_asked_for(world, name):
    """Replicas are named by whoever writes the log rows."""
    assert world.read(instance=name, revision=name) is None
    assert not world.stream.asked
    assert not any("replicas" in action for action in world.arm.used)


def role(name):
    found = json.loads((ROLES / name).read_text())
    return set(found["Actions"]) | set(found["DataActions"])


def test_the_role_holds_what_is_called_and_nothing_else(world):
    """S20: beside the operator's role, which never holds it; no right to a shell is in it."""
    more = role("role-log-stream.json")
    world.arm.allowed = role("role.json") | more
    assert texts(world.read()) == ["hello", "out of memory"]
    assert world.arm.used - role("role.json") == more
    assert not more & (role("role.json") | role("role-lifecycle.json"))
    assert not any("exec" in action or "debug" in action or "*" in action for action in more)


@pytest.mark.parametrize("missing", sorted(role("role-log-stream.json")))
def test_without_any_one_of_them_it_is_refused_and_the_hint_names_the_role(world, missing):
    world.arm.allowed = role("role.json") | role("role-log-stream.json")
    world.arm.allowed -= {missing}
    with pytest.raises(SreError) as caught:
        world.read()
    assert isinstance(caught.value, DependencyFailed)
    assert "deploy/azure/role-log-stream.json" in caught.value.hint
