"""What creating, starting, stopping and deleting a service changes, costs and takes back."""

import pytest
from pydantic import ValidationError

from agent.core.plan.action import (
    NO_SERVICE,
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetFlag,
    SetScaling,
    applied,
    difference,
)
from agent.core.plan.lifecycle import (
    NOT_THERE,
    absent,
    already_so,
    ends_service,
    lifecycle_of,
    risk_of,
    stops_answering,
    undo_of,
)
from agent.core.plan.plan import Risk
from agent.core.service.serving import ServingConfig

CONFIG = ServingConfig(
    image="vllm/vllm-openai:v0.32.0", args=("--model", "google/gemma"), min_instances=1, max_instances=3
)
CREATE = Lifecycle(operation=LifecycleOperation.CREATE, config=CONFIG)
START = Lifecycle(operation=LifecycleOperation.START, min_instances=1, max_instances=3)
STOP = Lifecycle(operation=LifecycleOperation.STOP)
DELETE = Lifecycle(operation=LifecycleOperation.DELETE, confirmed="gemma")
LIVE = absent("gemma", "cloud_run").with_(config=CONFIG, uid="u1", generation=4, etag='"e"', ready=True)


def test_a_stop_is_no_instances_and_a_start_gives_them_back() -> None:
    """Start after stop is the configuration before; the flags never change."""
    stopped = applied(CONFIG, (STOP,))
    assert (stopped.min_instances, stopped.max_instances) == (0, 0)
    assert applied(stopped, (START,)) == CONFIG


def test_a_deletion_shows_everything_that_goes_and_a_creation_everything_that_comes() -> None:
    """Nobody approves a deletion that looks like no change."""
    gone, made = applied(CONFIG, (DELETE,)), applied(NO_SERVICE, (CREATE,))
    assert {row.after for row in difference(CONFIG, gone)} == {None}
    assert {row.before for row in difference(NO_SERVICE, made)} == {None}
    assert ("image", "vllm/vllm-openai:v0.32.0") in {(row.path, row.before) for row in difference(CONFIG, gone)}
    assert made == CONFIG


@pytest.mark.parametrize(
    ("actions", "operation"),
    [
        ((CREATE,), "create"),
        ((START,), "start"),
        ((STOP,), "stop"),
        ((DELETE,), "delete"),
        ((SetScaling(min_instances=0, max_instances=0),), "stop"),
        ((SetScaling(min_instances=0, max_instances=1),), None),
        ((Restart(), SetFlag(name="max-model-len", value="1")), None),
    ],
    ids=str,
)
def test_scaling_to_zero_is_a_stop_by_another_word(actions, operation) -> None:
    """Whatever ends the service is treated as such."""
    assert lifecycle_of(actions) == operation
    assert any(map(ends_service, actions)) == (operation in {"stop", "delete"})


def test_it_is_said_what_stops_answering_and_how_it_is_undone() -> None:
    """Beside the button, before anybody presses."""
    assert stops_answering("gemma", (STOP,)) == "gemma answers no requests until it is started again"
    assert "gone" in stops_answering("gemma", (DELETE,))
    assert stops_answering("gemma", (START,)) == ""
    assert undo_of("gemma", LifecycleOperation.DELETE, LIVE) == "a deletion cannot be undone"
    assert undo_of("gemma", LifecycleOperation.STOP, LIVE) == "gemma is started again with 1 to 3 instances"
    assert risk_of(LifecycleOperation.DELETE, LIVE)[0] is Risk.HIGH
    assert risk_of(LifecycleOperation.STOP, LIVE)[0] is Risk.HIGH
    assert risk_of(LifecycleOperation.STOP, LIVE.with_(ready=False))[0] is Risk.LOW


def test_what_is_already_so_is_said() -> None:
    """Asking for what is already so does nothing."""
    stopped, gone = LIVE.with_(config=applied(CONFIG, (STOP,))), absent("gemma", "host")
    assert already_so("gemma", LifecycleOperation.STOP, stopped) == "gemma is stopped"
    assert already_so("gemma", LifecycleOperation.START, LIVE) == "gemma is not stopped"
    assert already_so("gemma", LifecycleOperation.CREATE, LIVE) == "gemma exists"
    assert already_so("gemma", LifecycleOperation.DELETE, gone) == "gemma does not exist"
    due = [(LifecycleOperation.STOP, LIVE), (LifecycleOperation.START, stopped), (LifecycleOperation.CREATE, gone)]
    assert [already_so("gemma", operation, live) for operation, live in due] == ["", "", ""]


def test_a_service_that_is_not_there_has_a_version_of_its_own() -> None:
    """An intent without a version token would be taken for one of an earlier program."""
    assert absent("gemma", "host").etag == NOT_THERE
    assert absent("gemma", "host").target != LIVE.target


@pytest.mark.parametrize(
    "fields",
    [
        {"operation": "create"},
        {"operation": "create", "config": {"args": ["serve"]}},
        {"operation": "create", "config": {"image": "vllm", "max_instances": 0}},
        {"operation": "stop", "config": {"image": "vllm"}},
        {"operation": "start", "max_instances": 0},
        {"operation": "start", "min_instances": 2, "max_instances": 1},
        {"operation": "pause"},
    ],
    ids=str,
)
def test_half_a_lifecycle_is_none(fields) -> None:
    """Half an answer is no answer."""
    with pytest.raises(ValidationError):
        Lifecycle.model_validate(fields)
