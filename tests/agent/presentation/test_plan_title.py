"""A plan's title comes from its difference; flags keep their spelling, words begin with a capital."""

import pytest

from agent.core.plan.action import (
    NO_SERVICE,
    Difference,
    Lifecycle,
    LifecycleOperation,
    Restart,
    SetFlag,
    SetScaling,
    applied,
    difference,
)
from agent.core.service.serving import ServingConfig
from agent.presentation.plan_title import TITLE_CHARS, as_sentence, plan_title


@pytest.mark.parametrize(
    ("before", "after", "title"),
    [
        ("16384", "17408", "Raise --max-model-len from 16384 to 17408"),
        ("131072", "32640", "Lower --max-model-len from 131072 to 32640"),
        (None, "4096", "Set --max-model-len to 4096"),
        ("4096", None, "Remove --max-model-len"),
        ("auto", "fp8", "Change --max-model-len from auto to fp8"),
        (None, "", "Turn on --max-model-len"),
    ],
)
def test_a_title_says_from_what_to_what(stage, scenes, before, after, title):
    plan = scenes.a_plan(
        stage.open(), 1, stage.clock, actions=(SetFlag(name="max-model-len", value=after),),
        difference=(Difference(path="flag --max-model-len", before=before, after=after),),
    )  # fmt: skip
    assert plan_title(plan) == title


def test_a_restart_a_probe_and_a_task_have_titles(stage, scenes):
    incident = stage.open()
    restart = scenes.a_plan(incident, 1, stage.clock, actions=(Restart(),), difference=())
    assert plan_title(restart) == "Start the same configuration again"
    assert plan_title(scenes.a_plan(incident, 1, stage.clock)).startswith(
        "Allow 1,185 s for the start (startup probe); "
    )
    assert plan_title(scenes.person_plan(incident, 1, stage.clock)).startswith("Give the service account read access")


def test_a_lifecycle_has_a_title_that_says_what_is_lost(stage, scenes):
    config = ServingConfig(image="vllm:v1", args=("--model", "google/gemma"), accelerator="nvidia-l4", max_instances=2)
    incident = stage.open()
    for action, title in [
        (Lifecycle(operation=LifecycleOperation.CREATE, config=config), "Create {} on nvidia-l4: google/gemma"),
        (Lifecycle(operation=LifecycleOperation.START), "Start {}"),
        (SetScaling(min_instances=0, max_instances=0), "Stop {} (scale to zero)"),
        (Lifecycle(operation=LifecycleOperation.DELETE, confirmed="x"), "Delete {}; this cannot be undone"),
    ]:
        before = NO_SERVICE if "Create" in title else config
        rows = difference(before, applied(before, (action,)))
        plan = scenes.a_plan(incident, 1, stage.clock, actions=(action,), difference=rows)
        assert plan_title(plan) == title.format(plan.target.service)


def test_a_task_is_titled_by_its_first_sentence(stage, scenes):
    task = scenes.person_plan(stage.open(), 1, stage.clock)
    said = "Start the server with --gpu-memory-utilization 0.92. By a file, for az reads words differently."
    assert plan_title(task.with_(actions=(task.actions[0].with_(instruction=said),))) == (
        "Start the server with --gpu-memory-utilization 0.92."
    )


def test_a_long_title_ends_with_a_whole_word(stage, scenes):
    task = scenes.person_plan(stage.open(), 1, stage.clock)
    long = task.with_(actions=(task.actions[0].with_(instruction="several words " * 40),))
    title = plan_title(long)
    assert len(title) <= TITLE_CHARS
    assert title.rstrip("…").split()[-1] in {"several", "words"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("--max-model-len is lower", "--max-model-len is lower."),
        ("the start takes long", "The start takes long."),
        ("gemma4-26b served before", "gemma4-26b served before."),
        ("Done.", "Done."),
        ("", ""),
    ],
)
def test_a_flag_or_a_name_at_the_front_keeps_its_letters(text, sentence):
    """A style sheet once made --Max-model-len of it."""
    assert as_sentence(text) == sentence
