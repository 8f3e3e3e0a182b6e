"""Who owns a step is said once, in `agent/ports/stage_context.py`; every other table follows from it."""

import re
from pathlib import Path

import pytest

from agent.app.app import Role
from agent.core.incident.step import Step
from agent.entrypoints.pubsub.handlers import HANDLER_OF, on_event, on_order
from agent.ports.bus import Topic
from agent.ports.stage_context import OWNER_OF, RECEIVER_OF, TOPIC_OF, Owner
from agent.stages.advance import STAGE_OF
from tools.architecture_page import page

ROOT = Path(__file__).resolve().parents[2]


def test_every_step_has_one_owner_and_one_stage() -> None:
    """A step that was added to one table alone would be due for ever."""
    assert set(OWNER_OF) == set(STAGE_OF) == set(Step)


def test_whoever_receives_a_topic_has_a_handler_and_orders_go_to_owners_of_steps() -> None:
    """A topic without a handler would be delivered in vain, and an order to who owns no step does nothing."""
    assert set(HANDLER_OF) == set(RECEIVER_OF.values())
    for owner, handler in HANDLER_OF.items():
        assert handler is (on_order if owner in OWNER_OF.values() else on_event)


def test_every_owner_of_steps_is_woken_by_its_topic_or_by_time() -> None:
    """The tick wakes itself, and no two owners share a topic."""
    assert set(OWNER_OF.values()) - set(TOPIC_OF) == {Owner.TICK}
    assert len({TOPIC_OF[owner] for owner in TOPIC_OF}) == len(TOPIC_OF)


@pytest.mark.parametrize("owner", Owner)
def test_every_owner_is_a_role_and_a_function_of_its_name(owner: Owner) -> None:
    """An owner is what is deployed under its name."""
    assert Role(owner.value).name == owner.name
    assert (ROOT / "functions" / f"{owner}.py").is_file()


def test_the_drawing_of_the_identities_leads_each_topic_to_who_receives_it() -> None:
    """`on_alert` is the intake behind a topic of its own."""
    drawn = dict(re.findall(r"-->\|(sre-[a-z-]+)\| (\w+)", page()))
    drawn = {Topic(topic): {"on_alert": "on_log_event"}.get(name, name) for topic, name in drawn.items()}
    assert drawn == {topic: owner.value for topic, owner in RECEIVER_OF.items()}


def test_every_function_that_is_pushed_to_names_a_topic_that_somebody_receives() -> None:
    """`functions/NAME.py` says its topic once; the receiver of it is the function's own role."""
    for path in (ROOT / "functions").glob("*.py"):
        for name in re.findall(r"push\(request, Topic\.(\w+)\)", path.read_text(encoding="utf-8")):
            if Topic[name] is not Topic.TICK:
                owner = RECEIVER_OF[Topic[name]].value
                assert {"on_alert": "on_log_event"}.get(path.stem, path.stem) == owner
