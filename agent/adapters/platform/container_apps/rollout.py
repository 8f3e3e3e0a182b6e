"""How far a change of a container app is: ARM's word for the operation, held against the revision it speaks of."""

from enum import StrEnum
from typing import Final

from agent.adapters.platform.container_apps.api import Asynchronous
from agent.adapters.platform.container_apps.app_ref import Seen
from agent.adapters.platform.container_apps.describe import state_of
from agent.adapters.platform.container_apps.template import REVISION_TAG, STOP_TAG, traffic_of
from agent.adapters.platform.work import Work
from agent.ports.platform import Operation

_FAILED: Final = frozenset({"Failed", "Canceled", "Cancelled"})


class Second(StrEnum):
    """The call that is to follow the one that makes a revision: each with the tag that names it."""

    START = "start"
    STOP = "stop"

    @property
    def tag(self) -> str:
        """The tag of the app that holds the revision's name."""
        return REVISION_TAG if self is Second.START else STOP_TAG


def rollout(work: Work, seen: Seen, arm: Asynchronous | None) -> Operation:
    """Return how far a new revision is.

    The revision is believed before the operation: ARM's may have ended well over a revision that crashes, and in
    Single mode the old revision serves until the new one is ready.

    Args:
        work: What we look for.
        seen: The app as it is now.
        arm: ARM's operation; None where it is known no more.
    """
    native = seen.ref.native(work.revision)
    revision = seen.revision(native)
    second = second_call(seen, work.revision)
    if second is not None:
        return _switching(work, seen, arm, second)
    if seen.is_stopped and seen.newest == native and STOP_TAG in (seen.body.get("tags") or {}):
        return work.operation(True, f"{seen.ref.name} is stopped", native)
    if revision is None:
        return _not_made(work, seen, arm)
    up, says = (True, "") if seen.is_stopped else state_of(revision)
    if up is True:
        wait = _waits(seen, native)
        return work.operation(None if wait else True, f"{work.revision} is ready{wait}", native)
    if up is None and arm is not None and arm.state in _FAILED:
        return work.operation(False, arm.error or says, native)
    return work.operation(up, f"{work.revision} is starting: {says}" if up is None else says, native)


def second_call(seen: Seen, revision: str) -> Second | None:
    """Return what is to follow a revision of ours and has not come about: a start or a stop of the app."""
    tags = seen.body.get("tags") or {}
    second = Second.START if seen.is_stopped else Second.STOP
    return second if tags.get(second.tag) == revision else None


def later_revision(seen: Seen, revision: str) -> str:
    """Return why a revision of ours is the newest no more; nothing where it is."""
    return "" if seen.newest == seen.ref.native(revision) else f"{seen.newest} followed {revision}"


def _switching(work: Work, seen: Seen, arm: Asynchronous | None, second: Second) -> Operation:
    """Return how far the call is that follows a revision; it remains to be made where nothing tells that it was.

    The path is that of the call itself: where there is one, Azure accepted it.
    """
    native, does = seen.ref.native(work.revision), "started" if second is Second.START else "stopped again"
    if arm is not None and arm.state in _FAILED:
        return work.operation(False, arm.error or f"the app was not {does}", native)
    follows = later_revision(seen, work.revision)
    if follows and not work.native:
        return work.operation(False, f"the app was not {does}: {follows}", native)
    if seen.in_progress or (arm is not None and arm.state != "Succeeded"):
        return work.operation(None, f"the app is being {does}", native)
    if work.native:
        says = f"the app was {does}; somebody {'stopped' if second is Second.START else 'started'} it since"
        return work.operation(False if arm is not None else None, says, native).with_(done=True)
    says = f"the app is to be {does}"
    return work.operation(None, says, native).with_(remains=says)


def _waits(seen: Seen, native: str) -> str:
    """What a revision that came up still waits for: in Single mode, to take the place of the older one."""
    if seen.newest != native:
        return ""
    replaced = seen.is_multiple or seen.newest_ready == native
    return "" if replaced and not seen.in_progress else ", its traffic is being moved"


def shifting(work: Work, seen: Seen, arm: Asynchronous | None = None) -> Operation:
    """Return how far a shift of traffic is."""
    if arm is not None and arm.state in _FAILED:
        return work.operation(False, arm.error or "Azure did not move the traffic")
    if seen.in_progress or (arm is not None and arm.state != "Succeeded"):
        return work.operation(None, f"the traffic is being moved to {work.revision}")
    if not gives_all(seen, work.revision):
        return work.operation(False, f"the traffic does not go to {work.revision}")
    return work.operation(True, f"all traffic goes to {work.revision}")


def stopping(work: Work, seen: Seen, arm: Asynchronous | None = None) -> Operation:
    """Return how far a stop is."""
    name = seen.ref.name
    if seen.is_stopped:
        return work.operation(True, f"{name} is stopped")
    if arm is not None and arm.state in _FAILED:
        return work.operation(False, arm.error or f"{name} was not stopped")
    if seen.in_progress or (arm is not None and arm.state != "Succeeded"):
        return work.operation(None, f"{name} is being stopped")
    return work.operation(False, f"{name} is not stopped: somebody started it")


def deleting(work: Work, arm: Asynchronous | None = None) -> Operation:
    """Return how far a deletion is whose app is still there."""
    if arm is not None and arm.state in _FAILED:
        return work.operation(False, arm.error or f"{work.service} was not deleted")
    return work.operation(None, f"{work.service} is being deleted")


def gives_all(seen: Seen, revision: str) -> bool:
    """Whether the traffic weights send every request to ``revision``."""
    latest = seen.ref.ours(seen.newest_ready)
    return all((t.revision or latest) == revision for t in traffic_of(seen) if t.percent)


def _not_made(work: Work, seen: Seen, arm: Asynchronous | None) -> Operation:
    if arm is not None and arm.state in _FAILED:
        return work.operation(False, arm.error or f"Azure did not make {work.revision}")
    ours = seen.newest == seen.ref.native(work.revision)
    if seen.in_progress or (arm is not None and arm.state != "Succeeded") or ours:
        state = seen.properties.get("provisioningState")
        if ours and state in _FAILED:
            return work.operation(False, f"Azure did not make {work.revision} (provisioning {state})")
        return work.operation(None, f"{work.revision} is not there yet")
    return work.not_made()
