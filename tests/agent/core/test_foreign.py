"""A further effect undoes nothing that somebody else did since our change."""

from datetime import UTC, datetime

import pytest

from agent.core.action import Restart
from agent.core.execution import Effect, EffectKind, Execution
from agent.core.foreign import changed_since
from agent.core.plan import Plan, Risk, Rollout
from agent.core.serving import Live, ServingConfig, Target, Traffic
from agent.core.value import canonical, digest

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
LATEST = (Traffic(percent=100),)
BEFORE, OURS = "s-00004", "s-sre-1"
PINNED = (Traffic(revision=BEFORE, percent=100),)
GIVEN = (Traffic(revision=OURS, percent=100),)


def plan(rollout: Rollout) -> Plan:
    return Plan(
        id="p-1",
        incident="inc-1",
        run="live",
        ordinal=1,
        cause="x",
        why="x",
        actions=(Restart(),),
        difference=(),
        target=Target(service="s", uid="u1", generation=4, digest="d"),
        prior_template=digest("{}"),
        rollout=rollout,
        risk=Risk.LOW,
        undo="",
        silence="",
        made_at=NOW,
        expires_at=NOW,
    )


def execution(prior: tuple[Traffic, ...], *, shifted: bool = False) -> Execution:
    shift = Effect(key="k", kind=EffectKind.SHIFT, etag="e", revision=OURS, intended_at=NOW)
    return Execution(
        plan="p-1",
        effects=(shift,) if shifted else (),
        revision_before=BEFORE,
        revision_after=OURS,
        prior_template="{}",
        prior_traffic=canonical([t.model_dump(mode="json") for t in prior]).decode(),
        prior_ready=True,
    )


def live(traffic: tuple[Traffic, ...], **changes: object) -> Live:
    known = {"service": "s", "platform": "cloud_run", "config": ServingConfig(), "uid": "u1", "generation": 5,
             "etag": "e", "template": f'{{"revision":"{OURS}"}}', "latest_created_revision": OURS}  # fmt: skip
    return Live(**(known | {"traffic": traffic} | changes))


STAGED = (*PINNED, Traffic(revision=OURS, tag="sre-new"))


@pytest.mark.parametrize(
    ("rollout", "prior", "shifted", "now"),
    [
        (Rollout.IN_PLACE, LATEST, False, LATEST),
        (Rollout.IN_PLACE, (*LATEST, Traffic(revision=BEFORE, tag="old")), False, LATEST),
        (Rollout.STAGED, LATEST, False, STAGED),
        (Rollout.STAGED, PINNED, False, STAGED),
        (Rollout.STAGED, LATEST, True, STAGED),
        (Rollout.STAGED, LATEST, True, LATEST),
        (Rollout.STAGED, PINNED, True, GIVEN),
        (Rollout.IN_PLACE, (), False, ()),
    ],
    ids=[
        "in place",
        "a tag",
        "staged",
        "staged, pinned before",
        "shift intended",
        "shifted",
        "shifted, pinned",
        "none",
    ],
)
def test_what_our_own_effects_leave_is_ours(
    rollout: Rollout, prior: tuple[Traffic, ...], shifted: bool, now: tuple[Traffic, ...]
) -> None:
    """In place, staged, shifted: nothing of it was somebody else."""
    assert changed_since(plan(rollout), execution(prior, shifted=shifted), live(now)) == ""


@pytest.mark.parametrize(
    ("rollout", "shifted", "now"),
    [
        (Rollout.IN_PLACE, False, PINNED),
        (Rollout.IN_PLACE, False, (Traffic(percent=50), Traffic(revision=BEFORE, percent=50))),
        (Rollout.STAGED, False, LATEST),
        (Rollout.STAGED, True, (Traffic(revision="s-00002", percent=100),)),
    ],
    ids=["pinned", "split", "given to the latest", "another revision"],
)
def test_traffic_that_a_person_moved_is_theirs(rollout: Rollout, shifted: bool, now: tuple[Traffic, ...]) -> None:
    """Who pins the traffic to what works has mended it for now; a roll-back would unpin it."""
    said = changed_since(plan(rollout), execution(LATEST, shifted=shifted), live(now))
    assert said.startswith("somebody changed 's' since: its traffic goes to ")


def test_a_service_made_again_under_its_old_name_is_another() -> None:
    """Its uid tells, before it has a revision."""
    again = live(LATEST, uid="u2", latest_created_revision=None)
    assert "made again" in changed_since(plan(Rollout.IN_PLACE), execution(LATEST), again)


def test_a_later_revision_is_theirs() -> None:
    """The words of the template are theirs too."""
    theirs = live(LATEST, latest_created_revision="s-00009", template="{}x")
    assert "its newest revision is 's-00009'" in changed_since(plan(Rollout.IN_PLACE), execution(LATEST), theirs)


def test_traffic_that_cannot_be_read_counts_as_changed() -> None:
    """Doubt refuses."""
    torn = execution(LATEST).with_(prior_traffic="{")
    assert changed_since(plan(Rollout.IN_PLACE), torn, live(LATEST))
