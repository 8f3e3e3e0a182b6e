"""A further effect undoes nothing that somebody else did since our change."""

from datetime import UTC, datetime

import pytest

from agent.core.change.drift import drift_since
from agent.core.change.execution import EffectKind, Intent
from agent.core.plan.action import SetConcurrency, SetInstanceType
from agent.core.plan.plan import Rollout
from agent.core.service.serving import Live, ServingConfig, Target, Traffic
from agent.core.value import canonical

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
LATEST = (Traffic(percent=100),)
BEFORE, OURS = "s-00004", "s-sre-1"
PINNED = (Traffic(revision=BEFORE, percent=100),)
GIVEN = (Traffic(revision=OURS, percent=100),)


PRIOR, MADE = ServingConfig(concurrency=4), ServingConfig(concurrency=8)


def intent(rollout: Rollout, prior: tuple[Traffic, ...] = LATEST, **changes: object) -> Intent:
    known = {
        "key": "k",
        "kind": EffectKind.APPLY,
        "incident": "inc-1",
        "service": "s",
        "decision": "d",
        "plan_digest": "0" * 64,
        "actions": (SetConcurrency(concurrency=8),),
        "staged": rollout is Rollout.STAGED,
        "target": Target(service="s", uid="u1", generation=4, digest="d"),
        "etag": "e",
        "revision": OURS,
        "prior_revision": BEFORE,
        "prior_config": PRIOR,
        "prior_template": "{}",
        "prior_traffic": canonical([t.model_dump(mode="json") for t in prior]).decode(),
        "applied_at": NOW,
    }
    return Intent(**(known | changes))


def live(traffic: tuple[Traffic, ...], **changes: object) -> Live:
    known = {"service": "s", "platform": "cloud_run", "config": MADE, "uid": "u1", "generation": 5,
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
    assert drift_since(intent(rollout, prior), live(now), shifted=shifted) == ""


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
    said = drift_since(intent(rollout), live(now), shifted=shifted)
    assert said.startswith("somebody changed 's' since: its traffic goes to ")


def test_a_service_made_again_under_its_old_name_is_another() -> None:
    """Its uid tells, before it has a revision."""
    again = live(LATEST, uid="u2", latest_created_revision=None)
    assert "made again" in drift_since(intent(Rollout.IN_PLACE), again)


def test_a_later_revision_is_theirs() -> None:
    """The words of the template are theirs too."""
    theirs = live(LATEST, latest_created_revision="s-00009", template="{}x")
    assert "its newest revision is 's-00009'" in drift_since(intent(Rollout.IN_PLACE), theirs)


def test_traffic_that_cannot_be_read_counts_as_changed() -> None:
    """Doubt refuses."""
    assert drift_since(intent(Rollout.IN_PLACE, prior_traffic="{"), live(LATEST))


def test_a_service_that_still_stands_as_before_is_nobody_elses() -> None:
    """Our change has not begun to stand, or was taken back."""
    stands = live(LATEST, template="{}", config=PRIOR, latest_created_revision=BEFORE)
    assert drift_since(intent(Rollout.IN_PLACE), stands) == ""


def test_a_value_that_neither_we_nor_the_prior_state_had_is_theirs() -> None:
    """Even under our revision's name."""
    theirs = live(LATEST, config=MADE.with_(memory_mib=4096))
    assert "its configuration is not" in drift_since(intent(Rollout.IN_PLACE), theirs)


def test_what_was_stored_before_configurations_were_kept_is_known_by_its_stamp() -> None:
    """An intent of an earlier version."""
    assert drift_since(intent(Rollout.IN_PLACE, prior_config=None), live(LATEST)) == ""


TYPE = SetInstanceType(
    instance_type="p4d.24xlarge", accelerator="nvidia-a100-40gb", accelerator_count=8, cpu=96, memory_mib=1_179_648
)
RENTED = ServingConfig(
    instance_type="g6.xlarge", accelerator="nvidia-l4", accelerator_count=1, cpu=4, memory_mib=16_384
)
SIZE = {"instance_type": TYPE.instance_type, "cpu": TYPE.cpu, "memory_mib": TYPE.memory_mib}


@pytest.mark.parametrize(
    "card", [{}, {"accelerator": "nvidia-a100-sxm4-40gb", "accelerator_count": 8}], ids=["of the last read", "its own"]
)
def test_the_cards_of_another_type_are_not_compared(card: dict[str, object]) -> None:
    """A machine that is off tells those of its last read, and a card may print a name that no catalogue has."""
    made = intent(Rollout.IN_PLACE, actions=(TYPE,), prior_config=RENTED)
    assert drift_since(made, live(LATEST, config=RENTED.with_(**SIZE, **card))) == ""


@pytest.mark.parametrize("other", [{"instance_type": "g6.2xlarge"}, {"cpu": 8}, {"memory_mib": 1}])
def test_a_third_type_is_somebody_elses(other: dict[str, object]) -> None:
    """Type, CPUs and memory bind still."""
    made = intent(Rollout.IN_PLACE, actions=(TYPE,), prior_config=RENTED)
    assert "its configuration is not" in drift_since(made, live(LATEST, config=RENTED.with_(**SIZE | other)))


def test_cards_bind_where_the_type_was_not_ours_to_change() -> None:
    """Who gave the service another card changed it."""
    theirs = live(LATEST, config=MADE.with_(accelerator="nvidia-h200"))
    assert "its configuration is not" in drift_since(intent(Rollout.IN_PLACE), theirs)
