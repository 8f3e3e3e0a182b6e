"""How far a revision is, from Azure's own states; the operation's word never stands alone."""

import pytest

from agent.adapters.platform.container_apps.api import Asynchronous
from agent.adapters.platform.container_apps.app_ref import AppRef, Environment, Seen
from agent.adapters.platform.container_apps.rollout import rollout, shifting, stopping
from agent.adapters.platform.work import Work, work_of
from agent.errors import InputRejected

REF = AppRef(subscription="s", group="llm", name="gemma")
WORK = Work(service="gemma", aim="revisions/gemma-sre-1")
UP = {"provisioningState": "Provisioned", "runningState": "Running", "healthState": "Healthy", "replicas": 1}


def seen(state, *, mode="Single", ready="gemma--sre-1", **properties):
    """An app whose newest revision is ours; without a state it was not made."""
    body = {
        "properties": {
            "template": {"revisionSuffix": "sre-1", "containers": []},
            "configuration": {"activeRevisionsMode": mode},
            "latestReadyRevisionName": ready,
            "provisioningState": "Succeeded",
        }
        | properties
    }
    listed = () if state is None else ({"name": "gemma--sre-1", "properties": state},)
    return Seen(ref=REF, body=body, revisions=listed, environment=Environment(id="e"))


STATES = {
    "up": (seen(UP), True, "is ready"),
    "up at the most replicas": (seen(UP | {"runningState": "RunningAtMaxScale"}), True, "is ready"),
    "asleep": (seen(UP | {"runningState": "ScaledToZero", "healthState": "None", "replicas": 0}), True, "is ready"),
    "the older one still serves": (seen(UP, ready="gemma--0000001"), None, "its traffic is being moved"),
    "in Multiple mode both serve": (seen(UP, ready="gemma--0000001", mode="Multiple"), True, "is ready"),
    "an operation goes on": (seen(UP, provisioningState="InProgress"), None, "its traffic is being moved"),
    "crashing": (
        seen(UP | {"provisioningState": "Failed", "provisioningError": "ContainerCrashing"}),
        False,
        "ContainerCrashing",
    ),
    "failed later": (seen(UP | {"runningState": "Failed"}), False, "Azure gives no reason"),
    "activation failed": (seen(UP | {"runningState": "ActivationFailed"}), False, "Azure gives no reason"),
    "degraded is not the end": (seen(UP | {"runningState": "Degraded"}), None, "running Degraded"),
    "provisioned and unhealthy": (seen(UP | {"healthState": "Unhealthy"}), None, "is starting"),
    "no room": (
        seen({"provisioningState": "Provisioning", "runningState": "Processing", "replicas": 0}),
        None,
        "AssigningReplica",
    ),
    "not made yet": (seen(None, provisioningState="InProgress"), None, "not there yet"),
    "never made": (seen(None, provisioningState="Failed"), False, "provisioning Failed"),
    "a state of tomorrow": (seen({"provisioningState": "Pondering"}), None, "provisioning Pondering"),
}


@pytest.mark.parametrize(("now", "ok", "says"), STATES.values(), ids=STATES)
def test_states_mean(now, ok, says):
    """Three-valued: up, not up, and open; what is not known yet is open."""
    found = rollout(WORK, now, None)
    assert (found.ok, found.done) == (ok, ok is not None)
    assert says in found.says


def test_the_revision_is_believed_before_the_operation():
    """An operation that failed over a revision that serves failed for somebody else; over one that waits, for it."""
    failed = Asynchronous(state="Failed", error="ContainerAppOperationError: no")
    assert rollout(WORK, seen(UP), failed).ok is True
    assert rollout(WORK, seen(UP | {"runningState": "Processing"}), failed).says == failed.error
    assert rollout(WORK, seen(None), failed).ok is False
    assert rollout(WORK, seen(UP | {"runningState": "Failed"}), Asynchronous(state="Succeeded")).ok is False


def test_a_revision_that_nobody_made_is_no_success():
    """Its suffix is not the newest, and nothing is under way."""
    gone = seen(None, template={"revisionSuffix": "other", "containers": []})
    found = rollout(WORK, gone, None)
    assert (found.done, found.ok) == (True, None)


def test_a_stop_and_a_shift_end_with_what_is_seen():
    """ARM's word is asked only while the app does not tell."""
    stop, shift = Work(service="gemma", aim="scaling/r"), Work(service="gemma", aim="traffic/gemma-sre-1")
    assert stopping(stop, seen(UP, runningStatus="Stopped")).ok is True
    assert stopping(stop, seen(UP), Asynchronous(state="InProgress")).ok is None
    assert stopping(stop, seen(UP), Asynchronous(state="Failed", error="no")).says == "no"
    assert "somebody started it" in stopping(stop, seen(UP)).says
    assert shifting(shift, seen(UP)).ok is True
    under_way = seen(UP, ready="gemma--0000001", provisioningState="InProgress")
    assert shifting(shift, under_way).ok is None
    assert shifting(shift, seen(UP, ready="gemma--0000001"), Asynchronous(state="InProgress")).ok is None
    assert shifting(shift, seen(UP, ready="gemma--0000001")).ok is False
    assert shifting(shift, seen(UP), Asynchronous(state="Failed", error="no")).says == "no"


def test_an_operations_name_comes_back():
    """With the path of ARM's own, and without where the answer was lost."""
    whole = WORK.with_(native="/subscriptions/s/providers/Microsoft.App/locations/x/containerappOperationResults/1?a=b")
    assert work_of(whole.name) == whole
    assert work_of(WORK.name) == WORK


@pytest.mark.parametrize("name", ["", "gemma/revisions/x", "#gemma", "#gemma/other/x", "#a/b/revisions/x"])
def test_a_name_that_is_none_of_ours_is_refused(name):
    with pytest.raises(InputRejected, match="no name of ours"):
        work_of(name, plain=True)
