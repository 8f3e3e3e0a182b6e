"""How far a rollout is, from the messages alone: the states between asked and ready, and those that end early."""

import pytest
from google.cloud import run_v2
from google.longrunning import operations_pb2

from agent.adapters.platform.cloud_run.describe import readiness
from agent.adapters.platform.cloud_run.rollout import rollout, shifting
from agent.adapters.platform.work import Work, work_of
from agent.errors import InputRejected

SERVICE = "projects/p/locations/l/services/gemma"
NEW = "gemma-sre-k1"
WORK = Work(service=SERVICE, aim=f"revisions/{NEW}", native="projects/p/locations/l/operations/1")
QUOTA = "Quota exceeded for total allowable count of GPUs per project per region."


def service(state: str = "RECONCILING", *, says: str = "", reconciling: bool = True, ours: bool = True, **fields):
    condition = {"type_": "Ready", "state": f"CONDITION_{state}", "message": says}
    return run_v2.Service.pb(
        run_v2.Service(
            name=SERVICE,
            template={"revision": NEW if ours else "gemma-00009-xyz"},
            terminal_condition=condition,
            reconciling=reconciling,
            **fields,
        )
    )


def revision(state: str, says: str = ""):
    conditions = [
        {"type_": "Active", "state": "CONDITION_SUCCEEDED"},
        {"type_": "Ready", "state": f"CONDITION_{state}", "message": says},
    ]
    return run_v2.Revision.pb(run_v2.Revision(name=f"{SERVICE}/revisions/{NEW}", conditions=conditions))


def native(*, done: bool, error: str = ""):
    operation = operations_pb2.Operation(name=WORK.native, done=done)
    if error:
        operation.error.code, operation.error.message = 13, error
    return operation


MOVING = service(latest_created_revision=f"{SERVICE}/revisions/{NEW}")
CASES = {
    "asked, not made yet": (native(done=False), service(), None, None, "not there yet"),
    "asked, not made yet, operation unknown": (None, service(), None, None, "not there yet"),
    "refused before it was made": (native(done=True, error=QUOTA), service(), None, False, "Quota exceeded"),
    "refused before it was made, operation unknown": (
        None,
        service("FAILED", says=QUOTA, reconciling=False),
        None,
        False,
        "Quota exceeded",
    ),
    "ready, traffic moves": (native(done=False), MOVING, revision("SUCCEEDED"), None, "being moved"),
    "ready, somebody else rolls out": (native(done=True), service(ours=False), revision("SUCCEEDED"), True, "is ready"),
    "starting": (native(done=False), service(), revision("RECONCILING"), None, "starting"),
    "starting, the operation gave up": (
        native(done=True, error="deadline"),
        service(),
        revision("PENDING"),
        None,
        "deadline",
    ),
    "failed": (native(done=True), service(), revision("FAILED", "the container did not start"), False, "did not start"),
    "failed without a word": (native(done=True, error="why"), service(), revision("FAILED"), False, "why"),
}


@pytest.mark.parametrize(("op", "live", "made", "ok", "says"), CASES.values(), ids=CASES)
def test_how_far_a_rollout_is(op, live, made, ok: bool | None, says: str) -> None:
    """Done is what has an answer; everything else runs on."""
    told = rollout(WORK, op, live, made)
    assert (told.done, told.ok) == (ok is not None, ok)
    assert says in told.says
    assert told.name == WORK.name


def test_what_nobody_can_tell_is_done_and_unknown() -> None:
    """The revision is gone, the service went on without it, the operation is known no more."""
    told = rollout(WORK, None, service("SUCCEEDED", reconciling=False, ours=False), None)
    assert (told.done, told.ok) == (True, None)


SHIFTS = {
    "moving": (service(), None),
    "moved": (service("SUCCEEDED", reconciling=False), True),
    "refused": (service("FAILED", says="Revision 'x' does not exist or is deleted", reconciling=False), False),
}


@pytest.mark.parametrize(("live", "ok"), SHIFTS.values(), ids=SHIFTS)
def test_how_far_a_shift_is(live, ok: bool | None) -> None:
    """The wish alone is not the deed."""
    live.traffic.add(type_="TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION", revision=NEW, percent=100)
    assert shifting(Work(service=SERVICE, aim=f"traffic/{NEW}"), live).ok is ok
    live.traffic[0].revision = "another"
    assert shifting(Work(service=SERVICE, aim=f"traffic/{NEW}"), live).ok is False


def test_a_name_holds_everything_and_nothing_else_is_read() -> None:
    """What is stored leads back to service and revision, with or without the platform's own name."""
    lost = WORK.with_(native="")
    assert work_of(WORK.name) == WORK
    assert work_of(lost.name) == lost
    for name in ("", "#", "#a", f"{SERVICE}/revisions/{NEW}", f"x#{SERVICE}/other/{NEW}"):
        with pytest.raises(InputRejected):
            work_of(name)


def test_ready_speaks_of_the_newest_revision() -> None:
    """A service that goes on with its last ready revision is not what was asked for."""
    both = {"latest_ready_revision": f"{SERVICE}/revisions/a", "latest_created_revision": f"{SERVICE}/revisions/b"}
    assert readiness(service("SUCCEEDED", reconciling=False, **both)) is False
    assert readiness(service("SUCCEEDED", reconciling=True, **both)) is None
    assert readiness(service("FAILED", reconciling=False, **both)) is False
    assert readiness(service("PENDING", reconciling=False, **both)) is None
    both["latest_ready_revision"] = both["latest_created_revision"]
    assert readiness(service("SUCCEEDED", reconciling=False, **both)) is True
